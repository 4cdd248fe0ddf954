"""The memory: DuckDB schemas named after the stages, and the one door a release leaves through."""

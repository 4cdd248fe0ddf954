"""Everything that is stored: DuckDB, files, stages, ledger, integrity, and publishing."""

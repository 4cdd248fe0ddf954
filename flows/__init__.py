"""The Prefect flows, and the release file, which is their parameter."""

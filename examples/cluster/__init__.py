"""A release on two workers of a dask cluster; `python -m examples.cluster` runs it."""

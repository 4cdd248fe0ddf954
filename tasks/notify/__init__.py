"""Log a release to MLflow and Prefect."""

"""Local servers and schedules: Prefect, MLflow, deployments."""

"""The pages of the local servers that a person should open first."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tasks.notify.mlflow_addresses import name_experiment_page, name_experiments_page

TIMEOUT = 5.0  # seconds
MAX_DATASETS = 20


def list_pages(addresses: dict[str, str]) -> dict[str, str]:
    """Return what to open, by name: runs in Prefect, datasets in MLflow, each dataset's list."""
    mlflow = addresses["mlflow"]
    pages = {
        "Prefect": f"{addresses['prefect']}/runs",
        "MLflow": name_experiments_page(mlflow),
    }
    for experiment in find_experiments(mlflow):
        name, number = str(experiment["name"]), str(experiment["experiment_id"])
        pages[f"MLflow, {name}"] = name_experiment_page(mlflow, number)
    return pages


def find_experiments(address: str) -> list[dict[str, Any]]:
    """Return the experiments of an MLflow server, one for each dataset; none if it fails."""
    body = json.dumps({"max_results": MAX_DATASETS + 1}).encode()
    request = urllib.request.Request(
        f"{address}/api/2.0/mlflow/experiments/search",
        body,
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            found: list[dict[str, Any]] = json.load(response).get("experiments", [])
    except (urllib.error.URLError, OSError, ValueError):
        return []
    return [each for each in found if str(each["experiment_id"]) != "0"]  # 0 is MLflow's own

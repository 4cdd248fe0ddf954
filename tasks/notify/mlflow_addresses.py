"""Where MLflow shows the runs, reports and lists of releases."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from warehouse.home import Home

REPORT = "report.html"  # name of the artifact
VIEW = "ppdm"  # key of the columns that the list of runs shows
WORKFLOW = "workflowType=machine_learning"  # else MLflow shows its pages for chats


@dataclass(frozen=True)
class LoggedRun:
    """The MLflow run of a release."""

    experiment_id: str
    run_id: str


@dataclass(frozen=True)
class RunPages:
    """Where an MLflow server shows a run and its report."""

    run: str
    report: str


def find_pages(home: Path, run: LoggedRun) -> RunPages | None:
    """Return the run's pages, if a given server or that of `ppdm up` shows them."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    address = given if given and given.startswith("http") else Home(home).address("mlflow")
    return name_run_pages(address, run) if address else None


def name_run_pages(address: str, run: LoggedRun) -> RunPages:
    """Return where the MLflow server at this address shows the run, not among its chat pages."""
    page = f"{_page(address)}/#/experiments/{run.experiment_id}/runs/{run.run_id}"
    return RunPages(
        run=f"{page}?{WORKFLOW}",
        report=f"{page}/artifacts/{REPORT}?{WORKFLOW}",
    )


def name_experiments_page(address: str) -> str:
    """Return where the MLflow server at this address lists the datasets."""
    return f"{_page(address)}/#/experiments?{WORKFLOW}"


def name_experiment_page(address: str, experiment: str) -> str:
    """Return the list of releases of a dataset, with columns of outcome, risk and use."""
    return f"{_page(address)}/#/experiments/{experiment}/runs?{WORKFLOW}&viewStateShareKey={VIEW}"


def _page(address: str) -> str:
    """Return a tracking address without its password."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")

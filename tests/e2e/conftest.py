from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.tables import Small


@pytest.fixture
def small(tmp_path: Path, mlflow_template: Path, prefect_api: str) -> Callable[..., Small]:
    """Makes releases in one home, with an MLflow database in place and the server of the tests."""
    return lambda name="small", **settings: at_home(tmp_path, mlflow_template, name, **settings)


def at_home(folder: Path, template: Path, name: str, **settings: Any) -> Small:
    release = Small(folder, name, **settings)
    database = release.home / "views" / "mlflow" / "mlflow.db"
    if not database.exists():
        database.parent.mkdir(parents=True)
        shutil.copyfile(template, database)
    return release

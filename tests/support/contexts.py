"""One builder of release contexts."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

from ppdm_core.model.policy import Policy
from ppdm_core.numerics.noise import Noise
from tasks.context import ReleaseContext
from tasks.ingest.task import survey_raw, write_records
from tests.support.shared_files import make_once
from warehouse.columns import Column, Source
from warehouse.database import Run, Store
from warehouse.home import Home
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.runs import begin_run


def make_context(folder: Path, **changes: Any) -> ReleaseContext:
    """Return the settings of a release of `t.csv` in the folder, and create its home.

    The table has the columns id, x and y. The changes replace fields of the context.
    """
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 1.0}
    fields: dict[str, Any] = {
        "folder": str(folder),
        "file_digest": "f",
        "home": str(folder / "home"),
        "dataset": "table",
        "owner": "o",
        "audience": "a",
        "source": Source("csv", str(folder / "t.csv")),
        "columns": (Column("id", "identifier"), Column("x", **numeric), Column("y", **numeric)),
        "method": "additive_noise",
        "parameters": {"b": 0.5},
        "policy": Policy(required=(), limits={}, shadow_draws=1),
        "record_id": "id",
    }
    context = ReleaseContext(**{**fields, **changes})
    create_home(Path(context.home))
    return context


def create_home(folder: Path) -> Home:
    """Create a home with an empty warehouse, which is copied: its tables take longer to create."""
    home = Home(folder)
    home.create()
    if not home.database.exists():
        shutil.copyfile(find_empty_warehouse(), home.database)
    return home


@cache
def find_empty_warehouse() -> Path:
    """Return the warehouse of a new home."""
    return make_once("warehouse.duckdb", write_empty_warehouse)


def write_empty_warehouse(path: Path) -> None:
    home = Home(path.with_suffix(".home"))
    home.create()
    with Store(home).transaction("tests"):
        pass
    home.database.rename(path)


def open_run(context: ReleaseContext, release_id: str) -> tuple[Store, Run]:
    """Return the warehouse and a run of the release file."""
    with context.open_run(release_id) as (_, run):
        return context.open_store(), run


def read_noise(store: Store, dataset: str) -> Noise:
    """Return the noise of a dataset."""
    with store.transaction("tests") as db:
        return dataset_noise(db, dataset)


def start_run(store: Store, **fields: Any) -> tuple[Run, list[Run]]:
    """Begin a run of a dataset in a transaction of its own."""
    with store.transaction("tests") as db:
        return begin_run(db, **fields)


def write_unchecked(context: ReleaseContext, release_id: str) -> None:
    """Write the validated table without the checks of Great Expectations, which take seconds."""
    with context.open_run(release_id) as (db, run):
        survey = survey_raw(db, context, run)
    write_records(context, run, survey)

"""The names by which commands know releases: an id, `latest`, or `DATASET/latest`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from ppdm_core.settings.errors import suggest_name
from warehouse.database import Run, get_run, list_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.transaction import Transaction

LATEST = "latest"


def find_run(db: Transaction, name: str) -> Run:
    """Return the run that a name stands for; raise BadInput if there is none, or several."""
    dataset, _, last = name.rpartition("/")
    if last != LATEST:
        return get_run(db, name)
    return pick_latest(list_runs(db), dataset)


def pick_latest(runs: Sequence[Run], dataset: str) -> Run:
    """Return the newest run of a dataset, or of the only dataset if the name is empty."""
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    if not runs:
        raise BadInput("There is no release here yet.", remedy="Run `ppdm release FILE` first.")
    if not dataset and len(datasets) > 1:
        names = " or ".join(f"{name}/{LATEST}" for name in datasets)
        raise BadInput(
            f"`{LATEST}` is not clear: this home has {len(datasets)} datasets.",
            remedy=f"Name one: {names}",
        )
    found = [run for run in runs if not dataset or run.dataset == dataset]
    if not found:
        raise BadInput(
            f"There is no dataset '{dataset}' here.", remedy=suggest_name(dataset, datasets)
        )
    return max(found, key=lambda run: run.number)

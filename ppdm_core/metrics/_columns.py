"""Columns that the original and the release share."""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._release import check_same_columns, sample_indices
from ppdm_core.model.arrays import Ints
from ppdm_core.model.errors import NotApplicable

MAX_ROWS = 10_000


def sample_rows(comparison: ReleaseComparison) -> tuple[Ints, Ints]:
    """Return samples of records and rows: the same places if every record has one row."""
    records = sample_indices(len(comparison.X), MAX_ROWS, comparison.rng("records"))
    if comparison.source is None:
        return records, records
    return records, sample_indices(len(comparison.Y), MAX_ROWS, comparison.rng("rows"))


def find_varying_columns(name: str, comparison: ReleaseComparison, least: int = 1) -> Ints:
    """Return the columns that vary in the original; NotApplicable if fewer than ``least``."""
    check_same_columns(name, comparison)
    found = np.flatnonzero(np.ptp(comparison.X, axis=0) > 0)
    if len(found) < least:
        raise NotApplicable(f"{name} needs {'columns' if least > 1 else 'a column'} that vary.")
    return found

"""The same columns before and after."""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Compared
from ppdm_core.metrics._release import check_same_columns, some_of
from ppdm_core.model.arrays import Ints
from ppdm_core.model.errors import NotApplicable

ROWS = 10_000


def sampled(compared: Compared) -> tuple[Ints, Ints]:
    """Records and rows that are looked at: the same ones where every record has its row."""
    records = some_of(len(compared.X), ROWS, compared.rng("records"))
    if compared.source is None:
        return records, records
    return records, some_of(len(compared.Y), ROWS, compared.rng("rows"))


def varied_columns(name: str, compared: Compared, least: int = 1) -> Ints:
    check_same_columns(name, compared)
    found = np.flatnonzero(np.ptp(compared.X, axis=0) > 0)
    if len(found) < least:
        raise NotApplicable(f"{name} needs {'columns' if least > 1 else 'a column'} that vary.")
    return found

"""Tables whose classes are set by hand, and what of a release their tests look at."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.rows import ArrayRows, Rows
from ppdm_core.model.schema import Categorical, Schema
from tests.support.tables import make_schema, make_table, read_cells


def labels(rows: Rows) -> np.ndarray:
    return np.concatenate([block.label for block in rows.blocks()])


def contents(rows: Rows) -> set[bytes]:
    return {bytes(row) for row in read_cells(rows)}


def relabelled(label: list[int], X: np.ndarray | None = None) -> ArrayRows:
    rows = make_table(len(label))
    columns = Schema(make_schema().numeric, label=Categorical("label", ("a", "b", "c")))
    return ArrayRows(columns, rows.whole.X if X is None else X, np.array(label, dtype=np.int32))

"""One builder of small tables, ways to store them, and a release of them from start to end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.release import Released
from ppdm_core.model.rows import BLOCK, ArrayRows, Block, Rows, RowsView, regroup_blocks, slice_rows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling, fit_scaling
from ppdm_core.sanitizers import Sanitizer
from warehouse.parquet_parts import PartRows, to_batch

if TYPE_CHECKING:
    import pandas as pd

KEY = bytes(range(32))
LARGE = BLOCK + 700  # rows, so that a table has more than one block
LABEL = Categorical("label", ("no", "yes"))
WORDS = (Categorical("c0", ("red", "green", "blue")), Categorical("c1", ("yes", "no"), True))


def make_schema(d: int = 5) -> Schema:
    return Schema(tuple(Numeric(f"x{j}", -1.0 - j, 4.0**j) for j in range(d)), label=LABEL)


def make_table(n: int = 60, d: int = 5, seed: int = 1) -> ArrayRows:
    """Return correlated columns of different widths, with keys as the warehouse makes them."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 1))
    share = 1 / (1 + np.exp(-common - rng.standard_normal((n, d))))  # (n, d) in (0, 1)
    columns = make_schema(d)
    return ArrayRows(
        columns,
        columns.lows + columns.widths * share,
        label=(common[:, 0] > 0).astype(np.int32),
        key=rng.integers(0, 256, size=(n, 16), dtype=np.uint8),
    )


def adapt_columns(rows: ArrayRows, sanitizer: Sanitizer) -> ArrayRows:
    """Return the table with the kinds of columns that the method takes.

    The categories of a record follow from its key, wherever it is in the table.
    """
    whole, columns = rows.whole, rows.schema
    X, C = whole.X, whole.C
    if "categorical" in sanitizer.accepts:
        columns = replace(columns, categorical=WORDS)
        C = whole.key[:, :2].astype(np.int32) % 3 - np.array([0, 1], dtype=np.int32)
    if "numeric" not in sanitizer.accepts:
        columns, X = replace(columns, numeric=()), X[:, :0]
    return ArrayRows(columns, X, whole.label, whole.key, C)


def make_frame(values: np.ndarray, prefix: str = "c") -> pd.DataFrame:
    """Return a data frame whose columns are named by a prefix and a number."""
    import pandas as pd

    return pd.DataFrame({f"{prefix}{j}": column for j, column in enumerate(values.T)})


def make_rows(X: np.ndarray, columns: Schema | None = None) -> ArrayRows:
    return ArrayRows(columns or make_schema(X.shape[1]), np.asarray(X, dtype=np.float64))


def make_bounded_rows(X: np.ndarray) -> ArrayRows:
    """Return a table of numbers whose bounds are those of the values."""
    bounds = zip(X.min(axis=0).tolist(), X.max(axis=0).tolist(), strict=True)
    return ArrayRows(Schema(tuple(Numeric(f"x{j}", *b) for j, b in enumerate(bounds))), X)


def insert_record(rows: ArrayRows, position: int) -> ArrayRows:
    """Return the same table with one more record at a position."""
    one = make_table(1, len(rows.schema.numeric), seed=99).whole
    whole = rows.whole
    X, label, key = (
        np.insert(a, position, b, axis=0)
        for a, b in ((whole.X, one.X), (whole.label, one.label), (whole.key, one.key))
    )
    return ArrayRows(rows.schema, X, label, key)


class ChunkRows(ArrayRows):
    """A table that its storage hands over in chunks of ``size`` rows."""

    def __init__(self, rows: ArrayRows, size: int) -> None:
        whole = rows.whole
        super().__init__(rows.schema, whole.X, whole.label, whole.key, whole.C)
        self.size = size

    def blocks(self) -> Iterator[Block]:
        starts = range(0, self.n, self.size)
        return regroup_blocks(slice_rows(self.whole, i, min(i + self.size, self.n)) for i in starts)


class RecomputedRows(ArrayRows):
    """A table whose mapped rows are stored nowhere: every pass runs the step again."""

    def __init__(self, rows: ArrayRows) -> None:
        whole = rows.whole
        super().__init__(rows.schema, whole.X, whole.label, whole.key, whole.C)

    def map(self, step: Callable[[Block], Block], schema: Schema) -> RowsView:
        return RowsView(self, step, schema)


def store_in_parts(rows: ArrayRows, folder: Path) -> PartRows:
    """Store the table as four Parquet files with row groups of 1, 7, 1000 and all other rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    cuts = [0, *(min(rows.n, edge) for edge in (20, 300, 5000)), rows.n]
    for i, size in enumerate((1, 7, 1000, rows.n)):
        batch = to_batch(slice_rows(rows.whole, cuts[i], cuts[i + 1]), rows.schema)
        path = folder / f"part-{i:04d}.parquet"
        pq.write_table(pa.Table.from_batches([batch]), path, row_group_size=size)
    return PartRows(rows.schema, folder)


def fit_sanitizer(sanitizer: Sanitizer, rows: Rows) -> dict[str, Any]:
    scaling = fit_scaling(rows, sanitizer.scale)
    fitted = {**sanitizer.fit(scaling.apply(rows)), "scaling": scaling.as_dict()}
    return json.loads(json.dumps(fitted))  # as a later release reads it


def scale_rows(rows: Rows, fitted: dict[str, Any]) -> Rows:
    return Scaling.from_dict(fitted["scaling"]).apply(rows)


def run_sanitizer(
    sanitizer: Sanitizer, rows: Rows, key: bytes = KEY, fitted: dict[str, Any] | None = None
) -> Released:
    fitted = fit_sanitizer(sanitizer, rows) if fitted is None else fitted
    return sanitizer.sanitize(scale_rows(rows, fitted), Noise(key), fitted)


def read_numbers(rows: Rows) -> np.ndarray:
    return np.concatenate([block.X for block in rows.blocks()])


def read_codes(rows: Rows) -> np.ndarray:
    return np.concatenate([block.C for block in rows.blocks()])


def read_cells(rows: Rows) -> np.ndarray:
    """Return all cells of a table, categories as their codes."""
    return np.hstack([read_numbers(rows), read_codes(rows)])


def read_bytes(rows: Rows) -> bytes:
    """Return all bytes of a table in row order."""
    blocks = list(rows.blocks())
    return b"".join(
        np.concatenate([getattr(block, name) for block in blocks]).tobytes()
        for name in ("X", "C", "label", "key")
    )

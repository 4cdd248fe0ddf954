"""Read a complete source into arrays, without a home and without a declaration of its columns."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from warehouse.columns import Source
from warehouse.scratch import open_scratch_database
from warehouse.sources import SOURCES
from warehouse.sql import ROW, cast_to_number, cast_to_text, column_types, quote_name

TABLE = "main.source"


def read_table_columns(source: Source, label: str | None) -> dict[str, NDArray[Any]]:
    """Return every column of a source in the order of its rows.

    A column is numeric if most of its filled cells are numbers and it is not the label; its other
    cells become NaN. Any other column holds text, with "" for missing cells.
    """
    with open_scratch_database() as db:
        SOURCES[source.kind].load(db, source, TABLE)
        return {
            name: _read_column(db, name, type_name, is_label=name == label)
            for name, type_name in column_types(db, TABLE).items()
        }


def _read_column(
    db: duckdb.DuckDBPyConnection, name: str, type_name: str, *, is_label: bool
) -> NDArray[Any]:
    cell = cast_to_number(name, type_name)
    counts = f"select count({cell}), count({quote_name(name)}) from {TABLE}"
    numbers, filled = db.execute(counts).fetchall()[0]
    is_numeric = 2 * numbers > filled and not is_label
    cell = (
        f"coalesce({cell}, 'nan'::double)" if is_numeric else f"coalesce({cast_to_text(name)}, '')"
    )
    rows = db.execute(f"select {cell} as cell from {TABLE} order by {ROW}").fetchnumpy()
    return np.asarray(rows["cell"], dtype=np.float64 if is_numeric else object)

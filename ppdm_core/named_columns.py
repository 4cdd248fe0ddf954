"""Numeric columns of a recipient's table: by name where it has names, else in a stated order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput

SELECT = "Select these columns, in this order, or give a data frame or a dict of columns."


def read_numeric_columns(table: Any, names: Sequence[str], others: Collection[str] = ()) -> Floats:
    """Return columns of a table as finite numbers, in the order of ``names``.

    A data frame, a dict of columns, a structured array, or one record with names (a dict of
    numbers, a row of a data frame) is read by name, in any order. It may also have columns named in
    ``others``. An array has no names: it must have exactly these columns in this order. The result
    has one row for each record, (n, d); only for a one-dimensional array it is (d,).
    """
    given = list_names(table)
    if given is None:
        return read_array(table, names)
    check_names(given, names, others)
    columns = [np.atleast_1d(read_numbers(table[name], name)) for name in names]
    if len({column.shape for column in columns}) > 1:
        raise BadInput(
            "The columns have different numbers of rows.", remedy="Give one value for each record."
        )
    for column, name in zip(columns, names, strict=True):
        check_finite_cells(column, f"Column '{name}'", name)
    return np.stack(columns, axis=-1) if columns else np.empty((count_rows(table, given), 0))


def list_names(table: Any) -> list[Any] | None:
    """Return the names of the columns of a table, None if it has no names."""
    if getattr(getattr(table, "dtype", None), "names", None):  # a structured array
        return list(table.dtype.names)
    if callable(getattr(table, "keys", None)):  # a dict, a data frame of pandas or one of its rows
        return list(table.keys())
    for attribute in ("column_names", "columns"):  # a table of pyarrow, a data frame of polars
        if hasattr(table, attribute):
            return list(getattr(table, attribute))
    return None


def check_names(given: Sequence[Any], names: Sequence[str], others: Collection[str]) -> None:
    """Check that a table has all columns that are needed, once, and no unknown ones."""
    for name in names:
        if given.count(name) != 1:
            is_missing = name not in given
            raise BadInput(
                f"Column '{name}' is missing." if is_missing else f"Column '{name}' occurs twice.",
                column=name,
                remedy="Add the column." if is_missing else "Rename one of them.",
            )
    for name in given:
        if name not in names and name not in others:
            raise BadInput(
                f"Column '{name}' is not a column of the release.",
                column=str(name),
                remedy=f"Leave it out. Needed are: {', '.join(names)}.",
            )


def read_array(table: Any, names: Sequence[str]) -> Floats:
    """Return an array that has exactly these columns, as finite numbers."""
    try:
        cells = np.asarray(table)
    except ValueError:  # rows of different lengths
        cells = np.empty(0, dtype=object)
    if cells.ndim not in (1, 2) or cells.shape[-1] != len(names):
        raise BadInput(
            f"A table of shape {cells.shape} does not have the {len(names)} columns "
            f"{', '.join(names[:1])} to {', '.join(names[-1:])}.",
            remedy=SELECT,
        )
    values = read_numbers(cells, None)
    for column, name in zip(np.atleast_2d(values).T, names, strict=True):
        check_finite_cells(column, f"Column '{name}'", name)
    return values


def read_numbers(cells: Any, name: str | None) -> Floats:
    """Return cells as floats; raise BadInput if they are not all numbers. Text is no number."""
    try:
        found = np.asarray(cells)
        if is_numeric(found) and (name is None or found.ndim < 2):
            return found.astype(np.float64)
    except (TypeError, ValueError):  # lists of different lengths, or a missing value of pandas
        pass
    raise BadInput(
        "The table holds other cells than numbers."
        if name is None
        else f"Column '{name}' holds other cells than numbers.",
        column=name,
        remedy="Convert it to numbers first.",
    )


def is_numeric(cells: NDArray[Any]) -> bool:
    """Return whether an array can be read as numbers: objects may be, text and dates are not."""
    if cells.dtype.kind == "O":
        return not any(isinstance(cell, str | bytes) for cell in cells.ravel())
    return cells.dtype.kind in "biuf"


def check_finite_cells(cells: Floats, what: str, column: str | None = None) -> None:
    """Raise BadInput if a cell is NaN or infinite; ``what`` is the subject of the sentence."""
    bad = np.flatnonzero(~np.isfinite(cells))
    if len(bad):
        count = "1 cell that is" if len(bad) == 1 else f"{len(bad):,} cells that are"
        raise BadInput(
            f"{what} has {count} NaN or infinite, first in row {bad[0] + 1}.",
            column=column,
            remedy="Leave such records out, or fill the cells.",
        )


def count_rows(table: Any, given: Sequence[Any]) -> int:
    """Return the number of rows of a table with these columns."""
    return len(table[given[0]]) if given else 0

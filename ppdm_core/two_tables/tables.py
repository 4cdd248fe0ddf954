"""A table of any origin: an array, a data frame, a dict of columns, or the content of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name: numbers as float64 (NaN for a missing one), anything else as text."""

    name: str  # as messages name it
    columns: Mapping[str, NDArray[Any]]
    varied_text: tuple[str, ...] = ()  # columns that its file writes in several ways

    @property
    def n(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def numeric(self) -> list[str]:
        return [name for name, cells in self.columns.items() if cells.dtype == np.float64]

    def numbers(self, names: list[str]) -> Floats:
        for name in names:
            self.check(name)
        return np.column_stack([self.columns[name] for name in names])

    def check(self, name: str) -> None:
        if name not in self.columns or self.columns[name].dtype != np.float64:
            what = "holds no numbers" if name in self.columns else "is missing"
            raise BadInput(
                f"Column '{name}' {what} in {self.name}.",
                file=self.name,
                column=name,
                remedy="Give it the same columns as the original.",
            )
        bad = np.flatnonzero(~np.isfinite(self.columns[name]))
        if len(bad):
            cells = "1 cell that is" if len(bad) == 1 else f"{len(bad):,} cells that are"
            raise BadInput(
                f"Column '{name}' of {self.name} has {cells} empty or no finite number, "
                f"first in row {bad[0] + 1}.",
                file=self.name,
                column=name,
                remedy="Fill such cells, or leave the column out of the file.",
            )


def has_names(table: Any) -> bool:
    """Return whether a table has named columns."""
    return hasattr(table, "columns") or isinstance(table, Mapping)


def as_table(name: str, given: Any) -> Table:
    """Return a table with columns by name; those of an array are numbered."""
    if isinstance(given, Table):
        return given
    if has_names(given):
        names = given.columns if hasattr(given, "columns") else given
        columns = {str(each): np.asarray(given[each]) for each in names}
    else:
        array = np.asarray(given)
        if array.ndim != 2:
            raise BadInput(
                f"The {name} table is not two-dimensional.",
                file=name,
                remedy="Give rows and columns.",
            )
        columns = {f"x{j}": array[:, j] for j in range(array.shape[1])}
    if any(cells.ndim != 1 for cells in columns.values()):
        raise BadInput(f"Two columns of {name} have the same name.", file=name, remedy="Rename it.")
    return Table(name, {each: as_numbers(cells) for each, cells in columns.items()})


def as_numbers(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells as floats if all of them are numbers."""
    if cells.dtype.kind in "iuf":
        return cells.astype(np.float64)
    if cells.dtype.kind == "O" and not any(isinstance(cell, str | bool) for cell in cells):
        try:
            return cells.astype(np.float64)
        except (TypeError, ValueError):
            return cells
    return cells


def rename_if_unnamed(original: Table, released: Table) -> list[Table]:
    """Rename the released columns of arrays with different widths: they have none in common."""
    if len(original.columns) != len(released.columns):
        others = {f"y{j}": cells for j, cells in enumerate(released.columns.values())}
        released = replace(released, columns=others)
    return [original, released]

"""The ids of the validated records as text, which leave the warehouse for alignment only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.columns import Column
from warehouse.sql import ROW, build_row_filter, cast_to_text, hide_values
from warehouse.tables import raw_table

if TYPE_CHECKING:
    from warehouse.database import Run
    from warehouse.transaction import Transaction


@hide_values("Reading the record ids")
def read_record_names(
    db: Transaction, run: Run, columns: tuple[Column, ...], record_id: str
) -> list[str]:
    """Return the id of each validated record, in the order of the validated table."""
    query = (
        f"select {cast_to_text(record_id)} from {raw_table(run)} "
        f"where {build_row_filter(columns)} order by {ROW}"
    )
    return [str(name) for (name,) in db.execute(query).fetchall()]

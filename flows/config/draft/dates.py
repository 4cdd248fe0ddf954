"""Draft derived columns for dates, which no method releases as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flows.config.draft.roles import Drafted, has_iso_dates
from warehouse.column_summary import ColumnSummary
from warehouse.columns import Column, Derivation

FUNCTION = "years_since"
WHY = "years from the date in '{}'"


def add_years(
    drafted: Sequence[Drafted], summaries: Iterable[ColumnSummary], date: str
) -> list[Drafted]:
    """Return the columns, and after each column of dates the years from them to ``date``."""
    by_name = {summary.name: summary for summary in summaries}
    taken = {name.lower() for name in by_name}
    columns = []
    for each in drafted:
        columns.append(each)
        summary = by_name[each.name]
        is_full = 2 * summary.filled >= summary.rows
        if each.column.role == "exclude" and has_iso_dates(summary) and is_full:
            name = choose_name(each.name, taken)
            taken.add(name.lower())
            columns.append(draft_years(summary, name, date))
    return columns


def choose_name(source: str, taken: set[str]) -> str:
    """Return a name that no column has, upper and lower case counting as the same."""
    name, number = f"{source}_years", 2
    while name.lower() in taken:
        name, number = f"{source}_years_{number}", number + 1
    return name


def draft_years(summary: ColumnSummary, name: str, date: str) -> Drafted:
    """Return the derived column of a column of dates."""
    column = Column(
        name,
        "feature",
        "numeric",
        "from_data",
        "from_data",
        missing="median" if summary.filled < summary.rows else "reject",
        derivation=Derivation(FUNCTION, (summary.name,), date=date),
    )
    return Drafted(column, WHY.format(summary.name))

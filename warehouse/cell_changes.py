"""What validation changes in a table before it is perturbed, as counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warehouse.column_survey import has_other, is_numeric_feature, survey_key
from warehouse.columns import Column
from warehouse.raw_profile import MISSING, ROWS, ROWS_LEFT, UNKNOWN, entry

Counts = Mapping[str, int]  # by column


@dataclass(frozen=True)
class CellChanges:
    """Counts by column, of those where anything is changed."""

    dropped_rows: int
    dropped_empty: Counts  # rows with an empty cell; a row may be counted for several columns
    dropped_unlisted: Counts  # rows with a category that is not listed
    clamped: Counts  # cells moved to the bounds of their column
    imputed: Counts  # empty cells filled
    other: Counts  # cells that become "other"; a column with this rule is named without any, too


def count_changes(figures: Mapping[str, Any], columns: Sequence[Column]) -> CellChanges:
    """Return what validation changes; ``figures`` are those of the profile and the survey."""
    released = [column for column in columns if column.role in ("feature", "label")]
    numeric = [column for column in columns if is_numeric_feature(column)]

    def count(check: str, columns: Iterable[Column]) -> dict[str, int]:
        return select_positive({each.name: figures[entry(check, each)] for each in columns})

    def survey(figure: str) -> dict[str, int]:
        return select_positive({each.name: figures[survey_key(figure, each)] for each in numeric})

    return CellChanges(
        dropped_rows=int(figures[ROWS] - figures[ROWS_LEFT]),
        dropped_empty=count(MISSING, (c for c in released if c.missing == "drop_row")),
        dropped_unlisted=count(
            UNKNOWN, (c for c in released if c.outside == "drop_row" and c.categories)
        ),
        clamped=survey("clamped"),
        imputed=survey("imputed"),
        other={
            each.name: int(figures[survey_key("other", each)])
            for each in columns
            if has_other(each)
        },
    )


def select_positive(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts above zero."""
    return {name: int(count) for name, count in counts.items() if count}

"""Figures of features that validation needs, from one scan of the raw table."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.columns import OTHER, Column
from warehouse.sql import build_category_condition, count_where, literal


def is_numeric_feature(column: Column) -> bool:
    """Return whether a column is a numeric feature."""
    return column.role == "feature" and column.type == "numeric"


def has_other(column: Column) -> bool:
    """Return whether cells that are not listed become "other"."""
    return column.role == "feature" and column.outside == OTHER


def survey_key(figure: str, column: Column) -> str:
    """Return the key of a figure of a column among those of ``list_survey_figures``."""
    return f"survey: {figure} of '{column.name}'"


def list_survey_figures(columns: Sequence[Column]) -> dict[str, str]:
    """Return SQL for what the validated table needs of features, for ``profile``."""
    figures = {}
    for i, column in enumerate(columns):
        x = f"x{i}"
        if has_other(column):
            known = build_category_condition(x, column)
            condition = f"kept and {x} is not null and not {known}"
            figures[survey_key("other", column)] = count_where(condition)
        if not is_numeric_feature(column):
            continue
        low, high = (
            "null" if bound == "from_data" else literal(bound or 0.0)
            for bound in (column.low, column.high)
        )
        figures[survey_key("least", column)] = f"min(if(kept, {x}, null))"
        figures[survey_key("most", column)] = f"max(if(kept, {x}, null))"
        figures[survey_key("median", column)] = "null"  # profile fills it in
        figures[survey_key("clamped", column)] = count_where(
            f"kept and ({x} < {low} or {x} > {high})"
        )
        figures[survey_key("imputed", column)] = count_where(f"kept and {x} is null")
    return figures

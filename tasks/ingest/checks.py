"""The checks of a source: each compares one figure of its profile with bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warehouse.columns import OTHER, Column
from warehouse.raw_profile import (
    CLASSES,
    CONSTANT,
    DUPLICATES,
    MISSING,
    NOT_A_NUMBER,
    NOT_FINITE,
    OUTSIDE,
    ROWS,
    ROWS_LEFT,
    UNKNOWN,
    VALUES,
    entry,
    first_row,
)

CELLS = {  # check: one such cell, several, and the remedy
    MISSING: (
        "is empty",
        "are empty",
        'Fill them, or declare missing = "drop_row" (or "median" for a numeric feature), a weaker '
        'promise, or "keep" for a categorical feature.',
    ),
    NOT_A_NUMBER: (
        "is not a number",
        "are not numbers",
        'Correct them, or declare type = "categorical".',
    ),
    NOT_FINITE: (
        "is NaN or infinite",
        "are NaN or infinite",
        "Correct them, or leave them empty and declare 'missing'.",
    ),
    OUTSIDE: (
        "is outside the declared bounds",
        "are outside the declared bounds",
        'Correct them or the bounds, or declare outside = "clamp".',
    ),
    UNKNOWN: (
        "is not among the declared categories",
        "are not among the declared categories",
        'Correct them, add to \'categories\', or declare outside = "other" or "drop_row".',
    ),
}
DERIVED_CELLS = {  # the same of derived columns
    MISSING: (
        "is empty",
        "are empty",
        "A derived cell is empty where a cell of its sources is, or where the result is not "
        'defined. Declare missing = "drop_row" (or "median" for numbers), a weaker promise, or '
        '"keep" for bins.',
    ),
    UNKNOWN: (
        "is beyond the edges",
        "are beyond the edges",
        'Widen \'edges\', or declare outside = "clamp", "other" or "drop_row".',
    ),
}


@dataclass(frozen=True)
class Check:
    """One figure of the profile, its bounds, and the message if it is outside."""

    key: str
    message: str
    remedy: str
    column: str | None = None
    low: float = 0
    high: float = 0
    is_derived: bool = False  # may fail only because another check of the same column does


def list_checks(
    profile: Mapping[str, float | int], columns: Sequence[Column], record_id: str | None, file: str
) -> list[Check]:
    """Return the checks of every declared column."""
    checks = [
        Check(ROWS, f"{file} has fewer than 2 rows.", "Give more rows.", low=2, high=math.inf),
        Check(
            ROWS_LEFT,
            f"{file} has fewer than 2 rows that are not dropped.",
            "Fill the missing cells, list all categories, or drop no rows.",
            low=2,
            high=math.inf,
        ),
    ]
    for column in columns:
        if column.name == record_id:
            checks += _id_checks(profile, column, file)
        elif column.role in ("feature", "label"):
            checks += _value_checks(profile, column, file)
    return checks


def _id_checks(profile: Mapping[str, float | int], column: Column, file: str) -> Iterator[Check]:
    yield _cells(profile, column, MISSING, file, is_record_id=True)
    key = entry(DUPLICATES, column, is_record_id=True)
    count = int(profile.get(key, 0))
    yield Check(
        key,
        f"Column '{column.name}' of {file} is the record id and has {count} repeated "
        f"value{'' if count == 1 else 's'}.",
        "Make every id unique, or remove 'record_id' from [dataset].",
        column.name,
    )


def _value_checks(profile: Mapping[str, float | int], column: Column, file: str) -> Iterator[Check]:
    of_file = f"Column '{column.name}' of {file}"
    if column.missing == "reject":
        yield _cells(profile, column, MISSING, file)
    if column.type == "categorical":
        if column.outside not in ("drop_row", OTHER):
            yield _cells(profile, column, UNKNOWN, file)
        if column.role == "label":
            yield Check(
                entry(CLASSES, column),
                f"{of_file} is the label and has fewer than 2 classes.",
                'Give records of several classes, or declare role = "exclude".',
                column.name,
                low=2,
                high=math.inf,
                is_derived=True,
            )
        return
    yield _cells(profile, column, NOT_A_NUMBER, file)
    yield _cells(profile, column, NOT_FINITE, file)
    if column.outside == "reject" and (column.low, column.high) != ("from_data", "from_data"):
        yield _cells(profile, column, OUTSIDE, file)
    yield Check(
        entry(VALUES, column),
        f"{of_file} has no values.",
        'Fill it, or declare role = "exclude".',
        column.name,
        low=1,
        high=math.inf,
        is_derived=True,
    )
    if column.is_from_data:
        yield Check(
            entry(CONSTANT, column),
            f"{of_file} is constant, so that the data give no bounds.",
            'Declare low and high, or role = "exclude".',
            column.name,
            is_derived=True,
        )


def _cells(
    profile: Mapping[str, float | int],
    column: Column,
    bad: str,
    file: str,
    *,
    is_record_id: bool = False,
) -> Check:
    key = entry(bad, column, is_record_id=is_record_id)
    count = int(profile.get(key, 0))
    row = int(profile.get(first_row(bad, column, is_record_id=is_record_id), 0))
    texts = CELLS if column.derivation is None else {**CELLS, **DERIVED_CELLS}
    one, several, remedy = texts[bad]
    found = (
        f"1 cell that {one}, in row {row}"
        if count == 1
        else (f"{count} cells that {several}; the first is in row {row}")
    )
    if is_record_id:
        remedy = "Give every record an id, or remove 'record_id' from [dataset]."
    return Check(key, f"Column '{column.name}' of {file} has {found}.", remedy, column.name)

"""The checks of a source's profile with Great Expectations, which receives no cell."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ppdm_core.model.errors import BadInput, Defect
from warehouse.columns import Column
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
        'Fill them, or declare missing = "drop_row" (or "median" for a numeric feature, "keep" for '
        "a categorical one).",
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
        "Correct them, add to 'categories', or declare outside = \"drop_row\".",
    ),
}


@dataclass(frozen=True)
class Check:
    """One figure of the profile, its bounds, and the message if it is outside."""

    key: str
    message: str
    remedy: str
    column: str | None = None
    low: int = 0
    high: int | None = 0

    def holds(self, profile: Mapping[str, float | int]) -> bool:
        """Return whether the figure is within the bounds, as Great Expectations decides it."""
        return self.low <= profile[self.key] and (
            self.high is None or profile[self.key] <= self.high
        )


def check_profile(
    profile: Mapping[str, float | int],
    columns: Sequence[Column],
    *,
    record_id: str | None,
    file: str,
) -> dict[str, Any]:
    """Raise ``BadInput`` on the first failed check, in the order of the declared columns."""
    unusable = sum(value is None or not math.isfinite(value) for value in profile.values())
    if unusable:  # Great Expectations would pass over them
        raise Defect(f"The profile has {unusable} figures that are no numbers.")
    checks = list_checks(profile, columns, record_id, os.path.basename(file))
    passed = _evaluate(profile, checks)
    for each in checks:
        if not passed[each.key]:
            raise BadInput(each.message, file=file, column=each.column, remedy=each.remedy)
    return {"checks": len(checks), "counts": dict(profile)}


def list_checks(
    profile: Mapping[str, float | int], columns: Sequence[Column], record_id: str | None, file: str
) -> list[Check]:
    """Return the checks of every declared column."""
    checks = [
        Check(ROWS, f"{file} has fewer than 2 rows.", "Give more rows.", low=2, high=None),
        Check(
            ROWS_LEFT,
            f"{file} has fewer than 2 rows that are not dropped.",
            "Fill the missing cells, list all categories, or drop no rows.",
            low=2,
            high=None,
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
        if column.outside != "drop_row":
            yield _cells(profile, column, UNKNOWN, file)
        if column.role == "label":
            yield Check(
                entry(CLASSES, column),
                f"{of_file} is the label and has fewer than 2 classes.",
                'Give records of several classes, or declare role = "exclude".',
                column.name,
                low=2,
                high=None,
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
        high=None,
    )
    if "from_data" in (column.low, column.high):
        yield Check(
            entry(CONSTANT, column),
            f"{of_file} is constant, so that the data give no bounds.",
            'Declare low and high, or role = "exclude".',
            column.name,
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
    one, several, remedy = CELLS[bad]
    found = (
        f"1 cell that {one}, in row {row}"
        if count == 1
        else (f"{count} cells that {several}; the first is in row {row}")
    )
    if is_record_id:
        remedy = "Give every record an id, or remove 'record_id' from [dataset]."
    return Check(key, f"Column '{column.name}' of {file} has {found}.", remedy, column.name)


def preload() -> None:
    """Import Great Expectations, while the program waits for something else."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the standard library, on import
        import great_expectations
    assert great_expectations


def _evaluate(profile: Mapping[str, float | int], checks: Sequence[Check]) -> dict[str, bool]:
    """Return which checks pass.

    Figures with the same bounds are one column, because an expectation costs milliseconds and
    there are several figures for each of perhaps hundreds of columns.
    """
    missing = sum(each.key not in profile for each in checks)
    if missing:
        raise Defect(f"The profile lacks {missing} of {len(checks)} figures.")
    bounds = {f"{each.low} to {each.high}": (each.low, each.high) for each in checks}
    figures = {
        name: [profile[each.key] for each in checks if (each.low, each.high) == pair]
        for name, pair in bounds.items()
    }
    good = _judge(figures, bounds)
    held = {each.key: each.holds(profile) for each in checks}
    if all(good.values()) != all(held.values()):
        raise Defect("Great Expectations and the profile disagree.")
    return held


def _judge(
    figures: Mapping[str, list[float | int]], bounds: Mapping[str, tuple[int, int | None]]
) -> dict[str, bool]:
    """Return which bounds hold; errors of Great Expectations, which look like failures, raise."""
    preload()
    import great_expectations as gx
    import pandas as pd
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("profile").add_dataframe_asset("profile")
    longest = max(map(len, figures.values()))
    frame = pd.DataFrame(
        {name: values + values[-1:] * (longest - len(values)) for name, values in figures.items()}
    )
    batch = asset.add_batch_definition_whole_dataframe("profile").get_batch(
        batch_parameters={"dataframe": frame}
    )
    expectations: list[Any] = []
    for name, (low, high) in bounds.items():
        expectations.append(gx.expectations.ExpectColumnMinToBeBetween(column=name, min_value=low))
        if high is not None:
            most = gx.expectations.ExpectColumnMaxToBeBetween(column=name, max_value=high)
            expectations.append(most)
    results = batch.validate(gx.ExpectationSuite(name="profile", expectations=expectations)).results
    if len(results) != len(expectations):
        raise Defect(f"Great Expectations judged {len(results)} of {len(expectations)} figures.")
    good = dict.fromkeys(bounds, True)
    for result in results:
        if _has_exception(result.exception_info) or result.expectation_config is None:
            raise Defect("Great Expectations failed on the profile.")
        good[result.expectation_config.kwargs["column"]] &= result.success is True
    return good


def _has_exception(info: Any) -> bool:
    """Return whether a record, or one of several records by metric, reports an exception."""
    records = [info] if "raised_exception" in info else list(info.values())
    return any(record["raised_exception"] is not False for record in records)

"""The judgement of a source by Great Expectations, which receives its profile and no cell."""

from __future__ import annotations

import json
import math
import os
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ppdm_core.model.errors import BadInput, Defect, ErrorList
from tasks.ingest.checks import Check, list_checks
from warehouse.columns import Column
from warehouse.expectations import Expectation, list_figures

Profile = Mapping[str, float | int]
Limits = tuple[str, float, float]  # key of a figure, its smallest and its largest value
Judged = tuple[str | None, Any]  # key and success; no key: it failed
Validate = Callable[[Profile, Sequence[Limits]], list[Judged]]
MAX_ARGUMENT_CHARACTERS = 80


def check_profile(
    profile: Profile,
    columns: Sequence[Column],
    *,
    record_id: str | None,
    file: str,
    validate: Validate | None = None,
) -> dict[str, Any]:
    """Raise ``BadInput`` with all failed checks, in the order of the declared columns.

    A table without rows fails all checks: then only that is said. ``validate``: what asks Great
    Expectations, if not this process.
    """
    check_figures(profile)
    checks = list_checks(profile, columns, record_id, os.path.basename(file))
    passed = judge(profile, checks, validate)
    errors, columns_with_errors = ErrorList(), set()
    for each in checks:
        if passed[each.key] or (each.is_derived and each.column in columns_with_errors):
            continue
        errors.add(BadInput(each.message, file=file, column=each.column, remedy=each.remedy))
        columns_with_errors.add(each.column)
        if each.column is None:
            break
    errors.raise_all()
    return {"checks": len(checks), "counts": dict(profile)}


def judge_expectations(
    profile: Profile, expectations: Sequence[Expectation], validate: Validate | None = None
) -> list[bool]:
    """Return which expectations of a release file hold."""
    check_figures(profile)
    checks = [
        [
            Check(key, "", "", low=figure.low, high=figure.high)
            for key, figure in list_figures(expectation, position)
        ]
        for position, expectation in enumerate(expectations)
    ]
    passed = judge(profile, [each for figures in checks for each in figures], validate)
    return [all(passed[each.key] for each in figures) for figures in checks]


def check_expectations(
    expectations: Sequence[Expectation], passed: Sequence[bool], *, file: str
) -> None:
    """Raise ``BadInput`` with all expectations that do not hold.

    The message has the declared limits and no observed value, which is private.
    """
    errors, name = ErrorList(), os.path.basename(file)
    for expectation, holds in zip(expectations, passed, strict=True):
        if not holds:
            column = expectation.column
            place = name if column is None else f"Column '{column}' of {name}"
            why = f"{place} does not meet {format_expectation(expectation)}."
            remedy = "Correct the table, or the expectation in [[expectations]]."
            errors.add(BadInput(why, file=file, column=column, remedy=remedy))
    errors.raise_all()


def format_expectation(expectation: Expectation) -> str:
    """Return the type of an expectation and its declared arguments."""
    texts = (f"{name} = {value!r}" for name, value in expectation.list_arguments().items())
    arguments = ", ".join(textwrap.shorten(text, MAX_ARGUMENT_CHARACTERS) for text in texts)
    return f"{expectation.type} ({arguments})" if arguments else expectation.type


def preload() -> None:
    """Import Great Expectations, while the program waits for something else."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the standard library, on import
        import great_expectations
    assert great_expectations


def check_figures(profile: Profile) -> None:
    """Raise ``Defect`` if a figure is not a finite number."""
    unusable = sum(value is None or not math.isfinite(value) for value in profile.values())
    if unusable:
        raise Defect(f"The profile has {unusable} figures that are no numbers.")


def judge(
    profile: Profile, checks: Sequence[Check], validate: Validate | None = None
) -> dict[str, bool]:
    """Return which checks pass: Great Expectations has one expectation for the figure of each.

    Its errors look like failures, and it does not judge what is missing: both are defects.
    """
    if not checks:
        return {}
    missing = sum(each.key not in profile for each in checks)
    if missing:
        raise Defect(f"The profile lacks {missing} of {len(checks)} figures.")
    figures = {each.key: profile[each.key] for each in checks}
    limits = [(each.key, each.low, each.high) for each in checks]
    passed: dict[str, bool] = {}
    for key, success in (validate or validate_figures)(figures, limits):
        if key is None:
            raise Defect("Great Expectations failed on the profile.")
        if not isinstance(success, bool):
            raise Defect("Great Expectations gave no verdict on the profile.")
        passed[key] = success
    if passed.keys() != figures.keys():
        raise Defect(f"Great Expectations judged {len(passed)} of {len(figures)} figures.")
    return passed


def validate_figures(figures: Profile, limits: Sequence[Limits]) -> list[Judged]:
    """Return what Great Expectations says of each figure of a table with one row."""
    preload()
    import great_expectations as gx
    import pandas as pd

    frame = pd.DataFrame([figures])
    batch = open_batches().get_batch(batch_parameters={"dataframe": frame})
    suite = gx.ExpectationSuite(
        name="profile",
        expectations=[
            gx.expectations.ExpectColumnMaxToBeBetween(
                column=key,
                min_value=low if math.isfinite(low) else None,
                max_value=high if math.isfinite(high) else None,
            )
            for key, low, high in limits
        ],
    )
    return [
        (None, None)
        if _has_exception(result.exception_info) or result.expectation_config is None
        else (result.expectation_config.kwargs["column"], result.success)
        for result in batch.validate(suite, result_format="BOOLEAN_ONLY").results
    ]


@cache
def open_batches() -> Any:
    """Return a batch definition for data frames, in a context that writes no file."""
    preload()
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset("frames")
    return asset.add_batch_definition_whole_dataframe("frames")


def _has_exception(info: Any) -> bool:
    """Return whether a record, or one of several records by metric, reports an exception."""
    records = [info] if "raised_exception" in info else list(info.values())
    return not records or any(record["raised_exception"] is not False for record in records)


def format_suite(name: str, entries: Sequence[dict[str, Any]]) -> str:
    """Return a suite of expectations, each with its type and arguments, as JSON."""
    preload()
    import great_expectations as gx

    suite = gx.ExpectationSuite(name=name, expectations=list(entries))
    return json.dumps(suite.to_json_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

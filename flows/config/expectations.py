"""The [[expectations]] of a release file, which add checks of the source to the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from flows.config.columns import ColumnSpec
from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.settings.errors import report_as_value_error, suggest_name
from ppdm_core.settings.sections import Section
from warehouse.expectations import EXPECTATIONS, RANGE, Expectation, QuantileRange

if TYPE_CHECKING:
    Type = str
else:
    Type = Literal[tuple(EXPECTATIONS)]  # the form lists the choices


@report_as_value_error
def _check_type(value: Any) -> Any:
    if isinstance(value, str) and value not in EXPECTATIONS:
        raise BadInput(
            f"Unknown expectation '{value}' in [[expectations]].",
            remedy=suggest_name(value, EXPECTATIONS),
        )
    return value


def _check_value_set(value: Any) -> Any:
    if isinstance(value, list):
        kinds = {"number" if type(each) in (int, float) else type(each).__name__ for each in value}
        if kinds not in ({"str"}, {"number"}):
            raise ValueError("must list texts, or numbers")
    return value


class QuantileRangesSpec(Section):
    """Quantiles, and for each the range that it must be in."""

    quantiles: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        min_length=1, description="Quantiles, from 0 (smallest value) to 1 (largest)."
    )
    value_ranges: list[Annotated[list[float], Field(min_length=2, max_length=2)]] = Field(
        description="For each quantile the lowest and the highest value allowed."
    )


class ExpectationSpec(Section):
    """One expectation, with the name and the arguments that it has in Great Expectations."""

    type: Annotated[Type, BeforeValidator(_check_type)] = Field(
        description="Name of the expectation in Great Expectations."
    )
    column: str | None = Field(default=None, description="A declared column.")
    min_value: float | None = Field(default=None, description="The least allowed value.")
    max_value: float | None = Field(default=None, description="The largest allowed value.")
    value_set: Annotated[list[str] | list[float] | None, BeforeValidator(_check_value_set)] = Field(
        default=None, description="All allowed values: numbers for a numeric feature, else texts."
    )
    mostly: float | None = Field(
        default=None, ge=0, le=1, description="Share of the cells that must fulfil it; default: 1."
    )
    quantile_ranges: QuantileRangesSpec | None = Field(
        default=None, description="Quantiles, and a range [low, high] for each of them."
    )

    def build(self) -> Expectation:
        """Return the expectation as the profile needs it."""
        ranges = self.quantile_ranges
        return Expectation(
            type=self.type,
            column=self.column,
            min_value=self.min_value,
            max_value=self.max_value,
            value_set=None if self.value_set is None else tuple(self.value_set),
            mostly=self.mostly,
            quantile_ranges=None
            if ranges is None
            else tuple(
                QuantileRange(quantile, low, high)
                for quantile, (low, high) in zip(ranges.quantiles, ranges.value_ranges, strict=True)
            ),
        )


def check_expectations(specs: Sequence[ExpectationSpec], columns: Mapping[str, ColumnSpec]) -> None:
    """Raise BadInput if an expectation has wrong arguments or does not fit its column."""
    errors = ErrorList()
    for number, spec in enumerate(specs, 1):
        place = f"entry {number} of [[expectations]] ({spec.type})"
        with errors.collect():
            _check_arguments(spec, place)
            _check_ranges(spec, place)
            if spec.column is not None:
                _check_column(spec, spec.column, columns, place)
    errors.raise_all()


def _check_arguments(spec: ExpectationSpec, place: str) -> None:
    kind = EXPECTATIONS[spec.type]
    given = spec.model_dump(exclude={"type"}, exclude_none=True)
    for name in given:
        if name not in kind.arguments:
            raise BadInput(
                f"The '{name}' key of {place} is not one of its arguments.",
                column=spec.column,
                remedy=f"Its arguments: {', '.join(kind.arguments)}.",
            )
    for name in kind.required:
        if name not in given:
            raise BadInput(
                f"The '{name}' key of {place} is missing.",
                column=spec.column,
                remedy=f"Add '{name}'.",
            )
    if set(RANGE) <= set(kind.arguments) and not set(RANGE) & set(given):
        raise BadInput(
            f"The 'min_value' and 'max_value' keys of {place} are missing.",
            column=spec.column,
            remedy="Add at least one of them.",
        )


def _check_ranges(spec: ExpectationSpec, place: str) -> None:
    low, high = spec.min_value, spec.max_value
    if low is not None and high is not None and low > high:
        raise BadInput(
            f"The 'min_value' key of {place} is larger than 'max_value'.",
            column=spec.column,
            remedy="Correct one of them.",
        )
    ranges = spec.quantile_ranges
    if ranges is None:
        return
    if len(ranges.quantiles) != len(ranges.value_ranges):
        raise BadInput(
            f"The 'quantile_ranges' key of {place} has {len(ranges.quantiles)} quantiles and "
            f"{len(ranges.value_ranges)} value_ranges.",
            column=spec.column,
            remedy="Give one range for each quantile.",
        )
    if any(low > high for low, high in ranges.value_ranges):
        raise BadInput(
            f"The 'quantile_ranges' key of {place} has a range that ends below its start.",
            column=spec.column,
            remedy="Write each range as [low, high].",
        )


def _check_column(
    spec: ExpectationSpec, name: str, columns: Mapping[str, ColumnSpec], place: str
) -> None:
    if name not in columns:
        raise BadInput(
            f"The 'column' key of {place} names '{name}', which is not a declared column.",
            column=name,
            remedy=suggest_name(name, columns),
        )
    is_numeric = columns[name].role == "feature" and not columns[name].is_categorical
    if EXPECTATIONS[spec.type].is_numeric and not is_numeric:
        raise BadInput(
            f"The 'column' key of {place} names '{name}', which is not a numeric feature.",
            column=name,
            remedy='Name a column with role = "feature" and type = "numeric".',
        )
    has_numbers = spec.value_set is not None and not isinstance(spec.value_set[0], str)
    if spec.value_set is not None and has_numbers != is_numeric:
        raise BadInput(
            f"The 'value_set' key of {place} does not fit column '{name}'.",
            column=name,
            remedy="List numbers for a numeric feature, and texts for any other column.",
        )

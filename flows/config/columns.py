"""The columns of a release file: the keys of each column and their checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from flows.config.derivation import IsoDate, check_derivation
from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.settings.errors import suggest_name
from ppdm_core.settings.sections import Section
from warehouse.columns import OTHER, RESERVED, Column, Derivation
from warehouse.derivations import FUNCTIONS, name_bins

BOUNDS_REMEDY = (
    'Declare both, or low = "from_data" and high = "from_data", which is a weaker promise.'
)
TYPE_REMEDY = 'Declare type = "numeric" with low and high, or type = "categorical" with categories.'


def _parse_bound(value: Any) -> Any:
    if value is None or value == "from_data":
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError('must be a number or "from_data"')
    return float(value)


Bound = Annotated[float | Literal["from_data"] | None, BeforeValidator(_parse_bound)]


class ColumnSpec(Section):
    """One column of the source, or one that is derived from it."""

    model_config = ConfigDict(serialize_by_alias=True)
    role: Literal["identifier", "label", "feature", "exclude"] = Field(
        description="Identifies the record, is the class, is a value to release, or is not used."
    )
    type: Literal["numeric", "categorical"] | None = Field(
        default=None, description="Kind of values of a feature."
    )
    low: Bound = Field(default=None, description='Lower bound of the values, or "from_data".')
    high: Bound = Field(default=None, description='Upper bound of the values, or "from_data".')
    categories: list[str] | None = Field(
        default=None, description="All values of a categorical column, spelled as in the source."
    )
    outside: Literal["clamp", "reject", "drop_row", "other"] | None = Field(
        default=None,
        description="What happens to values outside the bounds (clamp, reject) or to categories "
        "that are not listed (reject, drop_row, other; dropped rows are a weaker promise).",
    )
    missing: Literal["reject", "drop_row", "median", "keep"] | None = Field(
        default=None,
        description="What happens to empty cells; those of a categorical feature may be kept as a "
        "separate category. Medians and dropped rows are a weaker promise.",
    )

    derive: str | None = Field(
        default=None,
        description=f"Function that a derived feature is computed by: {', '.join(FUNCTIONS)}.",
    )
    sources: str | list[str] | None = Field(
        default=None,
        alias="from",
        description="Column of the source that a derived feature is computed from; a list of two "
        "columns for a ratio.",
    )
    edges: list[float] | None = Field(
        default=None, description="Edges of the bins, in ascending order; three or more."
    )
    date: IsoDate = Field(default=None, description="The date to which years are counted.")

    @property
    def kind(self) -> Literal["numeric", "categorical"] | None:
        """The type; that of a label is categorical, and that of a derived feature follows."""
        if self.role == "label":
            return "categorical"
        return FUNCTIONS[self.derive].gives if self.derive in FUNCTIONS else self.type

    @property
    def is_categorical(self) -> bool:
        return self.kind == "categorical"

    def list_sources(self) -> tuple[str, ...]:
        """Return the columns that a derived feature is computed from."""
        given = self.sources or []
        return (given,) if isinstance(given, str) else tuple(given)

    def build_derivation(self) -> Derivation | None:
        """Return how the column is computed; None if it is a column of the source."""
        if self.derive is None:
            return None
        return Derivation(
            self.derive, self.list_sources(), tuple(self.edges or ()), self.date or ""
        )


class DefaultsSpec(Section):
    """Settings for features that do not have their own."""

    outside: Literal["clamp", "reject"] = Field(
        default="clamp", description="What happens to values outside the bounds."
    )
    missing: Literal["reject", "drop_row", "median"] = Field(
        default="reject",
        description="What happens to empty cells. Medians and dropped rows are a weaker promise.",
    )


def build_column(name: str, spec: ColumnSpec, defaults: DefaultsSpec) -> Column:
    """Return the column with the defaults applied; they apply to features only."""
    missing, outside = spec.missing, spec.outside
    if spec.role == "feature":
        outside = outside or defaults.outside
        if not (spec.is_categorical and defaults.missing == "median"):
            missing = missing or defaults.missing
    return Column(
        name=name,
        role=spec.role,
        type=spec.kind,
        low=spec.low,
        high=spec.high,
        categories=list_categories(spec),
        outside=outside or "clamp",
        missing=missing or "reject",
        derivation=spec.build_derivation(),
    )


def list_categories(spec: ColumnSpec) -> tuple[str, ...]:
    """Return the declared categories or the bins, and that of all other cells if there is one."""
    declared = tuple(spec.categories or name_bins(spec.edges or ()))
    return (*declared, OTHER) if spec.outside == OTHER and OTHER not in declared else declared


def check_columns(columns: Mapping[str, ColumnSpec], record_id: str | None) -> None:
    """Raise BadInput if a column is declared wrongly, or the columns do not fit together."""
    errors = ErrorList()
    with errors.collect():
        check_each_column(columns)
    with errors.collect():
        _check_roles(columns)
    with errors.collect():
        if record_id is not None:
            check_record_id(record_id, columns)
    errors.raise_all()


def check_each_column(columns: Mapping[str, ColumnSpec]) -> None:
    """Raise BadInput with every column that is declared wrongly."""
    errors = ErrorList()
    for name, spec in columns.items():
        with errors.collect():
            _check_column(name, spec, columns)
    errors.raise_all()


def _check_column(name: str, spec: ColumnSpec, columns: Mapping[str, ColumnSpec]) -> None:
    _check_name(name, columns)
    check_derivation(name, spec, columns)
    if spec.role == "label" and spec.type == "numeric":
        raise _build_error(
            name, "is a label and must be categorical.", 'Declare type = "categorical".'
        )
    if spec.role == "feature" and spec.kind is None:
        raise _build_error(name, "is a feature without a type.", TYPE_REMEDY)
    if spec.is_categorical:
        _check_categorical(name, spec)
    elif spec.role == "feature":
        _check_numeric(name, spec)


def _check_roles(columns: Mapping[str, ColumnSpec]) -> None:
    labels = [name for name, spec in columns.items() if spec.role == "label"]
    if len(labels) > 1:
        raise _build_error(
            labels[1], "is a second label.", "Declare one label and other roles elsewhere."
        )
    if not any(spec.role == "feature" for spec in columns.values()):
        raise BadInput("No column is a feature: nothing to release.", remedy=TYPE_REMEDY)


def _build_error(name: str, what: str, remedy: str) -> BadInput:
    return BadInput(f"Column '{name}' {what}", column=name, remedy=remedy)


def _check_name(name: str, columns: Mapping[str, ColumnSpec]) -> None:
    if name.lower().startswith(RESERVED):
        raise _build_error(name, f"starts with '{RESERVED}', a reserved prefix.", "Rename it.")
    for other in columns:
        if other != name and other.lower() == name.lower():
            raise _build_error(
                name, f"and column '{other}' differ only in case.", "Rename one of them."
            )


def _check_numeric(name: str, spec: ColumnSpec) -> None:
    if spec.categories is not None:
        raise _build_error(name, "is numeric and declares categories.", "Remove 'categories'.")
    if spec.outside in ("drop_row", OTHER):
        what = "drop rows" if spec.outside == "drop_row" else "have a category for other values"
        raise _build_error(
            name, f"is numeric and would {what}.", 'Use outside = "clamp" or "reject".'
        )
    if spec.missing == "keep":
        raise _build_error(
            name, "is numeric and would keep empty cells.", 'Use "median" or "drop_row".'
        )
    if spec.low is None or spec.high is None:
        raise _build_error(name, "is numeric and lacks 'low' or 'high'.", BOUNDS_REMEDY)
    if isinstance(spec.low, float) and isinstance(spec.high, float):
        if not spec.low < spec.high:
            raise _build_error(
                name, f"has low = {spec.low:g} and high = {spec.high:g}.", "Declare low < high."
            )
        if not math.isfinite(spec.high - spec.low):
            raise _build_error(
                name, "has bounds too far apart for a float.", "Declare narrower bounds."
            )


def _check_categorical(name: str, spec: ColumnSpec) -> None:
    if spec.low is not None or spec.high is not None:
        raise _build_error(name, "is categorical and declares 'low' or 'high'.", "Remove them.")
    if spec.outside == "clamp" and not spec.edges:
        raise _build_error(
            name, "is categorical and has no bounds.", 'Use outside = "drop_row" or "other".'
        )
    if spec.missing == "median":
        raise _build_error(name, "is categorical and has no median.", 'Use "reject" or "drop_row".')
    if spec.role == "label" and spec.outside == OTHER:
        raise _build_error(
            name, "is a label and would have other classes.", 'Use "reject" or "drop_row".'
        )
    if spec.role == "label" and spec.missing == "keep":
        raise _build_error(
            name, "is a label and would keep empty cells.", 'Use "reject" or "drop_row".'
        )
    if spec.derive is not None:
        return  # its categories are the bins
    if not spec.categories:
        raise _build_error(
            name, "is categorical and lists no categories.", "Declare categories = [...]."
        )
    seen = set()
    for category in spec.categories:
        if category in seen:
            raise _build_error(
                name, f"lists the category '{category}' twice.", "Remove one of them."
            )
        seen.add(category)
    if spec.role == "label" and len(seen) == 1:
        raise _build_error(
            name, "is a label with one category.", 'List all classes, or role = "exclude".'
        )


def check_record_id(record_id: str, columns: Mapping[str, ColumnSpec]) -> None:
    """Raise BadInput if the record id is not declared, or not as an identifier."""
    if record_id not in columns:
        raise BadInput(
            f"The record_id '{record_id}' is not a declared column.",
            column=record_id,
            remedy=suggest_name(record_id, columns),
        )
    if columns[record_id].role != "identifier":
        raise _build_error(
            record_id, "is the record_id and must be an identifier.", 'Declare role = "identifier".'
        )

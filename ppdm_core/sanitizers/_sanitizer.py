"""The interface of sanitizers: frozen, checked parameters with three methods.

``fit`` learns from records what the method needs, such as a basis. The result is stored and used
for every later release, because two fits with one changed record between them would reveal that
record. ``sanitize`` turns rows into released rows; all its randomness comes from ``noise``.
``guarantee`` returns the bound of the method.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ppdm_core.model.advice import Advice
from ppdm_core.model.arrays import Codes, Floats, Keys
from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.model.parameter_checks import (
    BadParameter,
    check_choice,
    is_number,
    parameter_error,
)
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise, encode_numbers
from ppdm_core.numerics.scaling import SCALES
from ppdm_core.sanitizers._sweep import Axes, SweepScope

Direction = Literal["raise", "lower"]
# How sites that release together fit a method: each its own, from bounds, or from summed moments.
CommonFit = Literal["own", "bounds", "moments"]
OPPOSITES: dict[Direction, Direction] = {"raise": "lower", "lower": "raise"}
Fitted = Mapping[str, Any]  # plain numbers, lists and text, so that it can be stored as JSON


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a record with its own random draw.

    While the record's key, the fingerprint and the consumed bytes stay the same, a later release
    uses the same draw.
    """

    fingerprint: bytes
    consumed: Callable[[Block], Keys]  # (n, some) bytes of each record
    ln_record: float  # ln gamma of one draw, inf without a bound


@dataclass(frozen=True, kw_only=True)
class Sanitizer(ABC):
    """The common base of all methods.

    **Parameters**:
    ``scale``: unit of the columns before the method is applied: "minmax" (the bounds become 0 and
    1), "zscore" (deviations from the mean of records, a weaker guarantee) or "none".
    ``refit_waiver``: who allows a second fit on private records, and why.
    """

    name: ClassVar[str]
    accepts: ClassVar[frozenset[str]]  # subset of {"numeric", "categorical"}
    row_aligned: ClassVar[bool]  # released row i belongs to record i
    common_fit: ClassVar[CommonFit | None] = None  # None: sites cannot release it together
    min_features: ClassVar[int] = 1
    is_usual: ClassVar[bool] = False  # drafted for tables of these kinds of columns
    is_composite: ClassVar[bool] = False  # runs other methods
    example: ClassVar[Mapping[str, Any]] = {}  # parameters to start with
    more_private: ClassVar[Mapping[str, Direction]] = {}  # parameter -> where it reveals less

    scale: str = "minmax"
    refit_waiver: str = ""

    def __post_init__(self) -> None:
        check_choice(self, "scale", SCALES)
        if not isinstance(self.refit_waiver, str):
            raise parameter_error(
                self, "refit_waiver", "text that says who and why", self.refit_waiver
            )

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the method with these parameters, or raise BadInput if they are not valid."""
        errors, near_misses = ErrorList(), set()
        known = [field.name for field in fields(cls)]
        for name in parameters:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                near_misses.update(near)
                remedy = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
                why = f"'{name}' is not a parameter of method '{cls.name}'."
                errors.add(BadInput(why, remedy=remedy))
        needed = [field.name for field in fields(cls) if field.default is MISSING]
        missing = [name for name in needed if name not in parameters]
        for name in missing:
            if name not in near_misses:
                why = f"Method '{cls.name}' needs the parameter '{name}'."
                errors.add(BadInput(why, remedy=f"Add '{name}' to [sanitizer]."))
        given = {name: value for name, value in parameters.items() if name in known}
        if not missing:
            errors.found += cls.list_wrong_values(given)
        errors.raise_all()
        return cls(**given)

    @classmethod
    def list_wrong_values(cls, parameters: Mapping[str, Any]) -> list[BadInput]:
        """Return the errors of all wrong values; one that was found is replaced to look further.

        After a wrong choice, which other parameters may depend on, the search ends.
        """
        errors, tried = ErrorList(), dict(parameters)
        usual = {field.name: field.default for field in fields(cls)} | dict(cls.example)
        for _ in parameters:
            try:
                cls(**tried)
            except BadParameter as error:
                errors.add(error)
                name = error.parameter
                if isinstance(tried.get(name, ""), str) or tried[name] == usual[name]:
                    break
                tried[name] = usual[name]
            except BadInput as error:
                errors.add(error)
                break
            else:
                break
        return errors.found

    def advise(self) -> Advice:
        """Return which parameters to change so that a release reveals less, or is more useful.

        A parameter that is not given is left out.
        """
        given = {name: way for name, way in self.more_private.items() if getattr(self, name)}
        words = {name: f"'{name}'{format_given(getattr(self, name))}" for name in given}
        return Advice(
            tuple(f"{way} {words[name]}" for name, way in given.items()),
            tuple(f"{OPPOSITES[way]} {words[name]}" for name, way in given.items()),
        )

    @classmethod
    def suggest_parameters(cls, features: int, gamma: float) -> Mapping[str, Any]:
        """Return parameters to start with; for a method with a bound, gamma of a record."""
        return cls.example

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        """Return what a tune varies: parameter changes by axis, the most promising first.

        ``given`` are the present parameters, which stay where no axis changes them.
        """
        return {}

    @property
    def keeps_columns(self) -> bool:
        """Whether released columns are the original ones, in their units."""
        return False

    @property
    def set_aside(self) -> float:
        """Share of the records that are used for the fit and never released."""
        return 0.0

    @property
    def learns(self) -> bool:
        """Whether the fit depends on records; a second fit then needs a waiver."""
        return self.scale == "zscore"

    def check_features(self, d: int) -> None:
        """Raise BadInput if the method cannot release ``d`` features; no record is read."""
        if d < 1:
            raise BadInput(
                f"Method '{self.name}' has no feature to release.",
                remedy='Give a column the role "feature".',
            )
        if d < self.min_features:
            raise BadInput(
                f"Method '{self.name}' needs at least {self.min_features} features; there is {d}.",
                remedy='Give more columns the role "feature", or choose another method.',
            )

    def check_kinds(self, numeric: int, categorical: int) -> None:
        """Raise BadInput if the method cannot release this many features of each kind."""
        self.check_features(numeric + categorical)

    def fit_parameters(self) -> dict[str, Any]:
        """Return the parameters that the fit depends on, in addition to the records."""
        return {"scale": self.scale}

    @abstractmethod
    def fit(self, rows: Rows) -> Fitted:
        """Return what the method learns from records."""

    @abstractmethod
    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        """Return the released rows and the public parameters."""

    @abstractmethod
    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        """Return the bound on amplification by one release."""

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats] | None:
        """Return centre and loadings of the secret linear map, or None if there is none."""
        return None

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        """Return the numbers that determine the released record, as plain lists."""
        return []

    def fingerprint(self, schema: Schema, fitted: Fitted) -> bytes:
        """Return a digest of the mechanism; another digest gives all records other noise.

        It covers the resulting mechanism, not the parameters: two settings that lead to the same
        mechanism must not give two draws of its noise.
        """
        columns = [(column.name, column.low, column.high) for column in schema.numeric]
        numbers = self.mechanism(schema, fitted)
        text = json.dumps([self.name, columns, fitted.get("scaling"), numbers], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=32).digest()

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        """Return the parts that the ledger charges; their figures add up to the record's figure."""

        def consumed(block: Block) -> Keys:
            numbers = (
                encode_numbers(block.X)
                if "numeric" in self.accepts
                else encode_numbers(block.X[:, :0])
            )
            codes = block.C if "categorical" in self.accepts else block.C[:, :0]
            return np.concatenate([numbers, encode_codes(codes)], axis=1)

        ln_record = self.guarantee(schema, fitted).ln_record
        return (Part(self.fingerprint(schema, fitted), consumed, ln_record),)

    def list_weaker_promises(self, schema: Schema) -> list[str]:
        """Return what the bound does not cover, because it depends on private data.

        It follows from the settings alone: whether a cell was really filled, or a row dropped, is
        private itself.
        """
        promises = []
        columns = schema.numeric if "numeric" in self.accepts else ()
        if any(column.from_data for column in columns):
            promises.append("Bounds of columns come from the private data, in two digits.")
        if any(column.imputed for column in columns):
            promises.append(
                "Empty cells hold the median of their column: a row with such a cell depends on "
                "other records, and what it reveals of them is not covered."
            )
        if columns and self.scale == "zscore" and not self.set_aside:
            promises.append("Means and deviations of columns come from records, in two digits.")
        if schema.drops_rows:
            promises.append(
                "Rows are dropped because of their values (an empty cell, or a category that is "
                "not listed): a bound compares only values that are not dropped, and whether a "
                "record is in the release is not covered."
            )
        return promises


def format_given(value: Any) -> str:
    """Return the present value of a parameter in parentheses; nothing for a nested table."""
    if isinstance(value, Mapping):
        numbers = [f"{name} = {each:g}" for name, each in value.items() if is_number(each)]
        return f" (now {', '.join(numbers)})" if numbers else ""
    return f" (now {value:g})"


def encode_codes(codes: Codes) -> Keys:  # (n, c) to (n, 4 c)
    """Return the codes of each record as bytes, for digests."""
    return np.ascontiguousarray(codes, dtype="<i4").view(np.uint8)

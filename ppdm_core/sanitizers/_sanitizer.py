"""What every sanitizer is: a frozen set of checked parameters with three verbs.

``fit`` learns from records what the method needs (a basis, say). The pipeline stores the result
and hands it to every later release, because two fits around one changed record would give that
record away. ``sanitize`` turns rows into released rows; all its randomness comes from ``noise``.
``guarantee`` states what is promised, no more.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from ppdm_core.model.arrays import Codes, Floats, Keys
from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import check_choice, reject
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise, as_bytes
from ppdm_core.numerics.scaling import SCALES

Fitted = Mapping[str, Any]  # plain numbers, lists and text, so that it can be stored as JSON


@dataclass(frozen=True, eq=False)
class Part:
    """Something of a record that is drawn by itself: while who it is, the fingerprint and what is
    consumed stay the same, a later release draws nothing new."""

    fingerprint: bytes
    consumed: Callable[[Block], Keys]  # (n, some) bytes of each record
    ln_record: float  # what one draw of it may tell, inf where there is no bound


@dataclass(frozen=True, kw_only=True)
class Sanitizer(ABC):
    """What all methods share.

    **Parameters**:
    ``scale``: unit of the columns before anything is done to them: "minmax" (the bounds become 0
    and 1), "zscore" (deviations from the mean of records, a weaker promise) or "none".
    ``refit_waiver``: who allows a second fit on private records, and why.
    """

    name: ClassVar[str]
    accepts: ClassVar[frozenset[str]]  # of "numeric", "categorical"
    row_aligned: ClassVar[bool]  # released row i belongs to record i
    least_features: ClassVar[int] = 1
    example: ClassVar[Mapping[str, Any]] = {}  # parameters to start with

    scale: str = "minmax"
    refit_waiver: str = ""

    def __post_init__(self) -> None:
        check_choice(self, "scale", SCALES)
        if not isinstance(self.refit_waiver, str):
            raise reject(self, "refit_waiver", "text that says who and why", self.refit_waiver)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        known = [field.name for field in fields(cls)]
        for name in parameters:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise BadInput(
                    f"'{name}' is not a parameter of method '{cls.name}'.",
                    remedy=f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}.",
                )
        for field in fields(cls):
            if field.default is MISSING and field.name not in parameters:
                raise BadInput(
                    f"Method '{cls.name}' needs the parameter '{field.name}'.",
                    remedy=f"Add '{field.name}' to [sanitizer].",
                )
        return cls(**parameters)

    @property
    def keeps_columns(self) -> bool:
        """Released columns are the original ones, in their units."""
        return False

    @property
    def set_aside(self) -> float:
        """Share of the records that the fit uses up and that are never released."""
        return 0.0

    @property
    def learns(self) -> bool:
        """The fit takes something from records; a second one must be waived by name."""
        return self.scale == "zscore"

    def check_features(self, d: int) -> None:
        """Refuses what cannot be done with this many features, before any record is read."""
        if d < 1:
            raise BadInput(
                f"Method '{self.name}' has no feature to release.",
                remedy='Give a column the role "feature".',
            )
        if d < self.least_features:
            raise BadInput(
                f"Method '{self.name}' needs at least {self.least_features} features; there is "
                f"{d}.",
                remedy='Give more columns the role "feature", or choose another method.',
            )

    def check_kinds(self, numeric: int, categorical: int) -> None:
        """The same, for so many features of each kind."""
        self.check_features(numeric + categorical)

    def fit_parameters(self) -> dict[str, Any]:
        """What the fit depends on beside the records."""
        return {"scale": self.scale}

    @abstractmethod
    def fit(self, rows: Rows) -> Fitted: ...

    @abstractmethod
    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released: ...

    @abstractmethod
    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee: ...

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats] | None:
        """What the key hides, if that is a linear map: its centre and its loadings."""
        return None

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        """The numbers that decide what a record becomes, as plain lists."""
        return []

    def fingerprint(self, schema: Schema, fitted: Fitted) -> bytes:
        """Digest of what is done to a record: with another one, everybody gets other noise.

        Parameters are not part of it, only what they lead to: two ways of asking for the same
        release must not give two draws of its noise.
        """
        columns = [(column.name, column.low, column.high) for column in schema.numeric]
        numbers = self.mechanism(schema, fitted)
        text = json.dumps([self.name, columns, fitted.get("scaling"), numbers], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=32).digest()

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        """What the ledger charges; the figures add up to that of the record."""

        def consumed(block: Block) -> Keys:
            numbers = as_bytes(block.X) if "numeric" in self.accepts else as_bytes(block.X[:, :0])
            codes = block.C if "categorical" in self.accepts else block.C[:, :0]
            return np.concatenate([numbers, code_bytes(codes)], axis=1)

        ln_record = self.guarantee(schema, fitted).ln_record
        return (Part(self.fingerprint(schema, fitted), consumed, ln_record),)

    def weaker_promises(self, schema: Schema) -> list[str]:
        """What of the private data the release itself tells, beside its values."""
        told = []
        if any(column.from_data for column in schema.numeric):
            told.append("Bounds of columns come from the private data, in two digits.")
        if self.scale == "zscore":
            told.append("Means and deviations of columns come from records, in two digits.")
        return told


def code_bytes(codes: Codes) -> Keys:  # (n, c) to (n, 4 c)
    return np.ascontiguousarray(codes, dtype="<i4").view(np.uint8)

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
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from ppdm_core.errors import BadInput
from ppdm_core.noise import Noise
from ppdm_core.scaling import SCALES
from ppdm_core.types import Guarantee, Released, Rows, Schema
from ppdm_core.validation import check_choice

Fitted = Mapping[str, Any]  # plain numbers, lists and text, so that it can be stored as JSON


@dataclass(frozen=True, kw_only=True)
class Sanitizer(ABC):
    name: ClassVar[str]
    accepts: ClassVar[frozenset[str]]  # of "numeric", "categorical"
    row_aligned: ClassVar[bool]  # released row i belongs to record i
    output_only: ClassVar[frozenset[str]] = frozenset({"refit_waiver"})  # not part of the noise

    scale: str = "minmax"
    refit_waiver: str = ""  # who allowed a second fit on private records, and why

    def __post_init__(self) -> None:
        check_choice(self, "scale", SCALES)

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
    def fits_private_records(self) -> bool:
        """The fit learns from records that are released too."""
        return self.scale == "zscore"

    def check_features(self, d: int) -> None:
        """Refuses what cannot be done with this many features, before any record is read."""
        if d < 1:
            raise BadInput(
                f"Method '{self.name}' has no feature to release.",
                remedy='Give a column the role "feature".',
            )

    def fit_parameters(self) -> dict[str, Any]:
        """What the fit depends on beside the records."""
        return {"scale": self.scale}

    @abstractmethod
    def fit(self, rows: Rows) -> Fitted: ...

    @abstractmethod
    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released: ...

    @abstractmethod
    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee: ...

    def fingerprint(self, schema: Schema, fitted: Fitted) -> bytes:
        """Digest of the whole mechanism: with another one, everybody gets other noise."""
        columns = [(column.name, column.low, column.high) for column in schema.numeric]
        own = {name: value for name, value in asdict(self).items() if name not in self.output_only}
        text = json.dumps([self.name, own, columns, fitted], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=32).digest()


def check_accepts(sanitizer: Sanitizer, schema: Schema) -> None:
    for kind, columns in (("numeric", schema.numeric), ("categorical", schema.categorical)):
        if columns and kind not in sanitizer.accepts:
            raise BadInput(
                f"Column '{columns[0].name}' is a {kind} feature, and method '{sanitizer.name}' "
                f"takes only {' and '.join(sorted(sanitizer.accepts))} ones.",
                column=columns[0].name,
                remedy='Give it the role "exclude", or choose another method.',
            )

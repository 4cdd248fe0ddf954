"""Two methods for one table: numbers by one, categories by the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from ppdm_core.model.arrays import Floats
from ppdm_core.model.parameter_checks import reject
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Fitted, Part, Sanitizer

KINDS = ("bounded", "bounded_given_basis", "empirical")  # from strong to weak


@dataclass(frozen=True, kw_only=True)
class Pipeline(Sanitizer):
    """Releases numeric features by one method and categorical features by another.

    Each part does exactly what it does on its own, with the same noise, and neither looks at the
    columns of the other. A released row holds both parts of its record.

    **Parameters**:
    ``numeric``: a table with the method for numeric features and its parameters, such as
    { method = "pca_laplace", components = 2, b = 0.3 }; one that keeps rows in their places.
    ``categorical``: the same for categorical features, such as
    { method = "randomized_response", gamma = { attribute = 3 } }.

    **Public**: what the two methods publish.
    **Broken by**: what breaks either part; ``record_linkage``, ``membership`` and
    ``attribute_inference`` by somebody who compares both, because what each part tells of a person
    adds up.
    **Guarantee**: for a record the product of the two gammas; for a component or an attribute the
    larger one. It is as weak as the weaker part: given a basis if one of them is, and none if one
    has none.
    **References**: the product is the rule for independent answers in Evfimievski, Gehrke, Srikant
    (2003); see the two methods for the rest.
    """

    name: ClassVar[str] = "pipeline"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric", "categorical"})
    row_aligned: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {
        "numeric": {"method": "pca_laplace", "components": 2, "b": 0.3},
        "categorical": {"method": "randomized_response", "gamma": {"attribute": 3}},
    }

    numeric: Mapping[str, Any]
    categorical: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.numbers and self.words  # made now, so that bad parameters are told now

    @cached_property
    def numbers(self) -> Sanitizer:
        """The method of the numeric features."""
        return self._part("numeric")

    @cached_property
    def words(self) -> Sanitizer:
        """The method of the categorical features."""
        return self._part("categorical")

    def _part(self, kind: str) -> Sanitizer:
        from ppdm_core.sanitizers import SANITIZERS, make_sanitizer

        given = getattr(self, kind)
        if not isinstance(given, Mapping) or "method" not in given:
            raise reject(self, kind, "a table with a method and its parameters", given)
        able = [n for n, cls in SANITIZERS.items() if cls.accepts == {kind} and cls.row_aligned]
        if given["method"] not in able:
            raise reject(self, kind, f"a table with one of {', '.join(able)}", given["method"])
        shared = {field.name: getattr(self, field.name) for field in fields(Sanitizer)}
        if any(name in shared for name in given):
            wanted = f"a table without {' and '.join(shared)}, which stand beside it"
            raise reject(self, kind, wanted, given)
        own = {name: value for name, value in given.items() if name != "method"}
        return make_sanitizer(given["method"], {**own, **shared})

    @property
    def keeps_columns(self) -> bool:
        return self.numbers.keeps_columns

    @property
    def set_aside(self) -> float:
        return max(self.numbers.set_aside, self.words.set_aside)

    @property
    def learns(self) -> bool:
        return self.numbers.learns or self.words.learns

    @property
    def basis_file(self) -> str | None:
        return getattr(self.numbers, "basis_file", None)

    def check_kinds(self, numeric: int, categorical: int) -> None:
        self.numbers.check_features(numeric)
        self.words.check_features(categorical)

    def fit_parameters(self) -> dict[str, Any]:
        parts = {part.name: part.fit_parameters() for part in (self.numbers, self.words)}
        return {**super().fit_parameters(), "parts": parts}

    def fit(self, rows: Rows) -> Fitted:
        """One table for both: a fit that was made elsewhere is the numeric method's alone."""
        self._check(rows.schema)
        return {**self.words.fit(rows), **self.numbers.fit(rows)}

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        parts = (self.numbers, self.words)
        return [[part.name, part.mechanism(schema, fitted)] for part in parts]

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        return self.numbers.parts(schema, fitted) + self.words.parts(schema, fitted)

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        self._check(rows.schema)
        first = self.numbers.sanitize(rows, noise, fitted)
        second = self.words.sanitize(first.rows, noise, fitted)
        public = replace(
            first.public,
            method=self.name,
            responses=second.public.responses,
            facts={**first.public.facts, **second.public.facts, **self._names()},
        )
        # The atom is that of the numbers; how often categories are kept is in the responses.
        fit_counts = {**first.fit_counts, **second.fit_counts}
        return Released(second.rows, public, first.atom, fit_counts)

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats] | None:
        return self.numbers.leaked(schema, noise, fitted)

    def _names(self) -> dict[str, str]:
        return {"numeric_method": self.numbers.name, "categorical_method": self.words.name}

    def _check(self, schema: Schema) -> None:
        self.check_kinds(len(schema.numeric), len(schema.categorical))

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        parts = (self.numbers, self.words)
        one, two = promises = [part.guarantee(schema, fitted) for part in parts]
        open_ones = [p.name for p, g in zip(parts, promises, strict=True) if g.kind == "empirical"]
        return Guarantee(
            max(one.kind, two.kind, key=KINDS.index),
            ln_component=max(one.ln_component, two.ln_component),
            ln_attribute=max(one.ln_attribute, two.ln_attribute),
            ln_record=one.ln_record + two.ln_record,
            assumptions=tuple(dict.fromkeys(one.assumptions + two.assumptions)),
            without_bound=tuple(open_ones),
        )

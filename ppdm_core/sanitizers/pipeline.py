"""Pipeline: one method for numeric columns and one for categorical columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from ppdm_core.model.advice import Advice
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import ErrorList
from ppdm_core.model.parameter_checks import parameter_error
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Fitted, Part, Sanitizer
from ppdm_core.sanitizers._sweep import Axes, SweepScope
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from ppdm_core.sanitizers.randomized_response import RandomizedResponse

NUMERIC_SHARES = (0.5, 0.75, 0.25)  # of ln gamma that a tune gives to the numbers
GUARANTEE_KINDS = ("bounded", "bounded_given_basis", "empirical")  # strongest first


@dataclass(frozen=True, kw_only=True)
class Pipeline(Sanitizer):
    """Releases numeric features by one method and categorical features by another.

    Each method gives the same values, with the same noise, as when it is used alone, and does not
    read the columns of the other. A released row holds both parts of its record.

    **Parameters**:
    ``numeric``: a table with the method for numeric features and its parameters, such as
    { method = "pca_laplace", components = 2, b = 0.3 }; it must release one row per record.
    ``categorical``: the same for categorical features, such as
    { method = "randomized_response", gamma = { attribute = 3 } }.

    **Public**: the public parameters of both methods.
    **Broken by**: the attacks on either part; ``record_linkage``, ``membership`` and
    ``attribute_inference`` by an attacker who combines both, because what the parts reveal about a
    person adds up.
    **Guarantee**: for a record the product of the two gammas; for a component or an attribute the
    larger one. Its kind is that of the weaker part: given a basis if one of them is, and none if
    one has none.
    **References**: the product is the rule for independent responses in Evfimievski, Gehrke,
    Srikant (2003); see the two methods for the rest.
    """

    name: ClassVar[str] = "pipeline"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric", "categorical"})
    is_usual: ClassVar[bool] = True
    row_aligned: ClassVar[bool] = True
    is_composite: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {
        "numeric": {"method": PcaLaplace.name, "components": 2, "b": 0.3},
        "categorical": {"method": RandomizedResponse.name, "gamma": {"attribute": 3}},
    }

    numeric: Mapping[str, Any]
    categorical: Mapping[str, Any]

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        """Vary both parts; a share of ln gamma goes to the numbers, the rest to the categories."""
        from ppdm_core.sanitizers import SANITIZERS

        def list_part(kind: str, share: float) -> Axes:
            part = given[kind]
            return SANITIZERS[part["method"]].list_axes(scope.share_gamma(share), part)

        by_share = [
            zip(
                list_part("numeric", share).get("noise", ()),
                list_part("categorical", 1 - share).get("noise", ()),
                strict=False,
            )
            for share in NUMERIC_SHARES
        ]
        noise = [
            {"numeric": one, "categorical": other}
            for level in zip(*by_share, strict=True)
            for one, other in level
        ]
        others = {
            f"{kind} {name}": [{kind: change} for change in changes]
            for kind in ("numeric", "categorical")
            for name, changes in list_part(kind, NUMERIC_SHARES[0]).items()
            if name != "noise"
        }
        return {**others, "noise": noise or [{}]}

    def __post_init__(self) -> None:
        super().__post_init__()
        errors = ErrorList()
        for kind in ("numeric", "categorical"):
            with errors.collect():
                self._make_part(kind)
        errors.raise_all()

    @cached_property
    def numeric_part(self) -> Sanitizer:
        """The method of the numeric features."""
        return self._make_part("numeric")

    @cached_property
    def categorical_part(self) -> Sanitizer:
        """The method of the categorical features."""
        return self._make_part("categorical")

    def _make_part(self, kind: str) -> Sanitizer:
        from ppdm_core.sanitizers import SANITIZERS, make_sanitizer

        given = getattr(self, kind)
        if not isinstance(given, Mapping) or "method" not in given:
            raise parameter_error(self, kind, "a table with a method and its parameters", given)
        method_names = [
            n for n, cls in SANITIZERS.items() if cls.accepts == {kind} and cls.row_aligned
        ]
        if given["method"] not in method_names:
            raise parameter_error(
                self, kind, f"a table with one of {', '.join(method_names)}", given["method"]
            )
        shared = {field.name: getattr(self, field.name) for field in fields(Sanitizer)}
        if any(name in shared for name in given):
            wanted = f"a table without {' and '.join(shared)}, which belong to the pipeline"
            raise parameter_error(self, kind, wanted, given)
        own = {name: value for name, value in given.items() if name != "method"}
        return make_sanitizer(given["method"], {**own, **shared})

    def advise(self) -> Advice:
        parts = {"numeric": self.numeric_part, "categorical": self.categorical_part}
        found = {kind: part.advise() for kind, part in parts.items()}
        return Advice(
            tuple(f"{each} of {kind}" for kind, own in found.items() for each in own.more_private),
            tuple(f"{each} of {kind}" for kind, own in found.items() for each in own.more_useful),
        )

    @property
    def keeps_columns(self) -> bool:
        return self.numeric_part.keeps_columns

    @property
    def set_aside(self) -> float:
        return max(self.numeric_part.set_aside, self.categorical_part.set_aside)

    @property
    def learns(self) -> bool:
        return self.numeric_part.learns or self.categorical_part.learns

    @property
    def basis_file(self) -> str | None:
        return getattr(self.numeric_part, "basis_file", None)

    def check_kinds(self, numeric: int, categorical: int) -> None:
        self.numeric_part.check_features(numeric)
        self.categorical_part.check_features(categorical)

    def fit_parameters(self) -> dict[str, Any]:
        parts = {
            part.name: part.fit_parameters() for part in (self.numeric_part, self.categorical_part)
        }
        return {**super().fit_parameters(), "parts": parts}

    def fit(self, rows: Rows) -> Fitted:
        """Return both fits in one mapping; a fit made elsewhere belongs to the numeric method."""
        self._check_schema(rows.schema)
        return {**self.categorical_part.fit(rows), **self.numeric_part.fit(rows)}

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        parts = (self.numeric_part, self.categorical_part)
        return [[part.name, part.mechanism(schema, fitted)] for part in parts]

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        return self.numeric_part.parts(schema, fitted) + self.categorical_part.parts(schema, fitted)

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        self._check_schema(rows.schema)
        first = self.numeric_part.sanitize(rows, noise, fitted)
        second = self.categorical_part.sanitize(first.rows, noise, fitted)
        public = replace(
            first.public,
            method=self.name,
            responses=second.public.responses,
            facts={**first.public.facts, **second.public.facts, **self._describe_methods()},
        )
        # The atom is that of the numeric part; responses hold the probabilities of categories.
        fit_counts = {**first.fit_counts, **second.fit_counts}
        return Released(second.rows, public, first.atom, fit_counts)

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats] | None:
        return self.numeric_part.leaked(schema, noise, fitted)

    def _describe_methods(self) -> dict[str, str]:
        return {
            "numeric_method": self.numeric_part.name,
            "categorical_method": self.categorical_part.name,
        }

    def _check_schema(self, schema: Schema) -> None:
        self.check_kinds(len(schema.numeric), len(schema.categorical))

    def list_weaker_promises(self, schema: Schema) -> list[str]:
        parts = (self.numeric_part, self.categorical_part)
        promises = [each for part in parts for each in part.list_weaker_promises(schema)]
        return list(dict.fromkeys(promises))

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        parts = (self.numeric_part, self.categorical_part)
        one, two = promises = [part.guarantee(schema, fitted) for part in parts]
        without_bound = [
            name
            for part, promise in zip(parts, promises, strict=True)
            for name in ((part.name,) if promise.kind == "empirical" else promise.without_bound)
        ]
        return Guarantee(
            max(one.kind, two.kind, key=GUARANTEE_KINDS.index),
            ln_component=max(one.ln_component, two.ln_component),
            ln_attribute=max(one.ln_attribute, two.ln_attribute),
            ln_record=one.ln_record + two.ln_record,
            assumptions=tuple(dict.fromkeys(one.assumptions + two.assumptions)),
            without_bound=tuple(without_bound),
        )

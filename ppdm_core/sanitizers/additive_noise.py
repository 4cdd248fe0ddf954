"""Additive noise: independent noise on every column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.parameter_checks import is_number, parameter_error
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.amplification import make_empirical_guarantee
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.noise_distributions import (
    BOUNDED_DISTRIBUTIONS,
    SAMPLED_DISTRIBUTIONS,
    find_distribution,
)
from ppdm_core.numerics.scaling import check_widths
from ppdm_core.sanitizers._basis import compute_box_ranges
from ppdm_core.sanitizers._mechanism import Mechanism, check_distribution, check_relative_scale
from ppdm_core.sanitizers._sanitizer import Direction, Fitted, Sanitizer
from ppdm_core.sanitizers._sweep import Axes, SweepScope, list_noise_scales

MIN_SCALE, MAX_SCALE = 1e-9, 1e9  # relative scales that floats can represent


@dataclass(frozen=True, kw_only=True)
class AdditiveNoise(Sanitizer):
    """Adds independent noise to every value, with a scale relative to its column's bounds.

    **Parameters**:
    ``b``: scale of the noise as a share of each column's declared range: the standard deviation of
    "normal", half the width of "uniform", the usual scale of the others.
    ``law``: distribution of the noise: "laplace", "logistic" or "student_t", which have a
    worst-case bound; "normal" or "uniform", which have none.
    ``nu``: degrees of freedom of "student_t", from 1 to 20.

    **Public**: distribution and scales of the noise, the grid, and what the noise adds to squared
    distances: its mean, and an upper bound of its variance (the variances of the columns are not
    published).
    **Broken by**: ``shrinkage`` and ``correlation_filter`` when columns are correlated, because
    then the noise can be filtered out; ``record_linkage`` and ``membership`` with many columns,
    because each adds a little information about the person; ``attribute_inference`` when the noise
    on the other columns is too small to hide whose row it is.
    **Guarantee**: for laplace, logistic and student_t, bounded amplification of one release: that
    of one column for a component and an attribute, and the sum of logarithms over the columns for a
    record. All bounds are reached or approached. With bounds, z-scores or medians for empty cells
    from private records the guarantee holds only given those; if rows are dropped because of their
    values, it holds only among values that are kept. For normal and uniform there is none: the
    conditions of theorem 4 fail, because tails are too light, or because some values cannot come
    from every record.
    **References**: Mukherjee, Banerjee, Chen, Gangopadhyay, "A privacy preserving technique for
    distance-based classification with worst case privacy guarantees" (2008), theorem 4 and the
    comparison without principal components.
    """

    name: ClassVar[str] = "additive_noise"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"law": "laplace", "b": 0.5}
    more_private: ClassVar[Mapping[str, Direction]] = {"b": "raise"}

    b: float
    law: str = "laplace"
    nu: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_distribution(self, self.law, self.nu, SAMPLED_DISTRIBUTIONS)
        if not is_number(self.b) or not MIN_SCALE <= self.b <= MAX_SCALE:
            raise parameter_error(
                self, "b", f"a number from {MIN_SCALE:g} to {MAX_SCALE:g}", self.b
            )
        if self.law in BOUNDED_DISTRIBUTIONS:
            check_relative_scale(self, self.b)

    @classmethod
    def suggest_parameters(cls, features: int, gamma: float) -> Mapping[str, Any]:
        """Return noise whose gamma of a record, exp(features / b), is at most ``gamma``."""
        return {**cls.example, "b": math.ceil(100 * features / math.log(gamma)) / 100}

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        present = float(given["b"])
        if scope.gamma is not None:
            present = max(1, scope.numeric) / math.log(scope.gamma)
        return {"noise": [{"b": b} for b in list_noise_scales(present)]}

    @property
    def keeps_columns(self) -> bool:
        return True

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def _mechanism(self, schema: Schema) -> Mechanism:
        """Return the mechanism with the identity as basis; values are inside their bounds."""
        check_widths(schema.numeric)
        identity, widths = np.eye(len(schema.numeric)), schema.widths
        distribution = find_distribution(self.law, self.nu)
        ranges = compute_box_ranges(identity, widths)
        return Mechanism(distribution, identity, widths, self.b * widths, ranges, clips=True)

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        m = self._mechanism(schema)
        shape = [] if self.nu is None else [float(self.nu)]
        return [self.law, *shape, m.b.tolist(), m.g.tolist()]

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        m = self._mechanism(schema)
        added = m.make_noise(self)
        centre = (schema.lows + schema.highs) / 2
        fingerprint = self.fingerprint(schema, fitted)

        def step(block: Block) -> Block:
            bits = noise.bits(block, self.name, len(m.b), fingerprint)
            return replace(block, X=centre + added.add(block.X - centre, bits) + 0.0)

        reached = added.limits * m.g[:, None]  # (d, 2)
        numeric = tuple(
            replace(column, low=low, high=high)
            for column, (low, high) in zip(
                schema.numeric, (centre[:, None] + reached).tolist(), strict=True
            )
        )
        return Released(
            rows=rows.map(step, replace(schema, numeric=numeric)),
            public=m.describe_release(
                method=self.name,
                space="original",
                columns=schema.names,
                centre=centre,
                ranges=reached,
                facts=m.describe_distortion(m.widths**2 / 4),  # largest variance within the bounds
            ),
            atom=added.atom,
        )

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        m, weaker = self._mechanism(schema), self.list_weaker_promises(schema)
        if not m.distribution.is_bounded:
            return make_empirical_guarantee(m.distribution.unbounded_reason, *weaker)
        component, _, record = m.compute_ln_gammas()
        return Guarantee(
            "bounded_given_basis" if weaker else "bounded",
            ln_component=component,
            ln_attribute=component,  # it changes no other column
            ln_record=record,
            assumptions=("One release, with noise that no outsider can predict.", *weaker),
        )

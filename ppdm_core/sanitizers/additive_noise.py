"""Noise on every column, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.parameter_checks import is_number, reject
from ppdm_core.model.release import Guarantee, Public, Released
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.amplification import empirical
from ppdm_core.numerics.distributions import BOUNDED, DRAWN, law_named
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import check_widths
from ppdm_core.sanitizers._basis import box_ranges
from ppdm_core.sanitizers._mechanism import Mechanism, check_hides, check_law
from ppdm_core.sanitizers._sanitizer import Fitted, Sanitizer

LEAST, MOST = 1e-9, 1e9  # scales that floats can add to a column


@dataclass(frozen=True, kw_only=True)
class AdditiveNoise(Sanitizer):
    """Adds independent noise to every value, of a scale relative to its column's bounds.

    **Parameters**:
    ``b``: scale of the noise as a share of each column's declared range: the standard deviation of
    "normal", half the width of "uniform", the usual scale of the others.
    ``law``: "laplace", "logistic" or "student_t", which have a worst-case bound; "normal" or
    "uniform", which have none.
    ``nu``: degrees of freedom of "student_t", from 1 to 20.

    **Public**: law and scales of the noise, the grid, what the noise adds to squared distances: its
    mean, and a variance that it does not exceed (the columns' own is not told).
    **Broken by**: ``shrinkage`` and ``correlation_filter`` when columns are correlated, because
    then the noise can be filtered out; ``record_linkage`` and ``membership`` with many columns,
    because each tells a little about its person; ``attribute_inference`` when the noise on the
    other columns is too small to hide whose row it is.
    **Guarantee**: for laplace, logistic and student_t bounded amplification of one release: that of
    one column for a component and an attribute, and their sum in logarithms for a record, all
    reached or approached. With bounds or z-scores from private records only given those. For normal
    and uniform none: the conditions of theorem 4 fail, by tails that are too light and by values
    that cannot come from every record.
    **References**: Mukherjee, Banerjee, Chen, Gangopadhyay, "A privacy preserving technique for
    distance-based classification with worst case privacy guarantees" (2008), theorem 4 and the
    comparison without principal components.
    """

    name: ClassVar[str] = "additive_noise"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"law": "laplace", "b": 0.5}

    b: float
    law: str = "laplace"
    nu: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_law(self, self.law, self.nu, DRAWN)
        if not is_number(self.b) or not LEAST <= self.b <= MOST:
            raise reject(self, "b", f"a number from {LEAST:g} to {MOST:g}", self.b)
        if self.law in BOUNDED:
            check_hides(self, self.b)

    @property
    def keeps_columns(self) -> bool:
        return True

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def _mechanism(self, schema: Schema) -> Mechanism:
        """The identity in place of a basis; values are inside their bounds."""
        check_widths(schema.numeric)
        identity, widths = np.eye(len(schema.numeric)), schema.widths
        law, ranges = law_named(self.law, self.nu), box_ranges(identity, widths)
        return Mechanism(law, identity, widths, self.b * widths, ranges, clips=True)

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        m = self._mechanism(schema)
        shape = [] if self.nu is None else [float(self.nu)]
        return [self.law, *shape, m.b.tolist(), m.g.tolist()]

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        m = self._mechanism(schema)
        added = m.noise(self)
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
            public=Public(
                method=self.name,
                space="original",
                columns=schema.names,
                centre=centre,
                loadings=m.loadings,
                law=self.law,
                scales=m.b,
                grid=m.g,
                ranges=reached,
                facts=m.facts(m.widths**2 / 4),  # no column within its bounds varies more
            ),
            atom=added.atom,
        )

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        m, weaker = self._mechanism(schema), self.weaker_promises(schema)
        if not m.law.is_bounded:
            return empirical(m.law.why_unbounded, *weaker)
        component, _, record = m.figures()
        return Guarantee(
            "bounded_given_basis" if weaker else "bounded",
            ln_component=component,
            ln_attribute=component,  # no other column moves with it
            ln_record=record,
            assumptions=("One release, with noise that nobody outside can predict.", *weaker),
        )

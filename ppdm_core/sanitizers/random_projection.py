"""Random projection: fewer columns that preserve distances on average."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.parameter_checks import check_choice, check_count_or_share, parameter_error
from ppdm_core.model.release import Guarantee, PublicParameters, Released
from ppdm_core.model.rows import Block, Rows, multiply_padded
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.amplification import make_empirical_guarantee
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Direction, Fitted, Part, Sanitizer
from ppdm_core.sanitizers._sweep import Axes, SweepScope, list_counts

STEP = 2.0**-32  # grid of the outputs, so that low bits do not depend on the machine


@dataclass(frozen=True, kw_only=True)
class RandomProjection(Sanitizer):
    """Projects every record on a few secret random directions.

    The directions are the columns of a Gaussian matrix, normalised to length 1, so that each is
    uniform over all directions. Distances change by a random factor that is the same for all
    pairs of one direction; its mean and variance are published.

    **Parameters**:
    ``components``: number of directions: a count, or a share of the columns.
    ``normalisation``: "unbiased" (squared distances are correct on average) or "unit_columns"
    (directions of length 1, which shrinks squared distances to components / columns).

    **Public**: the number of components, the normalisation, mean and variance of the ratio of the
    squared distance of two released rows to that of their records.
    **Broken by**: ``known_pairs``, by regression, within the kept directions, and with its result
    ``record_linkage``; ``transform_inverse`` by an attacker who learns the matrix, equally far. A
    record of zeros stays zeros. Distances and inner products can be estimated from the rows, and
    so can lengths: ``norm_bounds``.
    **Guarantee**: none. One row is enough to distinguish records of different length: gamma is
    infinite.
    **References**: Mukherjee, Banerjee, Chen, Gangopadhyay, "A privacy preserving technique for
    distance-based classification with worst case privacy guarantees" (2008), where it is the
    compared method Rand-P. The moments are derived here: the squared cosine of a direction that is
    uniform in d dimensions has the distribution Beta(1/2, (d - 1)/2).
    """

    name: ClassVar[str] = "random_projection"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True
    min_features: ClassVar[int] = 2  # one feature would be released unchanged or negated
    example: ClassVar[Mapping[str, Any]] = {"components": 2}
    more_private: ClassVar[Mapping[str, Direction]] = {"components": "lower"}

    components: int | float = 0.5
    normalisation: str = "unbiased"

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        counts = list_counts(scope.numeric)
        return {"components": [{"components": count} for count in counts]}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "normalisation", ("unbiased", "unit_columns"))
        check_count_or_share(self, "components", self.components)

    def check_features(self, d: int) -> None:
        super().check_features(d)
        if isinstance(self.components, int) and self.components > d:
            raise parameter_error(self, "components", f"an int in [1, {d}]", self.components)

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def _count_components(self, d: int) -> int:
        if isinstance(self.components, int):
            return self.components
        return max(1, math.floor(self.components * d))

    def _compute_factor(self, d: int) -> float:
        return math.sqrt(d / self._count_components(d)) if self.normalisation == "unbiased" else 1.0

    def _draw_directions(self, schema: Schema, noise: Noise, fitted: Fitted) -> Floats:
        """Draw the secret directions, (d, k).

        Neither count nor normalisation is part of the fingerprint: two releases with different
        counts together show no more directions than the larger one.
        """
        d = len(schema.numeric)
        rng = noise.generator("projection", self.fingerprint(schema, fitted))
        R = rng.standard_normal((self._count_components(d), d)).T  # (d, k)
        return np.asarray(R / np.linalg.norm(R, axis=0))

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        d = len(schema.numeric)
        self.check_features(d)
        k, factor = self._count_components(d), self._compute_factor(d)
        R = self._draw_directions(schema, noise, fitted) * factor
        reach = factor * schema.max_norm + STEP
        columns = tuple(f"projected_{i + 1}" for i in range(k))
        released = replace(schema, numeric=tuple(Numeric(name, -reach, reach) for name in columns))

        def step(block: Block) -> Block:
            Y = np.rint(multiply_padded(block.X, R) / STEP) * STEP
            return replace(block, X=Y + 0.0)

        mean, variance = compute_ratio_moments(d, k, factor)
        return Released(
            rows=rows.map(step, released),
            public=PublicParameters(
                method=self.name,
                space="rotated",
                columns=columns,
                grid=np.full(k, STEP),
                facts={
                    "components": float(k),
                    "normalisation": self.normalisation,
                    "squared_distance_ratio_mean": mean,
                    "squared_distance_ratio_variance": variance,
                },
            ),
            atom=STEP,
        )

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        """Return one part per count: another count may show further directions and is charged."""
        (part,) = super().parts(schema, fitted)
        count = self._count_components(len(schema.numeric))
        return (replace(part, fingerprint=part.fingerprint + count.to_bytes(4, "little")),)

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats]:
        d = len(schema.numeric)
        return np.zeros(d), self._draw_directions(schema, noise, fitted) * self._compute_factor(d)

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        return make_empirical_guarantee(
            "A random projection has no worst-case bound: lengths and distances can be estimated.",
            *self.list_weaker_promises(schema),
        )


def compute_ratio_moments(d: int, k: int, factor: float) -> tuple[float, float]:
    """Return mean and variance of |yi - yj|^2 / |xi - xj|^2 over the matrix, for any pair.

    The ratio is factor^2 times the sum of k independent Beta(1/2, (d - 1)/2) numbers.
    """
    return factor**2 * k / d, factor**4 * 2 * k * (d - 1) / (d**2 * (d + 2))

"""Random rotation: a distance-preserving perturbation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.parameter_checks import parameter_error
from ppdm_core.model.release import Guarantee, PublicParameters, Released
from ppdm_core.model.rows import Block, Rows, multiply_padded
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.amplification import make_empirical_guarantee
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from ppdm_core.sanitizers._sanitizer import Fitted, Sanitizer
from ppdm_core.sanitizers._sweep import Axes, SweepScope

STEP = 2.0**-32  # grid of the outputs, so that low bits do not depend on the machine


@dataclass(frozen=True, kw_only=True)
class RandomRotation(Sanitizer):
    """Multiplies every record by one secret orthogonal matrix, uniform over all such matrices.

    All distances and inner products are preserved; with a translation, distances only.

    **Parameters**:
    ``translation``: adds one secret offset to all rows, so that lengths are hidden.

    **Public**: the scaling; that distances are exact; whether there is an offset.
    **Broken by**: ``known_pairs`` as soon as the known records span the space (as many independent
    ones as columns are enough for all records), and with fewer for records near their span;
    ``known_records``, because distances identify the rows of known records; ``trilateration``;
    ``known_sample_pca``, without any known row, if persons of the sample are in the release.
    Then ``record_linkage`` identifies all rows, ``membership`` decides who is in the release, and
    ``attribute_inference`` reads their values. ``norm_bounds`` computes lengths from the rows. A
    translation hides lengths, and the other attacks then need one more known record.
    **Guarantee**: none. Two records of different length have disjoint images: gamma is infinite.
    The same holds with a translation, because bounded offsets do not reach every point.
    **References**: Liu, Giannella, Kargupta, "An attacker's view of distance preserving maps for
    privacy preserving data mining" (2006), section 3.
    """

    name: ClassVar[str] = "random_rotation"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True

    translation: bool = False

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        return {"translation": [{"translation": False}, {"translation": True}]}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.translation, bool):
            raise parameter_error(self, "translation", "true or false", self.translation)

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        return ["translation"] if self.translation else []

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        d = len(schema.numeric)
        M, offset = self._draw_motion(schema, noise, fitted)
        reach = schema.max_norm * (2 if self.translation else 1)
        columns = tuple(f"rotated_{i + 1}" for i in range(d))
        released = replace(schema, numeric=tuple(Numeric(name, -reach, reach) for name in columns))

        def step(block: Block) -> Block:
            Y = np.rint((multiply_padded(block.X, M.T) + offset) / STEP) * STEP
            return replace(block, X=Y + 0.0)

        return Released(
            rows=rows.map(step, released),
            public=PublicParameters(
                method=self.name,
                space="rotated",
                columns=columns,
                grid=np.full(d, STEP),
                preserves_distances=True,
                facts={"translation": "secret"} if self.translation else {},
            ),
            atom=STEP,
        )

    def _draw_motion(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats]:
        """Draw the secret matrix and offset."""
        d = len(schema.numeric)
        rng = noise.generator("rotation", self.fingerprint(schema, fitted))
        M = random_orthogonal(d, rng)
        reach = schema.max_norm
        return M, rng.uniform(-reach, reach, d) if self.translation else np.zeros(d)

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats]:
        M, offset = self._draw_motion(schema, noise, fitted)
        return -offset @ M, M.T

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        return make_empirical_guarantee(
            "A rotation has no worst-case bound: "
            f"{'' if self.translation else 'lengths and '}distances are published exactly.",
            *self.list_weaker_promises(schema),
        )

"""Random rotation: the classical distance-preserving perturbation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.parameter_checks import reject
from ppdm_core.model.release import Guarantee, Public, Released
from ppdm_core.model.rows import Block, Rows, padded_product
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.amplification import empirical
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.random_orthogonal import haar
from ppdm_core.sanitizers._sanitizer import Fitted, Sanitizer

STEP = 2.0**-32  # outputs are rounded to it, so that low bits do not depend on the machine


@dataclass(frozen=True, kw_only=True)
class RandomRotation(Sanitizer):
    """Multiplies every record by one secret orthogonal matrix, uniform over all of them.

    All distances and inner products stay as they are; with a translation, distances only.

    **Parameters**:
    ``translation``: adds one secret offset to all rows, so that lengths are not told.

    **Public**: the scaling; that distances are exact; whether there is an offset.
    **Broken by**: ``known_pairs`` as soon as the known records span the space (as many independent
    ones as columns give everything), and long before for records near their span;
    ``known_records``, because distances tell whose rows these are; ``trilateration``;
    ``known_sample_pca``, with no known row at all, if people of the sample are in the release.
    Then ``record_linkage`` finds everybody, ``membership`` tells who is in it, and
    ``attribute_inference`` what they have. ``norm_bounds`` reads lengths off the rows. A
    translation hides these, and costs the others one known record more.
    **Guarantee**: none. Two records of different length have disjoint images: gamma is infinite.
    It stays so with a translation, because bounded offsets do not reach everywhere.
    **References**: Liu, Giannella, Kargupta, "An attacker's view of distance preserving maps for
    privacy preserving data mining" (2006), section 3.
    """

    name: ClassVar[str] = "random_rotation"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True

    translation: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.translation, bool):
            raise reject(self, "translation", "true or false", self.translation)

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        return ["translation"] if self.translation else []

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        d = len(schema.numeric)
        M, offset = self._motion(schema, noise, fitted)
        reach = farthest(schema) * (2 if self.translation else 1)
        columns = tuple(f"rotated_{i + 1}" for i in range(d))
        released = replace(schema, numeric=tuple(Numeric(name, -reach, reach) for name in columns))

        def step(block: Block) -> Block:
            Y = np.rint((padded_product(block.X, M.T) + offset) / STEP) * STEP
            return replace(block, X=Y + 0.0)

        return Released(
            rows=rows.map(step, released),
            public=Public(
                method=self.name,
                space="rotated",
                columns=columns,
                grid=np.full(d, STEP),
                preserves_distances=True,
                facts={"translation": "secret"} if self.translation else {},
            ),
            atom=STEP,
        )

    def _motion(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats]:
        d = len(schema.numeric)
        rng = noise.generator("rotation", self.fingerprint(schema, fitted))
        M = haar(d, rng)
        reach = farthest(schema)
        return M, rng.uniform(-reach, reach, d) if self.translation else np.zeros(d)

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats]:
        M, offset = self._motion(schema, noise, fitted)
        return -offset @ M, M.T

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        return empirical(
            "A rotation has no worst-case bound: "
            f"{'' if self.translation else 'lengths and '}distances are published exactly.",
            *self.weaker_promises(schema),
        )


def farthest(schema: Schema) -> float:
    """How long a record can be."""
    return float(np.linalg.norm(np.maximum(np.abs(schema.lows), np.abs(schema.highs))))

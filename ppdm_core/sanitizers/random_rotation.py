"""Random rotation: the classical distance-preserving perturbation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.guarantee import empirical
from ppdm_core.haar import haar
from ppdm_core.noise import Noise
from ppdm_core.rows import padded_product
from ppdm_core.sanitizers._sanitizer import Fitted, Sanitizer
from ppdm_core.types import Block, Guarantee, Numeric, Public, Released, Rows, Schema

STEP = 2.0**-32  # outputs are rounded to it, so that low bits do not depend on the machine


@dataclass(frozen=True, kw_only=True)
class RandomRotation(Sanitizer):
    """Multiplies every record by one secret orthogonal matrix, uniform over all of them.

    All distances and inner products stay as they are.

    **Public**: the scaling; that distances are exact.
    **Broken by**: ``known_pairs`` as soon as the known records span the space (as many independent
    ones as columns give everything), and long before for records near their span.
    **Guarantee**: none. Two records of different length have disjoint images: gamma is infinite.
    **References**: Liu, Giannella, Kargupta, "An attacker's view of distance preserving maps for
    privacy preserving data mining" (2006), section 3.
    """

    name: ClassVar[str] = "random_rotation"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        d = len(schema.numeric)
        M = haar(d, noise.generator("rotation", self.fingerprint(schema, fitted)))
        reach = float(np.linalg.norm(np.maximum(np.abs(schema.lows), np.abs(schema.highs))))
        columns = tuple(f"rotated_{i + 1}" for i in range(d))
        released = replace(schema, numeric=tuple(Numeric(name, -reach, reach) for name in columns))

        def step(block: Block) -> Block:
            Y = np.rint(padded_product(block.X, M.T) / STEP) * STEP
            return replace(block, X=Y + 0.0)

        return Released(
            rows=rows.map(step, released),
            public=Public(
                method=self.name,
                space="rotated",
                columns=columns,
                grid=np.full(d, STEP),
                preserves_distances=True,
            ),
            atom=STEP,
        )

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        return empirical(
            "A rotation has no worst-case bound: lengths and distances are published exactly.",
            *self.weaker_promises(schema),
        )

"""A principal basis that may be published: fitted, rounded, and described in two digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import BLOCK, ArrayRows, Block, Rows, padded_product
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.rounding import outward
from ppdm_core.numerics.scaling import Moments, merged, moments_of, with_covariance

LOADING_STEP = 2.0**-20
RANK_TOLERANCE = 1e-10


def fit_basis(
    rows: Rows, components: int | float | Mapping[str, float], all_ranges: bool = False
) -> dict[str, Any]:
    """Loadings (d, s), variances of all d components, ranges of the kept scores, and the variance
    of squared distances within the dropped ones.

    The last two are those of a block of records unless ``all_ranges``, which costs another pass.
    """
    (n, mean, cov), some = moments_and_some(rows)
    if n < 2:
        raise BadInput(
            f"A basis needs at least 2 records; {n} were left for it.",
            remedy="Release more records, or raise 'basis_share'.",
        )
    values, vectors = np.linalg.eigh(cov)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rank = int(np.sum(values > RANK_TOLERANCE * max(values[0], 1e-300)))
    s = kept_count(components, values, rank)
    loadings = np.rint(fixed_signs(vectors[:, :s]) / LOADING_STEP) * LOADING_STEP
    seen = rows if all_ranges else some
    scores = seen.reduce(Scores.of(rows.schema, loadings, mean), Scores.merge)
    return {
        "columns": list(rows.schema.names),
        "loadings": loadings.tolist(),
        "variances": [outward(value) for value in values.tolist()],
        "ranges": [
            [outward(bottom, up=False), outward(top)]
            for bottom, top in zip(scores.low.tolist(), scores.high.tolist(), strict=True)
        ],
        "dropped_variance": outward(scores.dropped_variance(values[s:])),
    }


def moments_and_some(rows: Rows) -> tuple[Moments, ArrayRows]:
    """In one pass also records at equal distances, a block of them at most."""
    stride = math.ceil(rows.n / BLOCK)

    def step(block: Block) -> tuple[Moments, list[Floats]]:
        some = block.X[-block.start % stride :: stride]
        return moments_of(block, rows.schema.numeric), [some.copy()]

    found, kept = rows.reduce(step, lambda a, b: (merged(a[0], b[0]), a[1] + b[1]))
    return with_covariance(found), ArrayRows(rows.schema, np.concatenate(kept))


@dataclass(frozen=True, eq=False)
class Scores:
    """Extremes of the kept scores, and sums over what a record holds in the dropped ones."""

    low: Floats  # (s,)
    high: Floats  # (s,)
    n: int
    total: float  # of |T_N|^2, about the mean
    squares: float  # of |T_N|^4

    @staticmethod
    def of(schema: Schema, loadings: Floats, mean: Floats) -> Callable[[Block], Scores]:
        shift = (mean - (schema.lows + schema.highs) / 2) @ loadings  # to scores about the midpoint

        def step(block: Block) -> Scores:
            D = block.X - mean
            T = padded_product(D, loadings)
            lengths = np.einsum("ij,ij->i", D, D) - np.einsum("ij,ij->i", T, T)
            dropped = np.maximum(lengths, 0.0)  # (n,)
            low, high = T.min(axis=0) + shift, T.max(axis=0) + shift
            return Scores(low, high, block.n, float(dropped.sum()), float(dropped @ dropped))

        return step

    def merge(self, other: Scores) -> Scores:
        return Scores(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
        )

    def dropped_variance(self, variances: Floats) -> float:
        """Of |T_N - T_N'|^2 over a random pair, for scores of any law: 2 Var |T_N|^2 plus four
        times the sum of the squared variances. Eq. 13 of P0 has 8 times that sum, for normal and
        independent scores."""
        if not len(variances):
            return 0.0
        spread = max(self.squares - self.total**2 / self.n, 0.0) / (self.n - 1)
        return 2 * spread + 4 * float(np.sum(variances**2))


def kept_count(components: int | float | Mapping[str, float], values: Floats, rank: int) -> int:
    d = len(values)
    if isinstance(components, Mapping):
        share = np.cumsum(values) / max(float(np.sum(values)), 1e-300)
        s = int(np.searchsorted(share, components["variance"] - 1e-12)) + 1
    elif isinstance(components, int):
        s = components
        if s > rank:
            raise BadInput(
                f"The 'components' parameter of PcaLaplace must be an int in [1, {rank}]. Got {s}.",
                remedy="Lower 'components': the columns have no more independent directions.",
            )
    else:
        s = max(1, math.floor(components * d))
    if rank == 0:
        raise BadInput(
            "All feature columns are constant among the records that the basis is fitted on.",
            remedy="Declare columns that vary, or release more records.",
        )
    return min(s, rank)


def fixed_signs(V: Floats) -> Floats:
    """Largest absolute loading of each component positive, so that results reproduce."""
    rows = np.argmax(np.abs(V), axis=0)
    return V * np.where(V[rows, np.arange(V.shape[1])] < 0, -1.0, 1.0)


def box_ranges(loadings: Floats, widths: Floats) -> Floats:
    """The score interval of the whole column box around its midpoint."""
    half = np.abs(loadings).T @ widths / 2
    return np.stack([-half, half], axis=1)

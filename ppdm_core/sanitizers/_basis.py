"""A principal basis that may be published: rounded loadings and two-digit moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import BLOCK, ArrayRows, Block, Rows, multiply_padded
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.rounding import round_outward
from ppdm_core.numerics.scaling import (
    Moments,
    compute_block_moments,
    merge_moments,
    normalise_covariance,
)

DRAWN = "drawn"  # key of a fit: whether an earlier release drew records that were set aside for it
LOADING_STEP = 2.0**-20
RANK_TOLERANCE = 1e-10


def fit_basis(
    rows: Rows, components: int | float | Mapping[str, float], all_ranges: bool = False
) -> dict[str, Any]:
    """Fit loadings (d, s), variances of all d components, ranges of the kept scores, and the
    variance of squared distances within the dropped components.

    The last two come from a block of records unless ``all_ranges``, which needs another pass.
    """
    (n, mean, cov), sample = compute_moments_and_sample(rows)
    if n < 2:
        raise BadInput(
            f"A basis needs at least 2 records; {n} were left for it.",
            remedy="Release more records, or raise 'basis_share'.",
        )
    values, vectors = np.linalg.eigh(cov)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rank = int(np.sum(values > RANK_TOLERANCE * max(values[0], 1e-300)))
    s = count_components(components, values, rank)
    loadings = np.rint(fix_signs(vectors[:, :s]) / LOADING_STEP) * LOADING_STEP
    scored = rows if all_ranges else sample
    scores = scored.reduce(Scores.make_step(rows.schema, loadings, mean), Scores.merge)
    return {
        "columns": list(rows.schema.names),
        "loadings": loadings.tolist(),
        "variances": [round_outward(value) for value in values.tolist()],
        "ranges": [
            [round_outward(bottom, up=False), round_outward(top)]
            for bottom, top in zip(scores.low.tolist(), scores.high.tolist(), strict=True)
        ],
        "dropped_variance": round_outward(scores.dropped_variance(values[s:])),
    }


def compute_moments_and_sample(rows: Rows) -> tuple[Moments, ArrayRows]:
    """Return the moments and, from the same pass, at most a block of equally spaced records."""
    stride = math.ceil(rows.n / BLOCK)

    def step(block: Block) -> tuple[Moments, list[Floats]]:
        some = block.X[-block.start % stride :: stride]
        return compute_block_moments(block, rows.schema.numeric), [some.copy()]

    found, kept = rows.reduce(step, lambda a, b: (merge_moments(a[0], b[0]), a[1] + b[1]))
    return normalise_covariance(found), ArrayRows(rows.schema, np.concatenate(kept))


@dataclass(frozen=True, eq=False)
class Scores:
    """Extremes of the kept scores, and sums over the dropped scores T_N of the records."""

    low: Floats  # (s,)
    high: Floats  # (s,)
    n: int
    total: float  # of |T_N|^2, about the mean
    squares: float  # of |T_N|^4

    @staticmethod
    def make_step(schema: Schema, loadings: Floats, mean: Floats) -> Callable[[Block], Scores]:
        """Return the step that computes the scores of a block."""
        shift = (mean - (schema.lows + schema.highs) / 2) @ loadings  # to scores about the midpoint

        def step(block: Block) -> Scores:
            D = block.X - mean
            T = multiply_padded(D, loadings)
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
        """Return the variance of |T_N - T_N'|^2 over a random pair of records.

        For any distribution of scores it is 2 Var |T_N|^2 plus four times the sum of the squared
        variances. Eq. 13 of P0 has 8 times that sum, for normal and independent scores.
        """
        if not len(variances):
            return 0.0
        spread = max(self.squares - self.total**2 / self.n, 0.0) / (self.n - 1)
        return 2 * spread + 4 * float(np.sum(variances**2))


def count_components(
    components: int | float | Mapping[str, float], values: Floats, rank: int
) -> int:
    """Return the number of components to keep."""
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


def fix_signs(V: Floats) -> Floats:
    """Return V with the largest absolute loading of each component positive, to reproduce."""
    rows = np.argmax(np.abs(V), axis=0)
    return V * np.where(V[rows, np.arange(V.shape[1])] < 0, -1.0, 1.0)


def compute_box_ranges(loadings: Floats, widths: Floats) -> Floats:
    """Return the score interval of the complete column box around its midpoint."""
    half = np.abs(loadings).T @ widths / 2
    return np.stack([-half, half], axis=1)

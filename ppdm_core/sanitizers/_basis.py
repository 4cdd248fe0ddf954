"""A principal basis that may be published: fitted, rounded, and described in two digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ppdm_core.errors import BadInput
from ppdm_core.rounding import outward
from ppdm_core.rows import padded_product
from ppdm_core.scaling import moments
from ppdm_core.types import Block, Floats, Rows

LOADING_STEP = 2.0**-20
RANK_TOLERANCE = 1e-10


def fit_basis(rows: Rows, components: int | float | Mapping[str, float]) -> dict[str, Any]:
    """Loadings (d, s), variances of all d components, and ranges of the kept scores."""
    n, _, cov = moments(rows)
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
    centre = (rows.schema.lows + rows.schema.highs) / 2

    def extremes(block: Block) -> tuple[Floats, Floats]:
        T = padded_product(block.X - centre, loadings)
        return T.min(axis=0), T.max(axis=0)

    low, high = rows.reduce(extremes, lambda a, b: (np.minimum(a[0], b[0]), np.maximum(a[1], b[1])))
    return {
        "columns": list(rows.schema.names),
        "loadings": loadings.tolist(),
        "variances": [outward(value) for value in values.tolist()],
        "ranges": [
            [outward(bottom, up=False), outward(top)]
            for bottom, top in zip(low.tolist(), high.tolist(), strict=True)
        ],
    }


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
                remedy="The columns have no more independent directions than that.",
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


def distortion_moments(fitted: Mapping[str, Any], b: Floats) -> dict[str, float]:
    """Mean and variance of d'^2 - d^2 over a random pair and the noise (P0, eq. 12 and 13).

    d' is the distance of a clean query from a noisy record, as a recipient's classifier sees it.
    """
    values = np.array(fitted["variances"], dtype=np.float64)
    kept, dropped = values[: len(b)], values[len(b) :]
    mean = 2 * np.sum(b**2) - 2 * np.sum(dropped)
    variance = 16 * np.sum(b**2 * kept) + 20 * np.sum(b**4) + 8 * np.sum(dropped**2)
    return {
        "distance_distortion_mean": outward(float(mean)),
        "distance_distortion_variance": outward(float(variance)),
    }

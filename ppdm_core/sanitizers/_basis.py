"""A principal basis that may be published: rounded loadings and two-digit moments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import Block, Rows, multiply_padded
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.integer_moments import (
    IntegerMoments,
    compute_value_steps,
    sum_moments,
)
from ppdm_core.numerics.rounding import round_outward

DRAWN = "drawn"  # key of a fit: whether an earlier release drew records that were set aside for it
LOADING_STEP = 2.0**-20
RANK_TOLERANCE = 1e-10
LEVEL_DECADES = 4  # a range does not end nearer to zero than this much below the largest score


@dataclass(frozen=True, eq=False)
class BasisDraft:
    """A basis before the scores of the records were measured."""

    schema: Schema
    loadings: Floats  # (d, s)
    mean: Floats  # (d,) about the middle of the bounds, in coarse steps
    variances: Floats  # (d,) of all components


def fit_basis(rows: Rows, components: int | float | Mapping[str, float]) -> dict[str, Any]:
    """Fit loadings (d, s), variances of all d components, ranges of the kept scores, and the
    variance of squared distances within the dropped components.

    Everything follows from sums of integers and from extremes, so that records at several sites
    give the same basis as in one table.
    """
    moments = sum_moments(rows)
    draft = find_basis(moments, rows.schema, components)
    return complete_basis(draft, sum_scores(rows, draft.loadings, draft.mean))


def find_basis(
    moments: IntegerMoments, schema: Schema, components: int | float | Mapping[str, float]
) -> BasisDraft:
    """Return the basis of records with these moments."""
    if moments.n < 2:
        raise BadInput(
            f"A basis needs at least 2 records; {moments.n} were left for it.",
            remedy="Release more records, or raise 'basis_share'.",
        )
    values, vectors = np.linalg.eigh(moments.compute_covariance(schema))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rounding = float(np.max(compute_value_steps(schema))) ** 2  # variance that is no evidence
    rank = int(np.sum(values > max(RANK_TOLERANCE * values[0], rounding)))
    s = count_components(components, values, rank)
    loadings = np.rint(fix_signs(vectors[:, :s]) / LOADING_STEP) * LOADING_STEP
    return BasisDraft(schema, loadings, moments.compute_mean(schema), values)


def complete_basis(draft: BasisDraft, scores: Scores) -> dict[str, Any]:
    """Return the basis with what the scores of the same records add to it."""
    dropped = scores.dropped_variance(draft.schema, draft.variances[draft.loadings.shape[1] :])
    return {
        "columns": list(draft.schema.names),
        "loadings": draft.loadings.tolist(),
        "variances": [round_outward(value) for value in draft.variances.tolist()],
        "ranges": [list(pair) for pair in zip(scores.low, scores.high, strict=True)],
        "dropped_variance": round_outward(dropped),
    }


@dataclass(frozen=True, eq=False)
class Scores:
    """Extremes of the kept scores, and sums over the dropped scores T_N of the records."""

    low: list[float]  # (s,) rounded outward to two digits
    high: list[float]  # (s,)
    n: int
    total: int  # of |T_N|^2, about the coarse mean, in steps
    squares: int  # of |T_N|^4

    def merge(self, other: Scores) -> Scores:
        return Scores(
            list(map(min, self.low, other.low)),
            list(map(max, self.high, other.high)),
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
        )

    def dropped_variance(self, schema: Schema, variances: Floats) -> float:
        """Return the variance of |T_N - T_N'|^2 over a random pair of records.

        For any distribution of scores it is 2 Var |T_N|^2 plus four times the sum of the squared
        variances. Eq. 13 of P0 has 8 times that sum, for normal and independent scores.
        """
        if not len(variances):
            return 0.0
        spread = (self.n * self.squares - self.total**2) / (self.n * (self.n - 1))
        return 2 * spread * compute_length_step(schema) ** 2 + 4 * float(np.sum(variances**2))


def sum_scores(rows: Rows, loadings: Floats, mean: Floats) -> Scores:
    """Return the extremes and sums of the scores of the rows."""
    schema = rows.schema
    centre, unit = (schema.lows + schema.highs) / 2, compute_length_step(schema)
    levels = list_levels(schema, loadings)

    def step(block: Block) -> Scores:
        T = multiply_padded(block.X - centre, loadings)  # about the middle, as scores are released
        D = block.X - centre - mean
        about_mean = multiply_padded(D, loadings)
        lengths = np.sum(D * D, axis=1) - np.sum(about_mean * about_mean, axis=1)
        dropped = np.rint(np.maximum(lengths, 0.0) / unit).astype(np.int64)  # (n,) below 2^22
        return Scores(
            [find_level_below(each, low) for each, low in zip(levels, T.min(axis=0), strict=True)],
            [find_level_above(each, top) for each, top in zip(levels, T.max(axis=0), strict=True)],
            block.n,
            int(dropped.sum()),
            int(dropped @ dropped),
        )

    return rows.reduce(step, Scores.merge)


def compute_length_step(schema: Schema) -> float:
    """Return the step, a power of two, in which squared lengths of records are summed."""
    return math.ldexp(1.0, math.frexp(float(np.sum(schema.widths**2)))[1] - 22)


def list_levels(schema: Schema, loadings: Floats) -> list[Floats]:
    """Return for each component the ascending numbers of two digits that may end its range."""
    return [make_levels(high) for _, high in compute_box_ranges(loadings, schema.widths).tolist()]


def make_levels(reach: float) -> Floats:
    """Return zero and numbers of two digits on both sides, up to at least ``reach``."""
    top = math.floor(math.log10(max(reach, 1e-300)))
    decades = range(top - LEVEL_DECADES, top + 1)
    above = [float(f"{digits}e{decade - 1}") for decade in decades for digits in range(10, 100)]
    found = np.array([*above, float(f"1e{top + 1}")])
    return np.concatenate([-found[::-1], [0.0], found])


def find_level_above(levels: Floats, value: float) -> float:
    """Return the smallest level that is not below the value."""
    return float(levels[min(int(np.searchsorted(levels, value, side="left")), len(levels) - 1)])


def find_level_below(levels: Floats, value: float) -> float:
    """Return the largest level that is not above the value."""
    return float(levels[max(int(np.searchsorted(levels, value, side="right")) - 1, 0)])


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

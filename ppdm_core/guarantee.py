"""Amplification: by how much a released row can change anybody's odds (P0, theorems 1 and 4).

All figures are natural logarithms: ``exp`` overflows above 709. Three are always told: for one
released component, for one original attribute, and for the whole record.
"""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.noise import LN_SLACK, grid_ranges
from ppdm_core.types import Floats, Guarantee

EXACT_SIGNS = 20  # up to this many components the record figure enumerates all sign patterns
USELESS = 99.0  # above it the posterior of a 1 % property can pass 50 %


def posterior_bound(ln_gamma: float, prior: float) -> float:
    """The largest posterior of a property with this prior: gamma p / (1 + (gamma - 1) p)."""
    if prior in (0.0, 1.0):
        return prior
    odds = math.inf if ln_gamma < -700 else math.exp(-ln_gamma)
    return 1.0 / (1.0 + (1.0 - prior) / prior * odds)


def posterior_floor(ln_gamma: float, prior: float) -> float:
    """The smallest posterior of a property with this prior: p / (gamma - (gamma - 1) p)."""
    return posterior_bound(-ln_gamma, prior)


def laplace_figures(
    loadings: Floats,  # (d, s)
    widths: Floats,  # (d,) of the clamped columns
    b: Floats,  # (s,)
    g: Floats,  # (s,)
    ranges: Floats,  # (s, 2) of the scores
    clipped: bool,
) -> tuple[float, float, float]:
    """ln gamma of component, attribute and record for grid Laplace noise on linear scores.

    Rounding to the grid can move two scores apart by one step more than they were, so figures
    over the column box carry ``sum(g/b)``; those over widened score ranges already contain it.
    """
    slack = len(b) * LN_SLACK
    low, high = grid_ranges(ranges, g).T
    per_component = (high - low) * g / b  # (s,)
    rounding = float(np.sum(g / b))
    attribute = float(np.max(widths * np.sum(np.abs(loadings) / b, axis=1))) + rounding
    record = record_over_box(loadings / b, widths) + rounding
    if clipped:
        record = min(record, float(np.sum(per_component)))
    attribute = min(attribute, record)
    component = min(float(np.max(per_component)), record)
    return component + LN_SLACK, attribute + slack, record + slack


def record_over_box(slopes: Floats, widths: Floats) -> float:
    """max over signs of sum_j w_j |sum_i sigma_i slopes_ji|: exact over the column box."""
    s = slopes.shape[1]
    if s > EXACT_SIGNS:
        return math.sqrt(s) * float(np.linalg.norm(widths)) * float(np.linalg.norm(slopes, 2))
    weighted = slopes * widths[:, None]
    best = 0.0
    for start in range(0, 2 ** (s - 1), 4096):
        codes = np.arange(start, min(start + 4096, 2 ** (s - 1)))
        signs = np.where(codes[None, :] >> np.arange(s)[:, None] & 1, -1.0, 1.0)  # (s, chunk)
        best = max(best, float(np.abs(weighted @ signs).sum(axis=0).max()))
    return best


def empirical(*assumptions: str) -> Guarantee:
    return Guarantee("empirical", math.inf, math.inf, math.inf, assumptions)


def in_words(ln_gamma: float) -> str:
    """gamma as people read it."""
    if math.isinf(ln_gamma):
        return "unbounded"
    gamma = math.exp(min(ln_gamma, 30.0))
    if gamma < 10:
        return f"{gamma:.3g}"
    text = f"{gamma:,.0f}" if gamma < 1e6 else f"e^{ln_gamma:.1f}"
    return text if gamma <= USELESS else f"{text} (no useful worst-case bound)"

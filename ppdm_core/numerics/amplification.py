"""Amplification: the largest change of any odds by a released row (P0, theorems 1 and 4).

All figures are natural logarithms: ``exp`` overflows above 709. Three are always reported: for one
released component, for one original attribute, and for the complete record.
"""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.release import Guarantee
from ppdm_core.numerics.grid_noise import grid_ranges
from ppdm_core.numerics.noise import LN_SLACK
from ppdm_core.numerics.noise_distributions import NoiseDistribution

MAX_EXACT_COMPONENTS = 20  # up to this many, all sign patterns of a record are enumerated
MAX_USEFUL_GAMMA = 99.0  # above it the posterior of a 1 % property can pass 50 %
NO_USEFUL_BOUND = "no useful worst-case bound"


def compute_ln_gammas(
    distribution: NoiseDistribution,
    loadings: Floats,  # (d, s)
    widths: Floats,  # (d,) of the clamped columns
    b: Floats,  # (s,)
    g: Floats,  # (s,)
    ranges: Floats,  # (s, 2) of the scores
    clipped: bool,
) -> tuple[float, float, float]:
    """Return ln gamma of component, attribute and record for grid noise on linear scores.

    Rounding to the grid can increase the distance of two scores by one step, so figures over the
    column box include ``g/b``; those over widened score ranges already contain it.
    """
    slack = len(b) * LN_SLACK
    low, high = grid_ranges(ranges, g).T
    per_component = distribution.ln_gamma((high - low) * g / b)  # (s,)
    attribute, record = compute_box_ln_gammas(distribution, loadings, widths, b, g)
    if clipped:
        record = min(record, float(np.sum(per_component)))
    attribute = min(attribute, record)
    component = min(float(np.max(per_component)), record)
    return component + LN_SLACK, attribute + slack, record + slack


def compute_box_ln_gammas(
    distribution: NoiseDistribution, loadings: Floats, widths: Floats, b: Floats, g: Floats
) -> tuple[float, float]:
    """Return ln gamma of attribute and record for records anywhere in the column box.

    Exact up to rounding, except for the record under a distribution that is not linear: the sum of
    a concave function over s distances is at most s times its value at their mean (Jensen), and
    their largest sum is the record's figure for Laplace noise.
    """
    s, rounding = len(b), float(np.sum(g / b))
    total = compute_record_box_ln_gamma(loadings / b, widths) + rounding
    if distribution.is_linear:
        return float(np.max(widths * np.sum(np.abs(loadings) / b, axis=1))) + rounding, total
    distances = widths[:, None] * np.abs(loadings) / b + g / b  # (d, s)
    attribute = float(np.max(np.sum(distribution.ln_gamma(distances), axis=1)))
    return attribute, s * float(distribution.ln_gamma(np.array(total / s)))


def compute_record_box_ln_gamma(slopes: Floats, widths: Floats) -> float:
    """Return max over signs of sum_j w_j |sum_i sigma_i slopes_ji|: exact over the column box."""
    s = slopes.shape[1]
    if s > MAX_EXACT_COMPONENTS:
        return math.sqrt(s) * float(np.linalg.norm(widths)) * float(np.linalg.norm(slopes, 2))
    weighted = slopes * widths[:, None]
    best = 0.0
    for start in range(0, 2 ** (s - 1), 4096):
        codes = np.arange(start, min(start + 4096, 2 ** (s - 1)))
        signs = np.where(codes[None, :] >> np.arange(s)[:, None] & 1, -1.0, 1.0)  # (s, chunk)
        best = max(best, float(np.abs(weighted @ signs).sum(axis=0).max()))
    return best


def make_empirical_guarantee(*assumptions: str) -> Guarantee:
    """Return a guarantee without any bound."""
    return Guarantee("empirical", math.inf, math.inf, math.inf, assumptions)


def format_gamma(ln_gamma: float) -> str:
    """Format gamma, with a remark if the bound is not useful."""
    remark = f" ({NO_USEFUL_BOUND})" if is_useless_bound(ln_gamma) else ""
    return format_gamma_value(ln_gamma) + remark


def is_useless_bound(ln_gamma: float) -> bool:
    """Return whether gamma is bounded, but so large that the bound says nothing."""
    is_useful = math.exp(min(ln_gamma, 30.0)) <= MAX_USEFUL_GAMMA  # False for NaN
    return not is_useful and not math.isinf(ln_gamma)


def format_gamma_value(ln_gamma: float) -> str:
    """Format gamma in few digits, without a remark on its use."""
    if math.isinf(ln_gamma):
        return "unbounded"
    gamma = math.exp(min(ln_gamma, 30.0))
    if gamma < 10:
        return f"{gamma:.3g}"
    return f"{gamma:,.0f}" if gamma < 1e6 else f"e^{ln_gamma:.1f}"

"""Amplification: by how much a released row can change anybody's odds (P0, theorems 1 and 4).

All figures are natural logarithms: ``exp`` overflows above 709. Three are always told: for one
released component, for one original attribute, and for the whole record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.release import Guarantee
from ppdm_core.numerics.distributions import DrawnLaw, Law
from ppdm_core.numerics.noise import LN_SLACK, grid_ranges

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


def allowed_ln_gamma(prior: float, posterior: float) -> float:
    """The ln gamma below which no property goes from this prior to this posterior or higher."""
    if not 0 < prior <= posterior < 1:
        raise ValueError("needs 0 < prior <= posterior < 1")
    return math.log(posterior) - math.log1p(-posterior) - math.log(prior) + math.log1p(-prior)


@dataclass(frozen=True)
class Amplification:
    ln_gamma: float  # inf where there is no bound, or none was shown
    why: str

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.ln_gamma)


@dataclass(frozen=True)
class LogDensity:
    """A law known by its log density alone, and what its author claims about it.

    Points cannot prove a bound: a pole or a steep tail may lie between or beyond them. So the
    claims make the bound, and points can only refute them.
    """

    log_density: Callable[[Floats], Floats]
    radius: float  # of the compact interval around zero
    slope: float | None = None  # ln f changes at most so fast anywhere outside it
    spread: float | None = None  # at least sup ln f - inf ln f within it


def amplification(law: Law | LogDensity, distance: float) -> Amplification:
    """ln gamma over a domain of this width, in scales (P0, theorem 4 with its missing condition:
    the density must also be bounded, and bounded away from zero, on compact sets)."""
    if isinstance(law, Law):
        why = law.why_unbounded or "closed form"
        return Amplification(float(law.ln_gamma(np.array(distance))), why)
    if law.slope is None or law.spread is None:
        missing = "a bound on its slope outside a compact set and on its spread within"
        return Amplification(math.inf, f"Not shown bounded: needs {missing}.")
    if is_refuted(law, law.slope, law.spread):
        return Amplification(math.inf, "Not shown bounded: the density breaks its claimed bounds.")
    # On the straight way between two points, ln f changes by at most the slope times the length
    # outside the interval, and by at most the spread on the one stretch inside.
    return Amplification(law.slope * distance + law.spread, "claimed slope and spread")


def is_refuted(law: LogDensity, slope: float, spread: float, points: int = 20_001) -> bool:
    """Points contradict the claims: within the interval, or on a way far out on either side."""
    if not (0 <= slope < math.inf and 0 <= spread < math.inf and 0 < law.radius < math.inf):
        return True
    with np.errstate(all="ignore"):  # what is no number refutes
        inside = law.log_density(np.linspace(-law.radius, law.radius, points))
        x = law.radius * np.geomspace(1.0, 1e6, points)
        changes = [np.abs(np.diff(law.log_density(side))) for side in (x, -x)]
        steep = np.array([change / np.diff(x) for change in changes])
    tolerance = 1 + 1e-6
    is_kept = np.ptp(inside) <= spread * tolerance and np.all(steep <= slope * tolerance)
    return not bool(is_kept)


def figures(
    law: DrawnLaw,
    loadings: Floats,  # (d, s)
    widths: Floats,  # (d,) of the clamped columns
    b: Floats,  # (s,)
    g: Floats,  # (s,)
    ranges: Floats,  # (s, 2) of the scores
    clipped: bool,
) -> tuple[float, float, float]:
    """ln gamma of component, attribute and record for grid noise on linear scores.

    Rounding to the grid can move two scores apart by one step more than they were, so figures
    over the column box carry ``g/b``; those over widened score ranges already contain it.
    """
    slack = len(b) * LN_SLACK
    low, high = grid_ranges(ranges, g).T
    per_component = law.ln_gamma((high - low) * g / b)  # (s,)
    attribute, record = over_box(law, loadings, widths, b, g)
    if clipped:
        record = min(record, float(np.sum(per_component)))
    attribute = min(attribute, record)
    component = min(float(np.max(per_component)), record)
    return component + LN_SLACK, attribute + slack, record + slack


def over_box(
    law: DrawnLaw, loadings: Floats, widths: Floats, b: Floats, g: Floats
) -> tuple[float, float]:
    """ln gamma of attribute and record when records are anywhere in the column box.

    Exact up to rounding, but for the record under a law that is not linear: the sum of a concave
    function over s distances is at most s times its value at their mean (Jensen), and their
    largest sum is the record's figure for Laplace noise.
    """
    s, rounding = len(b), float(np.sum(g / b))
    total = record_over_box(loadings / b, widths) + rounding
    if law.is_linear:
        return float(np.max(widths * np.sum(np.abs(loadings) / b, axis=1))) + rounding, total
    distances = widths[:, None] * np.abs(loadings) / b + g / b  # (d, s)
    attribute = float(np.max(np.sum(law.ln_gamma(distances), axis=1)))
    return attribute, s * float(law.ln_gamma(np.array(total / s)))


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
    is_useful = math.exp(min(ln_gamma, 30.0)) <= USELESS  # NaN is not
    told = is_useful or math.isinf(ln_gamma)
    return figure(ln_gamma) + ("" if told else " (no useful worst-case bound)")


def figure(ln_gamma: float) -> str:
    """gamma in few digits, without a word on what it is worth."""
    if math.isinf(ln_gamma):
        return "unbounded"
    gamma = math.exp(min(ln_gamma, 30.0))
    if gamma < 10:
        return f"{gamma:.3g}"
    return f"{gamma:,.0f}" if gamma < 1e6 else f"e^{ln_gamma:.1f}"

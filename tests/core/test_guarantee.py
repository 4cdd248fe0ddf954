from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core import guarantee
from ppdm_core.guarantee import (
    in_words,
    laplace_figures,
    posterior_bound,
    posterior_floor,
    record_over_box,
)
from ppdm_core.noise import LN_SLACK, Noise, grid_ranges, grid_step, on_grid, reach
from ppdm_core.sanitizers._basis import box_ranges
from ppdm_core.types import Block

priors = st.floats(1e-6, 1 - 1e-6)
logs = st.floats(0.0, 30.0)


def log_pmf(center: int, low: int, high: int, ratio: float) -> np.ndarray:
    """ln P of each output in [low, high] of ``center`` + geometric noise, clamped to it."""
    k = np.arange(low, high + 1) - center
    ln_q = -ratio
    inside = math.log(math.tanh(ratio / 2)) + np.abs(k) * ln_q
    for end in (0, -1):  # all that lies beyond ends there
        inside[end] = abs(k[end]) * ln_q - math.log1p(math.exp(ln_q))
    return inside


class Mechanism:
    """The discretised mechanism itself, from its definition."""

    def __init__(self, rng: np.random.Generator, d: int, s: int, clipped: bool) -> None:
        self.loadings = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :s]
        self.widths = rng.uniform(0.5, 2.0, d)
        self.b = rng.uniform(0.5, 2.0, s)
        self.g = 2.0 ** np.floor(np.log2(self.b / 6))  # coarse, so that rounding matters
        box = box_ranges(self.loadings, self.widths)
        self.ranges = box * rng.uniform(0.3, 0.9, (s, 1)) if clipped else box
        self.clipped = clipped

    def figures(self) -> tuple[float, float, float]:
        return laplace_figures(
            self.loadings, self.widths, self.b, self.g, self.ranges, self.clipped
        )

    @property
    def rounding(self) -> float:
        return float(np.sum(self.g / self.b))

    def ln_ratios(self, X: np.ndarray) -> np.ndarray:
        """(pairs, pairs, s): max over outputs of ln P(z | x1) / P(z | x2), per component."""
        low, high = grid_ranges(self.ranges, self.g).T
        steps = np.clip(np.rint(X @ self.loadings / self.g), low, high).astype(int)  # (n, s)
        ends = reach(self.ranges, self.b, self.g).astype(int)
        ratios = []
        for i in range(len(self.b)):
            places, where = np.unique(steps[:, i], return_inverse=True)
            P = np.array([log_pmf(c, *ends[i], self.g[i] / self.b[i]) for c in places])
            worst = np.array([(P - one).max(axis=1) for one in P]).T
            ratios.append(worst[where][:, where])
        return np.stack(ratios, axis=2)


def corners(widths: np.ndarray) -> np.ndarray:
    return np.array(list(itertools.product(*[(-w / 2, w / 2) for w in widths])))


@pytest.mark.parametrize("clipped", [False, True], ids=["box", "clipped"])
@pytest.mark.parametrize(("d", "s"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3), (6, 1), (6, 3)])
def test_figures_against_brute_force(d, s, clipped):
    rng = np.random.default_rng(10 * d + s)
    m = Mechanism(rng, d, s, clipped)
    component, attribute, record = m.figures()
    X = np.concatenate([corners(m.widths), rng.uniform(-0.5, 0.5, (40, d)) * m.widths])
    ratios = m.ln_ratios(X)
    worst_record = ratios.sum(axis=2).max()
    worst_component = ratios.max()
    assert worst_record <= record
    assert worst_component <= component
    # Nearly reached, up to what rounding may do to either end of a range.
    if not clipped:
        assert record <= worst_record + 2 * m.rounding + s * LN_SLACK + 1e-9
    assert component <= worst_component + 2 * np.max(m.g / m.b) + s * LN_SLACK + 1e-9
    assert worst_attribute(m, X) <= attribute <= record


def worst_attribute(m: Mechanism, X: np.ndarray) -> float:
    """One column over its whole range, all others anywhere."""
    worst = 0.0
    for j, width in enumerate(m.widths):
        for x in X:
            pair = np.stack([x, x])
            pair[:, j] = -width / 2, width / 2
            worst = max(worst, float(m.ln_ratios(pair).sum(axis=2).max()))
    return worst


def test_attribute_figure_is_nearly_reached():
    rng = np.random.default_rng(5)
    m = Mechanism(rng, 4, 2, clipped=False)
    X = rng.uniform(-0.5, 0.5, (300, 4)) * m.widths
    attribute = m.figures()[1]
    assert attribute - 2 * m.rounding <= worst_attribute(m, X) <= attribute


def test_rounding_alone_can_break_an_uncorrected_figure():
    # Two scores just across a rounding edge end one whole step apart.
    m = Mechanism(np.random.default_rng(0), 1, 1, clipped=False)
    m.loadings, m.widths = np.array([[1.0]]), np.array([1.2])
    m.b, m.g, m.ranges = np.array([1.0]), np.array([0.5]), np.array([[-0.6, 0.6]])
    X = np.array([[-0.26], [0.26]])
    assert m.ln_ratios(X).max() == pytest.approx(1.0)  # 0.52 apart, and yet two steps of 0.5
    assert m.figures()[2] >= 1.2 + 0.5


@pytest.mark.parametrize("b", [0.1, 0.25, 0.3, 1.0])
def test_per_component_is_the_papers_closed_form(b):
    ranges = np.array([[-1.0, 1.0], [-0.25, 0.25]])
    scales = b * (ranges[:, 1] - ranges[:, 0])
    g = np.array([grid_step(scale) for scale in scales])
    loadings = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 2)))[0]
    component, _, record = laplace_figures(loadings, np.full(9, 5.0), scales, g, ranges, True)
    # Both ranges are multiples of their grid, so nothing is lost to widening.
    assert component == pytest.approx(1 / b, abs=1e-6)
    assert record == pytest.approx(2 / b, abs=1e-6)
    assert component >= 1 / b


@pytest.mark.parametrize(
    ("b", "gamma", "posterior"), [(0.3, 28.03, 0.0273), (0.25, 54.6, 0.0518), (0.1, 22026, 0.957)]
)
def test_numbers_of_the_paper(b, gamma, posterior):
    assert math.exp(1 / b) == pytest.approx(gamma, rel=1e-3)
    assert posterior_bound(1 / b, 0.001) == pytest.approx(posterior, rel=2e-3)


def test_record_level_figure_of_eight_components():
    # s = 8, b = 0.3: 3.8e11, not the 28 of one component.
    ranges = np.tile([[-0.5, 0.5]], (8, 1))
    g = np.full(8, grid_step(0.3))
    figures = laplace_figures(np.eye(8), np.full(8, 9.0), np.full(8, 0.3), g, ranges, True)
    assert math.exp(figures[2]) == pytest.approx(3.8e11, rel=0.02)


@pytest.mark.parametrize("s", [1, 2, 5, 7])
def test_sign_patterns_against_brute_force(s):
    rng = np.random.default_rng(s)
    slopes, widths = rng.standard_normal((6, s)), rng.uniform(0.1, 3.0, 6)
    signs = itertools.product((-1, 1), repeat=s)
    expected = max(float(np.sum(widths * np.abs(slopes @ np.array(sign)))) for sign in signs)
    assert record_over_box(slopes, widths) == pytest.approx(expected)


def test_sign_patterns_beyond_one_chunk():
    rng = np.random.default_rng(3)
    slopes = rng.standard_normal((3, 14))  # 2^13 patterns
    best = record_over_box(slopes, np.ones(3))
    # The worst pair of box corners gives the same: sum_i |slopes_i . x| over corners x.
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    assert best == pytest.approx(np.abs(corners @ slopes).sum(axis=1).max())


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 7), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_bound_for_many_components_is_an_upper_bound(s, d, seed):
    rng = np.random.default_rng(seed)
    slopes, widths = rng.standard_normal((d, s)), rng.uniform(0.0, 2.0, d)
    exact = record_over_box(slopes, widths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guarantee, "EXACT_SIGNS", 3)
        assert record_over_box(slopes, widths) >= exact


def test_bound_beyond_twenty_components():
    rng = np.random.default_rng(1)
    loadings = np.linalg.qr(rng.standard_normal((30, 21)))[0]
    b, widths = rng.uniform(0.5, 2.0, 21), rng.uniform(0.5, 2.0, 30)
    bound = record_over_box(loadings / b, widths)
    signs = rng.choice([-1.0, 1.0], (21, 20_000))
    assert bound >= np.abs((loadings / b * widths[:, None]) @ signs).sum(axis=0).max()
    assert bound <= math.sqrt(21) * np.linalg.norm(widths) / b.min() * (1 + 1e-9)


@given(logs, priors)
def test_posterior_bound_is_bayes_with_the_worst_odds(ln_gamma, prior):
    gamma = math.exp(ln_gamma)
    bound = posterior_bound(ln_gamma, prior)
    assert bound == pytest.approx(gamma * prior / (1 + (gamma - 1) * prior))
    assert prior * (1 - 1e-12) <= bound <= 1.0
    floor = posterior_floor(ln_gamma, prior)
    assert floor == pytest.approx(prior / (gamma - (gamma - 1) * prior), rel=1e-6, abs=1e-15)
    assert 0.0 <= floor <= prior * (1 + 1e-6) + 1e-15


@given(logs, st.floats(0.0, 5.0), priors)
def test_more_amplification_never_bounds_more_tightly(ln_gamma, more, prior):
    assert posterior_bound(ln_gamma + more, prior) >= posterior_bound(ln_gamma, prior)
    assert posterior_floor(ln_gamma + more, prior) <= posterior_floor(ln_gamma, prior)


def test_posteriors_at_the_ends():
    assert posterior_bound(0.0, 0.3) == pytest.approx(0.3)
    assert posterior_floor(0.0, 0.3) == pytest.approx(0.3)
    assert posterior_bound(math.inf, 0.3) == 1.0
    assert posterior_floor(math.inf, 0.3) == 0.0
    assert posterior_bound(math.inf, 0.0) == 0.0
    assert posterior_bound(1000.0, 1e-9) == 1.0


@pytest.mark.parametrize(
    ("ln_gamma", "text"),
    [
        (math.log(2.5), "2.5"),
        (1 / 0.3, "28"),
        (math.log(99.0), "99"),
        (math.log(99.1), "99 (no useful worst-case bound)"),
        (math.log(1000.0), "1,000 (no useful worst-case bound)"),
        (80.0, "e^80.0 (no useful worst-case bound)"),
        (800.0, "e^800.0 (no useful worst-case bound)"),
        (math.inf, "unbounded"),
    ],
)
def test_in_words(ln_gamma, text):
    assert in_words(ln_gamma) == text


def test_a_bound_that_is_no_number_is_never_called_useful():
    assert "no useful" in in_words(math.nan)


@pytest.mark.slow
def test_empirical_gamma_of_the_sampler():
    n, b = 1_000_000, np.array([0.5])
    g, ranges = np.array([grid_step(0.5)]), np.array([[-0.5, 0.5]])
    rows = Block(
        X=np.arange(n, dtype=np.float64)[:, None],
        C=np.zeros((n, 0), dtype=np.int32),
        label=np.zeros(n, dtype=np.int32),
        key=np.zeros((n, 16), dtype=np.uint8),
        start=0,
    )
    drawn = [
        on_grid(np.full((n, 1), x), Noise(bytes([i]) * 32).bits(rows, "x", 1, b""), b, g, ranges)
        for i, x in enumerate((0.5, -0.5))
    ]
    figure = laplace_figures(np.eye(1), np.ones(1), b, g, ranges, True)[0]
    for edge in (0.5, 0.8, 1.2):
        high, low = (float(np.mean(edge <= Z)) for Z in drawn)
        error = 4 * math.sqrt((1 - high) / (n * high) + (1 - low) / (n * low))
        ratio = math.log(high / low)
        assert ratio <= figure + error
        assert ratio >= figure - error - 0.01

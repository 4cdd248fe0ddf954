from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.numerics import amplification as guarantee
from ppdm_core.numerics.amplification import compute_ln_gammas, compute_record_box_ln_gamma
from ppdm_core.numerics.grid_noise import grid_ranges, grid_step, output_limits
from ppdm_core.numerics.noise import LN_SLACK
from ppdm_core.numerics.noise_distributions import LAPLACE, Logistic, NoiseDistribution, StudentT
from ppdm_core.sanitizers._basis import compute_box_ranges


def compute_log_pmf(center: int, low: int, high: int, ratio: float) -> np.ndarray:
    """Return ln P of each output in [low, high] of ``center`` + geometric noise, clamped."""
    k = np.arange(low, high + 1) - center
    ln_q = -ratio
    inside = math.log(math.tanh(ratio / 2)) + np.abs(k) * ln_q
    for end in (0, -1):  # outputs beyond are clamped to the ends
        inside[end] = abs(k[end]) * ln_q - math.log1p(math.exp(ln_q))
    return inside


class Mechanism:
    """The discretised mechanism, from its definition."""

    def __init__(self, rng: np.random.Generator, d: int, s: int, clipped: bool) -> None:
        self.loadings = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :s]
        self.widths = rng.uniform(0.5, 2.0, d)
        self.b = rng.uniform(0.5, 2.0, s)
        self.g = 2.0 ** np.floor(np.log2(self.b / 6))  # coarse, so that rounding matters
        box = compute_box_ranges(self.loadings, self.widths)
        self.ranges = box * rng.uniform(0.3, 0.9, (s, 1)) if clipped else box
        self.clipped = clipped

    def compute_ln_gammas(self) -> tuple[float, float, float]:
        return compute_ln_gammas(
            LAPLACE, self.loadings, self.widths, self.b, self.g, self.ranges, self.clipped
        )

    @property
    def rounding(self) -> float:
        return float(np.sum(self.g / self.b))

    def ln_ratios(self, X: np.ndarray) -> np.ndarray:
        """(pairs, pairs, s): max over outputs of ln P(z | x1) / P(z | x2), per component."""
        low, high = grid_ranges(self.ranges, self.g).T
        steps = np.clip(np.rint(X @ self.loadings / self.g), low, high).astype(int)  # (n, s)
        ends = output_limits(self.ranges, self.b, self.g).astype(int)
        ratios = []
        for i in range(len(self.b)):
            places, where = np.unique(steps[:, i], return_inverse=True)
            P = np.array([compute_log_pmf(c, *ends[i], self.g[i] / self.b[i]) for c in places])
            worst = np.array([(P - one).max(axis=1) for one in P]).T
            ratios.append(worst[where][:, where])
        return np.stack(ratios, axis=2)


def make_corners(widths: np.ndarray) -> np.ndarray:
    return np.array(list(itertools.product(*[(-w / 2, w / 2) for w in widths])))


@pytest.mark.extended
@pytest.mark.parametrize("clipped", [False, True], ids=["box", "clipped"])
@pytest.mark.parametrize(("d", "s"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3), (6, 1), (6, 3)])
def test_ln_gammas_match_brute_force(d, s, clipped):
    rng = np.random.default_rng(10 * d + s)
    m = Mechanism(rng, d, s, clipped)
    component, attribute, record = m.compute_ln_gammas()
    X = np.concatenate([make_corners(m.widths), rng.uniform(-0.5, 0.5, (40, d)) * m.widths])
    ratios = m.ln_ratios(X)
    worst_record = ratios.sum(axis=2).max()
    worst_component = ratios.max()
    assert worst_record <= record
    assert worst_component <= component
    # Nearly reached, up to what rounding may do to either end of a range.
    if not clipped:
        assert record <= worst_record + 2 * m.rounding + s * LN_SLACK + 1e-9
    assert component <= worst_component + 2 * np.max(m.g / m.b) + s * LN_SLACK + 1e-9
    assert find_worst_attribute(m, X) <= attribute <= record


def find_worst_attribute(m: Mechanism, X: np.ndarray) -> float:
    """Return the largest ratio for one column over its complete range, the others anywhere."""
    worst = 0.0
    for j, width in enumerate(m.widths):
        for x in X:
            pair = np.stack([x, x])
            pair[:, j] = -width / 2, width / 2
            worst = max(worst, float(m.ln_ratios(pair).sum(axis=2).max()))
    return worst


def test_ln_gammas_attribute_is_nearly_reached():
    rng = np.random.default_rng(5)
    m = Mechanism(rng, 4, 2, clipped=False)
    X = rng.uniform(-0.5, 0.5, (300, 4)) * m.widths
    attribute = m.compute_ln_gammas()[1]
    assert attribute - 2 * m.rounding <= find_worst_attribute(m, X) <= attribute


def test_ln_gammas_rounding_needs_correction():
    # Rounding can increase the distance of two scores by one step.
    m = Mechanism(np.random.default_rng(0), 1, 1, clipped=False)
    m.loadings, m.widths = np.array([[1.0]]), np.array([1.2])
    m.b, m.g, m.ranges = np.array([1.0]), np.array([0.5]), np.array([[-0.6, 0.6]])
    X = np.array([[-0.26], [0.26]])
    assert m.ln_ratios(X).max() == pytest.approx(1.0)  # 0.52 apart, and yet two steps of 0.5
    assert m.compute_ln_gammas()[2] >= 1.2 + 0.5


@pytest.mark.parametrize("b", [0.1, 0.25, 0.3, 1.0])
def test_ln_gammas_per_component_is_closed_form_of_paper(b):
    ranges = np.array([[-1.0, 1.0], [-0.25, 0.25]])
    scales = b * (ranges[:, 1] - ranges[:, 0])
    g = np.array([grid_step(scale) for scale in scales])
    loadings = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 2)))[0]
    component, _, record = compute_ln_gammas(
        LAPLACE, loadings, np.full(9, 5.0), scales, g, ranges, True
    )
    # Both ranges are multiples of their grid, so nothing is lost to widening.
    assert component == pytest.approx(1 / b, abs=1e-6)
    assert record == pytest.approx(2 / b, abs=1e-6)
    assert component >= 1 / b


def test_ln_gammas_record_of_eight_components():
    # s = 8, b = 0.3: 3.8e11, not the 28 of one component.
    ranges = np.tile([[-0.5, 0.5]], (8, 1))
    g = np.full(8, grid_step(0.3))
    found = compute_ln_gammas(LAPLACE, np.eye(8), np.full(8, 9.0), np.full(8, 0.3), g, ranges, True)
    assert math.exp(found[2]) == pytest.approx(3.8e11, rel=0.02)


@pytest.mark.parametrize("s", [1, 2, 5, 7])
def test_record_box_ln_gamma_matches_brute_force(s):
    rng = np.random.default_rng(s)
    slopes, widths = rng.standard_normal((6, s)), rng.uniform(0.1, 3.0, 6)
    signs = itertools.product((-1, 1), repeat=s)
    expected = max(float(np.sum(widths * np.abs(slopes @ np.array(sign)))) for sign in signs)
    assert compute_record_box_ln_gamma(slopes, widths) == pytest.approx(expected)


def test_record_box_ln_gamma_several_chunks():
    rng = np.random.default_rng(3)
    slopes = rng.standard_normal((3, 14))  # 2^13 patterns
    best = compute_record_box_ln_gamma(slopes, np.ones(3))
    # The worst pair of box corners gives the same: sum_i |slopes_i . x| over corners x.
    make_corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    assert best == pytest.approx(np.abs(make_corners @ slopes).sum(axis=1).max())


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 7), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_record_box_ln_gamma_many_components_is_upper_bound(s, d, seed):
    rng = np.random.default_rng(seed)
    slopes, widths = rng.standard_normal((d, s)), rng.uniform(0.0, 2.0, d)
    exact = compute_record_box_ln_gamma(slopes, widths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guarantee, "MAX_EXACT_COMPONENTS", 3)
        assert compute_record_box_ln_gamma(slopes, widths) >= exact


def test_record_box_ln_gamma_above_twenty_components():
    rng = np.random.default_rng(1)
    loadings = np.linalg.qr(rng.standard_normal((30, 21)))[0]
    b, widths = rng.uniform(0.5, 2.0, 21), rng.uniform(0.5, 2.0, 30)
    bound = compute_record_box_ln_gamma(loadings / b, widths)
    signs = rng.choice([-1.0, 1.0], (21, 20_000))
    assert bound >= np.abs((loadings / b * widths[:, None]) @ signs).sum(axis=0).max()
    assert bound <= math.sqrt(21) * np.linalg.norm(widths) / b.min() * (1 + 1e-9)


def make_mechanism(distribution: NoiseDistribution, d: int, s: int, seed: int) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    loadings = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :s]
    widths, b = rng.uniform(0.5, 2.0, d), rng.uniform(0.2, 2.0, s)
    box = compute_box_ranges(loadings, widths)
    return SimpleNamespace(
        distribution=distribution, loadings=loadings, widths=widths, b=b, g=b / 1024, ranges=box
    )


@pytest.mark.parametrize("nu", [1.0, 3.0, 20.0])
@pytest.mark.parametrize(("d", "s"), [(1, 1), (3, 2), (4, 4), (6, 3)])
def test_ln_gammas_student_t_bound_pairs_of_records(d, s, nu):
    m = make_mechanism(StudentT(nu), d, s, seed=d + s)
    component, attribute, record = compute_ln_gammas(**vars(m), clipped=False)
    rng = np.random.default_rng(1)
    # The sum over components is not convex, so pairs inside the box are tried, too.
    inside = rng.uniform(-1, 1, (4000, d)) * m.widths
    moves = np.concatenate([2 * make_corners(m.widths), inside])  # differences of two records
    reached = m.distribution.ln_gamma(np.abs(moves @ m.loadings) / m.b)  # (pairs, s)
    assert reached.sum(axis=1).max() <= record
    assert reached.max() <= component <= reached.max() + 0.05
    single = m.distribution.ln_gamma(m.widths[:, None] * np.abs(m.loadings) / m.b).sum(axis=1).max()
    assert single <= attribute <= single + 0.02 * s
    # Never worse than the slope at zero, with which the figure would be that of Laplace noise.
    steepest = (nu + 1) / (2 * math.sqrt(nu))
    assert (
        record
        <= steepest * compute_ln_gammas(**{**vars(m), "distribution": LAPLACE}, clipped=False)[2]
    )
    assert compute_ln_gammas(**vars(m), clipped=True)[2] <= record


def test_ln_gammas_student_t_record_exact_for_independent_columns():
    distribution, widths, b = StudentT(3.0), np.array([1.0, 4.0]), np.array([0.5, 0.5])
    ranges = compute_box_ranges(np.eye(2), widths)
    component, attribute, record = compute_ln_gammas(
        distribution, np.eye(2), widths, b, np.full(2, 2.0**-12), ranges, True
    )
    each = 4 * np.arcsinh(widths / b / (2 * math.sqrt(3)))
    assert record == pytest.approx(each.sum(), abs=1e-6)
    assert component == pytest.approx(each.max(), abs=1e-6)
    assert component <= attribute <= component + 0.002


def test_ln_gammas_logistic_equal_laplace():
    m = vars(make_mechanism(Logistic(), 4, 3, seed=2))
    assert compute_ln_gammas(**m, clipped=False) == compute_ln_gammas(
        **{**m, "distribution": LAPLACE}, clipped=False
    )

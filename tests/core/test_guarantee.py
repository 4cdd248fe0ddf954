from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv, gammaincc

from ppdm_core import guarantee
from ppdm_core.guarantee import (
    figures,
    in_words,
    posterior_bound,
    posterior_floor,
    record_over_box,
)
from ppdm_core.laws import LAPLACE, DrawnLaw, Logistic, StudentT
from ppdm_core.noise import LN_SLACK, GridNoise, Noise, grid_ranges, grid_step, reach
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
        return figures(
            LAPLACE, self.loadings, self.widths, self.b, self.g, self.ranges, self.clipped
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
    component, _, record = figures(LAPLACE, loadings, np.full(9, 5.0), scales, g, ranges, True)
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
    found = figures(LAPLACE, np.eye(8), np.full(8, 9.0), np.full(8, 0.3), g, ranges, True)
    assert math.exp(found[2]) == pytest.approx(3.8e11, rel=0.02)


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


def planted_mechanism(law: DrawnLaw, d: int, s: int, seed: int) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    loadings = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :s]
    widths, b = rng.uniform(0.5, 2.0, d), rng.uniform(0.2, 2.0, s)
    box = box_ranges(loadings, widths)
    return SimpleNamespace(law=law, loadings=loadings, widths=widths, b=b, g=b / 1024, ranges=box)


@pytest.mark.parametrize("nu", [1.0, 3.0, 20.0])
@pytest.mark.parametrize(("d", "s"), [(1, 1), (3, 2), (4, 4), (6, 3)])
def test_figures_of_student_t_bound_what_pairs_of_records_reach(d, s, nu):
    m = planted_mechanism(StudentT(nu), d, s, seed=d + s)
    component, attribute, record = figures(**vars(m), clipped=False)
    rng = np.random.default_rng(1)
    # The sum over components is not convex, so pairs inside the box are tried beside its corners.
    inside = rng.uniform(-1, 1, (4000, d)) * m.widths
    moves = np.concatenate([2 * corners(m.widths), inside])  # differences of two records
    reached = m.law.ln_gamma(np.abs(moves @ m.loadings) / m.b)  # (pairs, s)
    assert reached.sum(axis=1).max() <= record
    assert reached.max() <= component <= reached.max() + 0.05
    single = m.law.ln_gamma(m.widths[:, None] * np.abs(m.loadings) / m.b).sum(axis=1).max()
    assert single <= attribute <= single + 0.02 * s
    # Never worse than the slope at zero, with which the figure would be that of a Laplace law.
    steepest = (nu + 1) / (2 * math.sqrt(nu))
    assert record <= steepest * figures(**{**vars(m), "law": LAPLACE}, clipped=False)[2]
    assert figures(**vars(m), clipped=True)[2] <= record


def test_record_figure_of_student_t_is_exact_for_independent_columns():
    law, widths, b = StudentT(3.0), np.array([1.0, 4.0]), np.array([0.5, 0.5])
    ranges = box_ranges(np.eye(2), widths)
    component, attribute, record = figures(
        law, np.eye(2), widths, b, np.full(2, 2.0**-12), ranges, True
    )
    each = 4 * np.arcsinh(widths / b / (2 * math.sqrt(3)))
    assert record == pytest.approx(each.sum(), abs=1e-6)
    assert component == pytest.approx(each.max(), abs=1e-6)
    assert component <= attribute <= component + 0.002


def test_logistic_has_the_figures_of_laplace():
    m = vars(planted_mechanism(Logistic(), 4, 3, seed=2))
    assert figures(**m, clipped=False) == figures(**{**m, "law": LAPLACE}, clipped=False)


def draws(noise: GridNoise, score: float, key: int, rows: int) -> np.ndarray:
    """Many draws from one score, of many records with 20 components each."""
    block = Block(
        X=np.arange(rows, dtype=np.float64)[:, None],
        C=np.zeros((rows, 0), dtype=np.int32),
        label=np.zeros(rows, dtype=np.int32),
        key=np.zeros((rows, 16), dtype=np.uint8),
        start=0,
    )
    bits = Noise(bytes([key]) * 32).bits(block, "x", 20, b"")
    return noise.add(np.full((rows, 20), score), bits).ravel()


def lower_bound(likely: np.ndarray, unlikely: np.ndarray) -> float:
    """99.9 % lower bound of ln P/P', from two Clopper-Pearson limits of 99.95 % each."""
    hits, misses = int(likely.sum()), int((~likely).sum())
    least = betaincinv(hits, misses + 1, 0.0005)
    most = betaincinv(int(unlikely.sum()) + 1, int((~unlikely).sum()), 0.9995)
    return math.log(least / most)


# In units of the scale: the distance of the two scores, and the outputs beyond the nearer one for
# which the odds are nearly the worst.
WORST = [
    (LAPLACE, 3.0, (0.0, math.inf)),
    (Logistic(), 3.0, (3.6, math.inf)),
    (StudentT(3.0), 2 * math.sqrt(3.0), (0.4, 1.1)),
    (StudentT(1.0), 3.0, (0.15, 0.5)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "distance", "window"), WORST, ids=[str(w[0]) for w in WORST])
def test_empirical_gamma_of_the_sampler(law, distance, window):
    """The real sampler keeps its claim; a scale 3 % too small is seen to break it."""
    claimed_b, rows = 0.5, 400_000
    R = distance * claimed_b
    ranges = np.tile([0.0, R], (20, 1))
    for planted in (1.0, 0.97):
        b = np.full(20, claimed_b * planted)
        g = np.full(20, grid_step(claimed_b))
        noise = GridNoise(law, b, g, ranges)
        near, far = draws(noise, R, 1, rows), draws(noise, 0.0, 2, rows)
        low, high = R + window[0] * b[0], R + window[1] * b[0]
        bound = lower_bound((low <= near) & (near <= high), (low <= far) & (far <= high))
        claim = figures(
            law, np.eye(1), np.array([R]), np.array([claimed_b]), g[:1], ranges[:1], True
        )[0]
        assert (bound <= claim) == (planted == 1.0), (planted, bound, claim)


@pytest.mark.slow
@pytest.mark.parametrize("law", [LAPLACE, Logistic(), StudentT(3.0), StudentT(20.0)], ids=str)
def test_grid_noise_by_chi_square_with_many_draws(law):
    """On the grid that releases use, in 400 bins of grid steps; at 8 million draws."""
    ratio, rows = grid_step(1.0), 400_000
    noise = GridNoise(law, np.ones(20), np.full(20, ratio), np.zeros((20, 2)))
    G = np.rint(draws(noise, 0.0, 3, rows) / ratio).astype(int)
    edges = np.unique(np.rint(np.geomspace(1, 6 / ratio, 200)))  # |G| in [edge, next edge)
    above = np.concatenate([law.at_least(edges, ratio), [0.0]])
    halves = -np.diff(above) / 2
    expected = G.size * np.concatenate([halves[::-1], [1 - above[0]], halves])
    place = np.searchsorted(edges, np.abs(G), side="right") * np.sign(G)
    observed = np.bincount(place + len(edges), minlength=len(expected))
    chi2 = float(np.sum((observed - expected) ** 2 / expected))
    p = gammaincc((len(expected) - 1) / 2, chi2 / 2)
    assert 1e-4 < p < 1 - 1e-4, p

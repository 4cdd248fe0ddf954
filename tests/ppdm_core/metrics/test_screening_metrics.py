from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from ppdm_core.metrics import Compared, Told
from ppdm_core.metrics import closest_record as closest_module
from ppdm_core.metrics._dapl import Density
from ppdm_core.metrics.closest_record import ClosestRecord
from ppdm_core.metrics.dapl_held_out import DaplHeldOut, best_level
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn, plug_in
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.release import Public
from ppdm_core.numerics.kernel_model import Rule
from tests.contract.scene_source_record import drawn, people, public

COPY = Public("copy", "original", ("x0", "x1"))
BOTH = [DaplHeldOut(), DaplPlugIn()]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def closest(X: np.ndarray, Y: np.ndarray, public: Public = COPY) -> float:
    source = None if len(X) == len(Y) else np.arange(len(Y)) % len(X)
    label = np.zeros(len(X), dtype=np.int32)
    return ClosestRecord().measure(Compared(X, label, Y, public, source=source)).value


def density_error(metric, X, label, Y, public: Public, source=None) -> float:
    return metric.measure(Compared(X, label, Y, public, source=source)).value


def test_closest_record_by_hand():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0]])  # 1, 1 and 3 to the closest other
    Y = np.array([[0.5, 0.0], [6.0, 0.0], [4.0, 1.0]])  # 0.5, 2 and 1
    assert closest(X, Y) == pytest.approx((1 + 1 / 3 + (1 / 3 + 1 / 3)) / 3)
    assert closest(X, X) == 1.0
    assert closest(X, Y + 50.0) == 0.0


def test_other_people_of_the_population_score_one_half():
    X = rng(1).random((2000, 3))
    assert closest(X[:1000], X[1000:]) == pytest.approx(0.5, abs=0.05)
    table = Compared(X, np.zeros(2000, dtype=np.int32), X, COPY)
    assert ClosestRecord().original(table) == pytest.approx(0.5, abs=0.05)
    assert ClosestRecord().baseline(table) == 0.5


def test_closest_record_where_the_map_is_public():
    X = rng(2).random((50, 3))
    L = np.linalg.qr(rng(3).standard_normal((3, 3)))[0][:, :2]
    known = Public("pca", "components", ("a", "b"), np.full(3, 0.5), L)
    assert closest(X, (X - 0.5) @ L, known) == 1.0
    back = Public("pca", "original", ("a", "b", "c"), np.full(3, 0.5), L)
    assert closest(X, 0.5 + (X - 0.5) @ L @ L.T, back) == 1.0
    with pytest.raises(NotApplicable, match="original columns or a public map"):
        closest(X, X[:, :2], Public("rotation", "rotated", ("a", "b")))


def test_a_sample_of_many_rows_is_measured(monkeypatch):
    X = rng(4).random((2000, 2))
    Y = X + rng(5).normal(0, 0.005, X.shape)
    exact = closest(X, Y)
    monkeypatch.setattr(closest_module, "_ROWS", 500)
    assert closest(X, Y) == pytest.approx(exact, abs=0.06)


def test_the_density_is_that_of_the_kernels():
    X = np.array([[0.2], [0.5], [0.6]])
    density = Density(X, Rule(True, 0.0), np.ones(1))
    h = density.h[0]
    for y in (0.1, 0.45, 0.55):
        u = (y - X[:, 0]) / h
        expected = np.mean(0.75 * np.maximum(1 - u**2, 0) / h)
        assert np.exp(density.log(np.array([[y]])))[0] == pytest.approx(expected)
    assert density.log(np.array([[9.0]]))[0] == -np.inf
    everywhere = np.linspace(-1.0, 2.0, 30_001)[:, None]
    assert np.exp(density.log(everywhere)).sum() / 10_000 == pytest.approx(1.0, abs=1e-4)


def test_the_plug_in_is_the_integral():
    """Of |f - g| / 2, where g is the very density that was drawn."""
    X = rng(6).normal(0.5, 0.1, (40, 1))
    found = plug_in(X, Rule(False, 0.0), np.ones(1), rng(7))
    sample = X.mean() + rng(7).standard_normal((40, 1)) * X.std(ddof=1)
    density = Density(sample, Rule(False, 0.0), np.ones(1))
    y = np.linspace(-0.5, 1.5, 20_001)
    f = norm(X.mean(), X.std(ddof=1)).pdf(y)
    g = np.exp(density.log(y[:, None]))
    assert found == pytest.approx(0.5 * np.abs(f - g).sum() * (y[1] - y[0]), abs=0.03)


def test_the_level_parts_draws_from_records():
    drawn_at, true = np.array([1.0, 2.0, 3.0, 4.0]), np.array([-np.inf, 0.5, 0.7, 3.5])
    assert best_level(drawn_at, true) == 0.7  # all draws are above, and one record
    assert best_level(drawn_at, np.full(3, -np.inf)) == -np.inf


@pytest.mark.parametrize("metric", BOTH)
def test_more_records_bring_the_density_nearer(metric):
    found = []
    for n in (40, 1600):
        who = people(n, rng(8), d=2)
        Y, _, source = drawn(who, n, rng(9), corrected=True)
        known = public("corrected", d=2)
        found.append(density_error(metric, who.X, who.label, Y, known, source))
    assert 0.0 <= found[1] < found[0] + 0.1 and found[1] < 0.35


def test_the_bound_is_below_the_truth_where_that_is_known():
    """Normal records: the plug-in is right there, and the held-out bound is no larger."""
    X = rng(11).normal(0.5, 0.1, (600, 3))
    label = np.zeros(600, dtype=np.int32)
    known = public("paper", d=3)
    low, right = (density_error(metric, X, label, X, known) for metric in BOTH)
    assert 0.05 < low < right + 0.1 < 1.0


@pytest.mark.parametrize("metric", BOTH)
def test_copies_have_a_density_far_from_the_truth(metric):
    """Eight columns and a narrow kernel: hardly any other record is near."""
    who = people(150, rng(13))
    Y, _, source = drawn(who, 150, rng(14))
    assert density_error(metric, who.X, who.label, Y, public(), source) > 0.8


@pytest.mark.parametrize("metric", BOTH)
def test_columns_without_spread_have_no_density(metric):
    X = np.column_stack([rng(16).random(40), np.full(40, 0.5)])
    label = np.zeros(40, dtype=np.int32)
    assert density_error(metric, X, label, X, public(d=2)) == 1.0


@pytest.mark.parametrize("metric", BOTH)
def test_only_resampled_rows_have_a_density(metric):
    X, label = rng().random((20, 2)), np.zeros(20, dtype=np.int32)
    with pytest.raises(NotApplicable, match="kde_resample"):
        density_error(metric, X, label, X, COPY)


@pytest.mark.parametrize("metric", [*BOTH, ClosestRecord()])
def test_screening_metrics_are_checked_and_speak(metric):
    X, label = rng().random((20, 2)), np.zeros(20, dtype=np.int32)
    bad = X.copy()
    bad[3, 1] = np.nan
    for pair in ((X, bad), (bad, X), (X, X[:-1]), (X[:0], X[:0])):
        with pytest.raises(Defect):
            density_error(metric, pair[0], label[: len(pair[0])], pair[1], public(d=2))
    assert not metric.gateable
    text = metric.sentence(Told(value=0.25, baseline=0.5, original=0.4))
    assert "25.0 %" in text and text.endswith(".")
    table = Compared(X, label, X, public(d=2))
    assert 0 <= metric.original(table) <= 1 and 0 <= metric.baseline(table) <= 1

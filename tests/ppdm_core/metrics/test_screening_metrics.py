from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from ppdm_core.metrics import ReleaseComparison, SentenceValues
from ppdm_core.metrics import closest_record as closest_module
from ppdm_core.metrics._dapl import Density
from ppdm_core.metrics.closest_record import ClosestRecord
from ppdm_core.metrics.dapl_held_out import DaplHeldOut, find_best_level
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.kernel_model import BandwidthRule
from tests.support.leaks import describe_kernels, draw_kernel_rows, draw_persons

COPY = PublicParameters("copy", "original", ("x0", "x1"))
BOTH = [DaplHeldOut(), DaplPlugIn()]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def closest(X: np.ndarray, Y: np.ndarray, public: PublicParameters = COPY) -> float:
    source = None if len(X) == len(Y) else np.arange(len(Y)) % len(X)
    label = np.zeros(len(X), dtype=np.int32)
    return ClosestRecord().measure(ReleaseComparison(X, label, Y, public, source=source)).value


def density_error(metric, X, label, Y, public: PublicParameters, source=None) -> float:
    return metric.measure(ReleaseComparison(X, label, Y, public, source=source)).value


def test_closest_record_by_hand():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0]])  # 1, 1 and 3 to the closest other
    Y = np.array([[0.5, 0.0], [6.0, 0.0], [4.0, 1.0]])  # 0.5, 2 and 1
    assert closest(X, Y) == pytest.approx((1 + 1 / 3 + (1 / 3 + 1 / 3)) / 3)
    assert closest(X, X) == 1.0
    assert closest(X, Y + 50.0) == 0.0


def test_closest_record_same_population_one_half():
    X = rng(1).random((2000, 3))
    assert closest(X[:1000], X[1000:]) == pytest.approx(0.5, abs=0.05)
    table = ReleaseComparison(X, np.zeros(2000, dtype=np.int32), X, COPY)
    assert ClosestRecord().original(table) == pytest.approx(0.5, abs=0.05)
    assert ClosestRecord().baseline(table) == 0.5


def test_closest_record_public_map_applies():
    X = rng(2).random((50, 3))
    L = np.linalg.qr(rng(3).standard_normal((3, 3)))[0][:, :2]
    known = PublicParameters("pca", "components", ("a", "b"), np.full(3, 0.5), L)
    assert closest(X, (X - 0.5) @ L, known) == 1.0
    back = PublicParameters("pca", "original", ("a", "b", "c"), np.full(3, 0.5), L)
    assert closest(X, 0.5 + (X - 0.5) @ L @ L.T, back) == 1.0
    with pytest.raises(NotApplicable, match="original columns or a public map"):
        closest(X, X[:, :2], PublicParameters("rotation", "rotated", ("a", "b")))


def test_closest_record_many_rows_sampled(monkeypatch):
    X = rng(4).random((2000, 2))
    Y = X + rng(5).normal(0, 0.005, X.shape)
    exact = closest(X, Y)
    monkeypatch.setattr(closest_module, "_MAX_ROWS", 500)
    assert closest(X, Y) == pytest.approx(exact, abs=0.06)


def test_density_equals_mean_of_kernels():
    X = np.array([[0.2], [0.5], [0.6]])
    density = Density(X, BandwidthRule(True, 0.0), np.ones(1))
    h = density.h[0]
    for y in (0.1, 0.45, 0.55):
        u = (y - X[:, 0]) / h
        expected = np.mean(0.75 * np.maximum(1 - u**2, 0) / h)
        assert np.exp(density.log(np.array([[y]])))[0] == pytest.approx(expected)
    assert density.log(np.array([[9.0]]))[0] == -np.inf
    everywhere = np.linspace(-1.0, 2.0, 30_001)[:, None]
    assert np.exp(density.log(everywhere)).sum() / 10_000 == pytest.approx(1.0, abs=1e-4)


def test_dapl_plug_in_equals_integral():
    """The integral of |f - g| / 2, where g is the density that was drawn."""
    X = rng(6).normal(0.5, 0.1, (40, 1))
    found = DaplPlugIn().measure_class(X, BandwidthRule(False, 0.0), np.ones(1), rng(7))
    sample = X.mean() + rng(7).standard_normal((40, 1)) * X.std(ddof=1)
    density = Density(sample, BandwidthRule(False, 0.0), np.ones(1))
    y = np.linspace(-0.5, 1.5, 20_001)
    f = norm(X.mean(), X.std(ddof=1)).pdf(y)
    g = np.exp(density.log(y[:, None]))
    assert found == pytest.approx(0.5 * np.abs(f - g).sum() * (y[1] - y[0]), abs=0.03)


def test_find_best_level_separates_draws_from_records():
    drawn_at, true = np.array([1.0, 2.0, 3.0, 4.0]), np.array([-np.inf, 0.5, 0.7, 3.5])
    assert find_best_level(drawn_at, true) == 0.7  # all draws are above, and one record
    assert find_best_level(drawn_at, np.full(3, -np.inf)) == -np.inf


@pytest.mark.parametrize("metric", BOTH)
def test_dapl_more_records_smaller_error(metric):
    found = []
    for n in (40, 1600):
        table = draw_persons(n, rng(8), d=2)
        Y, _, source = draw_kernel_rows(table, n, rng(9), corrected=True)
        known = describe_kernels("corrected", d=2)
        found.append(density_error(metric, table.X, table.label, Y, known, source))
    assert 0.0 <= found[1] < found[0] + 0.1 and found[1] < 0.35


def test_dapl_held_out_normal_records_below_plug_in():
    """Normal records: the plug-in is right there, and the held-out bound is no larger."""
    X = rng(11).normal(0.5, 0.1, (600, 3))
    label = np.zeros(600, dtype=np.int32)
    known = describe_kernels("paper", d=3)
    low, right = (density_error(metric, X, label, X, known) for metric in BOTH)
    assert 0.05 < low < right + 0.1 < 1.0


@pytest.mark.parametrize("metric", BOTH)
def test_dapl_narrow_kernel_large_error(metric):
    """Eight columns and a narrow kernel: almost no other record is near."""
    table = draw_persons(150, rng(13))
    Y, _, source = draw_kernel_rows(table, 150, rng(14))
    assert density_error(metric, table.X, table.label, Y, describe_kernels(), source) > 0.8


@pytest.mark.parametrize("metric", BOTH)
def test_dapl_constant_column_one(metric):
    X = np.column_stack([rng(16).random(40), np.full(40, 0.5)])
    label = np.zeros(40, dtype=np.int32)
    assert density_error(metric, X, label, X, describe_kernels(d=2)) == 1.0


@pytest.mark.parametrize("metric", BOTH)
def test_dapl_other_method_not_applicable(metric):
    X, label = rng().random((20, 2)), np.zeros(20, dtype=np.int32)
    with pytest.raises(NotApplicable, match="kde_resample"):
        density_error(metric, X, label, X, COPY)


@pytest.mark.parametrize("metric", [*BOTH, ClosestRecord()])
def test_screening_metrics_bad_input_refused_and_sentence_formatted(metric):
    X, label = rng().random((20, 2)), np.zeros(20, dtype=np.int32)
    bad = X.copy()
    bad[3, 1] = np.nan
    for pair in ((X, bad), (bad, X), (X, X[:-1]), (X[:0], X[:0])):
        with pytest.raises(Defect):
            density_error(metric, pair[0], label[: len(pair[0])], pair[1], describe_kernels(d=2))
    assert not metric.gateable
    text = metric.sentence(SentenceValues(value=0.25, baseline=0.5, original=0.4))
    assert "25.0 %" in text and text.endswith(".")
    table = ReleaseComparison(X, label, X, describe_kernels(d=2))
    assert 0 <= metric.original(table) <= 1 and 0 <= metric.baseline(table) <= 1

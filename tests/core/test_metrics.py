from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ppdm_core import distances
from ppdm_core.errors import Defect, NotApplicable
from ppdm_core.metrics import METRICS, Told, column_mean_guess
from ppdm_core.metrics import distance_loss as distance_loss_module
from ppdm_core.metrics.knn_accuracy import _stratified_folds
from ppdm_core.metrics.singling_rate import holds_for
from ppdm_core.types import Numeric, Public, Schema

COPY = Public("copy", "original", ("x0", "x1"))
RECONSTRUCT = [m for m in METRICS.values() if m.goal == "reconstruct"]
RELEASE = [m for m in METRICS.values() if m.kind == "utility"]


def schema(d: int) -> Schema:
    return Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(d)))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def codes(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def test_interval_privacy_by_hand():
    # Errors 0..40 in steps of 1: quantiles 1 and 39, width 38 of a range of 80; column 2 constant.
    error = np.arange(41.0)
    X = np.column_stack([np.linspace(0, 80, 41), np.full(41, 3.0)])
    X_hat = np.column_stack([X[:, 0] - error, np.zeros(41)])
    metric = METRICS["interval_privacy"]
    assert metric.measure(X, X_hat, schema(2), 0.1) == pytest.approx(38 / 80)
    assert metric.measure(X, X_hat, schema(2), 0.1, np.array([160.0, 0.0])) == pytest.approx(
        38 / 160
    )
    # A constant shift is no width: the interval measures spread, not bias.
    assert metric.measure(X, X + 5.0, schema(2), 0.1) == 0.0


def test_interval_privacy_averages_over_columns():
    X = np.column_stack([np.linspace(0, 1, 41), np.linspace(0, 1, 41)])
    X_hat = np.column_stack([X[:, 0], np.zeros(41)])
    assert METRICS["interval_privacy"].measure(X, X_hat, schema(2), 0.1) == pytest.approx(0.95 / 2)


def test_interval_privacy_needs_a_column_that_varies():
    with pytest.raises(NotApplicable):
        METRICS["interval_privacy"].measure(np.ones((5, 2)), np.zeros((5, 2)), schema(2), 0.1)


def test_relative_error_by_hand():
    X = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    X_hat = np.array([[3.0, 3.0], [0.0, 1.0], [7.0, 7.0]])
    assert METRICS["relative_error"].measure(X, X_hat, schema(2), 0.1) == pytest.approx(
        (0.2 + 0.5) / 2
    )
    with pytest.raises(NotApplicable):
        METRICS["relative_error"].measure(X[2:], X_hat[2:], schema(2), 0.1)


def test_breach_rate_by_hand():
    X = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    X_hat = np.array([[3.0, 3.5], [3.0, 3.4], [0.0, 2.0], [0.1, 0.0]])
    # Errors 0.5 (exactly the limit 0.1 * 5), 0.6, 0 and 0.1 of a zero record.
    assert METRICS["breach_rate"].measure(X, X_hat, schema(2), 0.1) == 0.5


def test_rate_by_hand():
    metric = METRICS["rate"]
    assert metric.measure(np.array([3, 1, -1, 0]), np.array([3, 2, 1, 0])) == 0.5
    assert metric.baseline(50) == 0.02
    with pytest.raises(Defect):
        metric.measure(np.array([1.0, np.nan]), np.array([1, 2]))
    with pytest.raises(Defect):
        metric.measure(np.array([-1]), np.array([-1]))


def test_distance_loss_by_hand():
    X = np.array([[0.0], [3.0], [3.0], [9.0]])
    Y = np.array([[0.0, 0.0], [0.0, 3.0], [0.0, 4.0], [0.0, 6.0]])
    # Distances 3 3 9 0 6 6 -> 3 4 6 1 3 2; the zero one is divided by their mean 4.5.
    expected = (0 + 1 / 3 + 3 / 9 + 1 / 4.5 + 3 / 6 + 4 / 6) / 6
    metric = METRICS["distance_loss"]
    assert metric.measure(X, codes(0, 0, 0, 0), Y, COPY, rng()) == pytest.approx(expected)
    with pytest.raises(NotApplicable):
        metric.measure(np.ones((3, 1)), codes(0, 0, 0), Y[:3], COPY, rng())


def test_distance_loss_of_a_shrunken_release_is_the_shrinkage_also_on_sampled_pairs(monkeypatch):
    X = rng(1).normal(0.0, 1.0, (60, 3))
    metric, label = METRICS["distance_loss"], np.zeros(60, dtype=np.int32)
    noisy = X + rng(2).normal(0.0, 0.5, X.shape)
    exact = metric.measure(X, label, noisy, COPY, rng())
    monkeypatch.setattr(distance_loss_module, "_PAIRS", 1_500)
    assert metric.measure(X, label, 0.7 * X, COPY, rng()) == pytest.approx(0.3)
    sampled = metric.measure(X, label, noisy, COPY, rng())
    assert sampled == pytest.approx(exact, rel=0.1)
    assert sampled != exact


def naive_knn(train, test, label, fold) -> list[bool]:
    right = []
    for i, q in enumerate(test):
        others = np.flatnonzero(fold != fold[i])
        near = others[np.argsort(np.linalg.norm(train[others] - q, axis=1))[:5]]
        right.append(int(np.argmax(np.bincount(label[near]))) == label[i])
    return right


@pytest.mark.parametrize("block_rows", [None, 3])
def test_knn_agrees_with_a_naive_one(block_rows, monkeypatch):
    if block_rows:
        monkeypatch.setattr(distances, "BLOCK_BYTES", block_rows * 8 * 64)
    X = rng(3).normal(0.0, 1.0, (80, 2))
    label = (X[:, 0] + rng(4).normal(0.0, 0.7, 80) > 0).astype(np.int32) + (X[:, 1] > 1)
    Y = X + rng(5).normal(0.0, 0.5, X.shape)
    fold = _stratified_folds(label, rng(6))
    got = METRICS["knn_accuracy"].correct(X, label.astype(np.int32), Y, COPY, rng(6))
    assert got.tolist() == naive_knn(Y, Y, label, fold)
    assert 0.4 < got.mean() < 1.0


def test_knn_classifies_clean_projections_when_the_map_is_public():
    X = rng(7).normal(0.0, 1.0, (80, 3))
    label = (X[:, 0] > 0).astype(np.int32)
    loadings = np.linalg.qr(rng(8).standard_normal((3, 3)))[0][:, :2]
    centre = np.full(3, 0.1)
    T = (X - centre) @ loadings
    Z = T + rng(9).laplace(0.0, 0.4, T.shape)
    fold = _stratified_folds(label, rng(6))
    expected = naive_knn(Z, T, label, fold)
    assert expected != naive_knn(Z, Z, label, fold)
    back = np.linalg.pinv(loadings)
    for space, Y in (("components", Z), ("original", centre + Z @ back)):
        public = Public("pca", space, (), centre, loadings)
        got = METRICS["knn_accuracy"].correct(X, label, Y, public, rng(6))
        assert got.tolist() == expected


def test_knn_by_hand():
    # Two far groups of six: always right. A tied vote (two of each among four) takes label 0.
    X = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [0.5]])
    X = np.vstack([X, X + 50.0])
    label = codes(*[0] * 6, *[1] * 6)
    metric = METRICS["knn_accuracy"]
    assert metric.original(X, label, rng()) == 1.0
    assert metric.baseline(label) == 0.5
    assert metric.baseline(codes(0, 0, 2, 0)) == 0.75
    one_each = codes(1, 0, 1, 0, 1)  # leaving a 1 out ties 2 to 2, leaving a 0 out gives 3 to 1
    assert metric.correct(np.zeros((5, 1)), one_each, np.zeros((5, 1)), COPY, rng()).sum() == 0


def test_knn_of_the_identity_release_is_that_of_the_original_on_the_same_split():
    X = rng(10).normal(0.0, 1.0, (120, 3))
    label = rng(11).integers(0, 3, 120).astype(np.int32)
    metric = METRICS["knn_accuracy"]
    assert metric.measure(X, label, X, COPY, rng(12)) == metric.original(X, label, rng(12))
    assert metric.original(X, label, rng(12)) != metric.original(X, label, rng(13))


def test_folds_are_stratified_and_random():
    label = codes(*[0] * 50, *[1] * 20, *[2] * 3)
    fold = _stratified_folds(label, rng(14))
    for one in (0, 1):
        counts = np.bincount(fold[label == one], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert len(np.unique(fold[label == 2])) == 3
    assert not np.array_equal(fold, _stratified_folds(label, rng(15)))


def test_knn_needs_labels():
    X = np.ones((3, 1))
    with pytest.raises(NotApplicable):
        METRICS["knn_accuracy"].measure(X, codes(0, -1, 1), X, COPY, rng())


@pytest.mark.parametrize("metric", RECONSTRUCT, ids=lambda m: m.name)
def test_perfect_reconstruction_is_the_extreme(metric):
    X = rng(16).uniform(0, 1, (30, 3))
    worst = metric.bounds[0] if metric.better == "up" else metric.bounds[1]
    assert metric.measure(X, X.copy(), schema(3), 0.1) == worst
    guess = metric.measure(X, column_mean_guess(X), schema(3), 0.1)
    assert guess > worst if metric.better == "up" else guess < worst


@pytest.mark.parametrize("metric", RELEASE, ids=lambda m: m.name)
def test_identity_release_keeps_all_utility(metric):
    X = np.vstack([rng(17).normal(0.0, 1.0, (30, 2)), rng(18).normal(50.0, 1.0, (30, 2))])
    label = codes(*[0] * 30, *[1] * 30)
    best = metric.bounds[1] if metric.better == "up" else metric.bounds[0]
    assert metric.measure(X, label, X, COPY, rng()) == best
    assert metric.original(X, label, rng()) == best
    noise = rng(19).normal(0.0, 1.0, X.shape)
    worse = metric.measure(X, label, noise, COPY, rng())
    assert worse < best if metric.better == "up" else worse > best


@pytest.mark.parametrize("metric", RECONSTRUCT, ids=lambda m: m.name)
@settings(max_examples=30, deadline=None)
@given(
    X=arrays(np.float64, (6, 2), elements=st.floats(0.001, 1)),
    X_hat=arrays(np.float64, (6, 2), elements=st.floats(-5, 5)),
)
def test_scores_stay_inside_their_bounds(metric, X, X_hat):
    value = metric.measure(X, X_hat, schema(2), 0.1, np.ones(2))
    assert metric.bounds[0] <= value <= metric.bounds[1]
    assert np.isfinite(value)


def measured(metric, X, other) -> float:
    if metric.goal == "reconstruct":
        return metric.measure(X, other, schema(2), 0.1)
    return metric.measure(X, np.zeros(len(X), dtype=np.int32), other, COPY, rng())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("metric", RECONSTRUCT + RELEASE, ids=lambda m: m.name)
def test_values_that_are_not_finite_and_misaligned_tables_are_an_error(metric, bad):
    X = rng(20).uniform(0, 1, (10, 2))
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(Defect, match="1 values that are not finite"):
        measured(metric, X, broken)
    with pytest.raises(Defect, match="shape"):
        measured(metric, X, X[:9])


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda m: m.name)
def test_sentence_tells_the_figure(metric):
    told = metric.sentence(
        Told(value=0.4312, baseline=0.25, story="Somebody.", epsilon=0.1, original=0.9)
    )
    assert "43.1 %" in told
    assert told == told.strip()
    assert told.endswith(".")


def test_singling_rate_counts_as_one_by_one_does():
    random = rng(31)
    for _ in range(30):
        table = random.integers(0, 5, (40, 3)).astype(np.float64)
        statements = np.sort(random.integers(-1, 6, (30, 3, 2)), axis=2).astype(np.float64)
        statements[random.random((30, 3)) < 0.3] = -np.inf, np.inf
        held = [
            sum(all(low <= x <= high for x, (low, high) in zip(person, one, strict=True))
                for person in table)
            for one in statements
        ]  # fmt: skip
        assert holds_for(statements, table).tolist() == held
        expected = np.mean(np.array(held) == 1)
        assert METRICS["singling_rate"].measure(statements, table) == expected

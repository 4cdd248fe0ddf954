from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ppdm_core.metrics import METRICS, SentenceValues
from ppdm_core.metrics.singling_rate import count_matches
from ppdm_core.model.errors import Defect, NotApplicable

RECONSTRUCT = [m for m in METRICS.values() if m.goal == "reconstruct"]


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
    for width in (80.0, 160.0):
        found = metric.measure(X, X_hat, np.array([width, 0.0]), 0.1)
        assert found == pytest.approx(38 / width)
    # A constant shift is no width: the interval measures spread, not bias.
    assert metric.measure(X, X + 5.0, np.array([80.0, 0.0]), 0.1) == 0.0


def test_interval_privacy_two_columns_averaged():
    X = np.column_stack([np.linspace(0, 1, 41), np.linspace(0, 1, 41)])
    X_hat = np.column_stack([X[:, 0], np.zeros(41)])
    found = METRICS["interval_privacy"].measure(X, X_hat, np.ones(2), 0.1)
    assert found == pytest.approx(0.95 / 2)


def test_interval_privacy_constant_columns_not_applicable():
    with pytest.raises(NotApplicable):
        METRICS["interval_privacy"].measure(np.ones((5, 2)), np.zeros((5, 2)), np.zeros(2), 0.1)


def test_relative_error_by_hand():
    X = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    X_hat = np.array([[3.0, 3.0], [0.0, 1.0], [7.0, 7.0]])
    found = METRICS["relative_error"].measure(X, X_hat, np.ones(2), 0.1)
    assert found == pytest.approx((0.2 + 0.5) / 2)
    with pytest.raises(NotApplicable):
        METRICS["relative_error"].measure(X[2:], X_hat[2:], np.ones(2), 0.1)


def test_breach_rate_by_hand():
    X = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    X_hat = np.array([[3.0, 3.5], [3.0, 3.4], [0.0, 2.0], [0.1, 0.0]])
    # Errors 0.5 (exactly the limit 0.1 * 5), 0.6, 0 and 0.1 of a zero record.
    assert METRICS["breach_rate"].measure(X, X_hat, np.ones(2), 0.1) == 0.5


def test_rate_by_hand():
    metric = METRICS["rate"]
    assert metric.measure(np.array([3, 1, -1, 0]), np.array([3, 2, 1, 0])) == 0.5
    assert metric.baseline(50) == 0.02
    with pytest.raises(Defect):
        metric.measure(np.array([1.0, np.nan]), np.array([1, 2]))
    with pytest.raises(Defect):
        metric.measure(np.array([-1]), np.array([-1]))


@pytest.mark.parametrize("metric", RECONSTRUCT, ids=lambda m: m.name)
def test_reconstruct_metrics_copy_worst_bound(metric):
    X = rng(16).uniform(0, 1, (30, 3))
    worst = metric.bounds[0] if metric.better == "up" else metric.bounds[1]
    assert metric.measure(X, X.copy(), np.ptp(X, axis=0), 0.1) == worst
    guess = metric.measure(X, np.tile(X.mean(axis=0), (30, 1)), np.ptp(X, axis=0), 0.1)
    assert guess > worst if metric.better == "up" else guess < worst


@pytest.mark.extended
@pytest.mark.parametrize("metric", RECONSTRUCT, ids=lambda m: m.name)
@settings(max_examples=30, deadline=None)
@given(
    X=arrays(np.float64, (6, 2), elements=st.floats(0.001, 1)),
    X_hat=arrays(np.float64, (6, 2), elements=st.floats(-5, 5)),
)
def test_reconstruct_metrics_any_tables_inside_bounds(metric, X, X_hat):
    value = metric.measure(X, X_hat, np.ones(2), 0.1)
    assert metric.bounds[0] <= value <= metric.bounds[1]
    assert np.isfinite(value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("metric", RECONSTRUCT, ids=lambda m: m.name)
def test_measure_not_finite_or_misaligned_raises_defect(metric, bad):
    X = rng(20).uniform(0, 1, (10, 2))
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(Defect, match="1 values that are not finite"):
        metric.measure(X, broken, np.ones(2), 0.1)
    with pytest.raises(Defect, match="shape"):
        metric.measure(X, X[:9], np.ones(2), 0.1)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda m: m.name)
def test_sentence_contains_value(metric):
    text = metric.sentence(
        SentenceValues(value=0.4312, baseline=0.25, story="An attacker.", epsilon=0.1, original=0.9)
    )
    shown = metric.format_value(0.4312)
    assert shown == "43.1 %" or metric.name == "order_guesses"  # a logarithm
    assert shown in text
    assert text == text.strip()
    assert text.endswith(".")


def test_count_matches_equals_one_by_one():
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
        assert count_matches(statements, table).tolist() == held
        expected = np.mean(np.array(held) == 1)
        assert METRICS["singling_rate"].measure(statements, table) == expected

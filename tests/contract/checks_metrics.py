"""What every metric must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ppdm_core.errors import PpdmError
from ppdm_core.metrics import Metric
from ppdm_core.types import Public
from tests.contract.tables import schema, table

N, D = 60, 3
EPSILON = 0.1
COPY = Public("copy", "original", tuple(f"x{j}" for j in range(D)))


def truth() -> tuple[np.ndarray, np.ndarray]:
    rows = table(N, D, seed=3).whole
    return rows.X, rows.label


def measured(metric: Metric, answer: np.ndarray) -> float:
    """The metric of an attacker's table, of links, or of a release."""
    X, label = truth()
    if metric.goal == "link":
        return metric.measure(answer, np.arange(N))
    if metric.goal == "reconstruct":
        return metric.measure(X, answer, schema(D), EPSILON)
    return metric.measure(X, label, answer, COPY, np.random.default_rng(0))


def perfect(metric: Metric) -> np.ndarray:
    return np.arange(N) if metric.goal == "link" else truth()[0].copy()


def noise(metric: Metric, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if metric.goal == "link":
        return rng.permutation(N)
    return rng.normal(0.0, 30.0, (N, D))


def answers(metric: Metric) -> Iterator[np.ndarray]:
    """Good, bad and absurd ones."""
    yield perfect(metric)
    for seed in range(5):
        yield noise(metric, seed)
    if metric.goal == "link":
        yield np.full(N, -1)
        yield np.zeros(N, dtype=np.int64)
        return
    X = truth()[0]
    yield from (X + 1e-9, X[::-1].copy(), np.zeros((N, D)), np.full((N, D), 1e12), -X, X * 1e-12)


def check_inside_bounds(metric: Metric) -> None:
    low, high = metric.bounds
    assert low < high, "its bounds hold nothing"
    for answer in answers(metric):
        value = measured(metric, answer)
        assert isinstance(value, float), f"it returns {type(value).__name__}"
        assert np.isfinite(value), f"it says {value}"
        assert low <= value <= high, f"{value} is outside [{low}, {high}]"


def check_extreme_on_a_copy(metric: Metric, expected: float | None) -> None:
    """A copy is the worst for privacy and the best for use."""
    X, label = truth()
    if expected is None:
        expected = metric.original(X, label, np.random.default_rng(0))
    value = measured(metric, perfect(metric))
    assert value == expected, f"a copy scores {value}, not {expected}"
    low, high = metric.bounds
    if metric.kind == "privacy":
        worst = low if metric.better == "up" else high
        assert value == worst, f"nothing is less private than a copy, and it scores {value}"
    elif metric.better == "down":
        assert value == low, f"nothing is more useful than a copy, and it scores {value}"


def check_noise_is_told_from_a_copy(metric: Metric) -> None:
    copy = measured(metric, perfect(metric))
    for seed in range(5):
        value = measured(metric, noise(metric, seed))
        more = value > copy if metric.better == "up" else value < copy
        assert value != copy, "noise scores as a copy does"
        assert more == (metric.kind == "privacy"), f"noise {value:.3g}, a copy {copy:.3g}: reversed"


def check_nan_is_an_error(metric: Metric) -> None:
    X, label = truth()
    for bad in (np.nan, np.inf):
        answer = perfect(metric).astype(np.float64)
        answer[N // 2] = bad
        poisoned = X.copy()
        poisoned[3, 1] = bad
        must_refuse(lambda answer=answer: measured(metric, answer), f"an answer of {bad}")
        if metric.goal == "reconstruct":
            must_refuse(
                lambda table=poisoned: metric.measure(table, X, schema(D), EPSILON),
                f"a table of {bad}",
            )
        if metric.goal == "release":
            rng = np.random.default_rng(0)
            must_refuse(
                lambda table=poisoned, rng=rng: metric.measure(table, label, X, COPY, rng),
                f"a table of {bad}",
            )


def check_shapes_are_checked(metric: Metric) -> None:
    must_refuse(lambda: measured(metric, perfect(metric)[:-1]), "an answer with a row too few")
    must_refuse(lambda: measured(metric, perfect(metric)[:0]), "an answer without rows")


def must_refuse(call: Callable[[], float], what: str) -> None:
    try:
        value = call()
    except PpdmError:
        return
    raise AssertionError(f"{what} scores {value}")


def check_speaks(metric: Metric) -> None:
    """One sentence a steward reads, with figures that were measured."""
    text = metric.sentence(value=0.25, baseline=0.125, story="Somebody looks.", epsilon=0.1)
    assert text.endswith("."), f"not a sentence: {text}"
    assert "25.0 %" in text, f"it does not say what was measured: {text}"
    assert metric.describe, "it does not say what it measures"
    assert metric.kind in ("privacy", "utility"), f"unknown kind {metric.kind}"
    assert metric.better in ("up", "down"), f"unknown direction {metric.better}"

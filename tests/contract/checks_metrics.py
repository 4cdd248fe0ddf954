"""Checks of the contract of a metric. Each takes a metric and raises AssertionError."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import get_args

import numpy as np

from ppdm_core.metrics import Metric, ReleaseComparison, SentenceValues
from ppdm_core.metrics._metric import IntervalMethod
from ppdm_core.model.attacker import ColumnKind
from ppdm_core.model.errors import PpdmError
from ppdm_core.model.release import PublicParameters
from tests.support.tables import make_schema, make_table

N, D = 60, 3
EPSILON = 0.1
FLAGS = (
    "gateable",
    "in_quick_audit",
    "in_summary",
    "needs_alignment",
    "is_headline",
    "uses_claims",
)
NO_DISTORTION = {"distance_distortion_mean": 0.0, "distance_distortion_variance": 0.0}
COPY = PublicParameters("copy", "original", tuple(f"x{j}" for j in range(D)), facts=NO_DISTORTION)


def make_labelled_table() -> tuple[np.ndarray, np.ndarray]:
    """Return a table and labels of two separated classes."""
    X = make_table(N, D, seed=3).whole.X.copy()
    label = (X[:, 0] > np.median(X[:, 0])).astype(np.int32)
    X[:, 0] += 3.0 * X.std() * label
    return X, label


IS_MEMBER = np.arange(N) % 2 == 0


def measure(metric: Metric, estimate: np.ndarray) -> float:
    """Return the metric of an attacker's estimate, or of a release."""
    X, label = make_labelled_table()
    if metric.goal in ("link", "pair"):
        return metric.measure(estimate, np.arange(N))
    if metric.goal == "source":
        return metric.measure(estimate, np.ones(estimate.shape), np.arange(N))
    if metric.goal == "member":
        return metric.measure(estimate, IS_MEMBER)
    if metric.goal == "norms":
        return metric.measure(np.linalg.norm(X, axis=1), estimate, EPSILON)
    if metric.goal == "infer":
        return metric.measure(estimate, X, make_schema(D), EPSILON)
    if metric.goal == "single_out":
        return metric.measure(estimate, X)
    if metric.goal == "reconstruct":
        return metric.measure(X, estimate, np.ptp(X, axis=0), EPSILON)
    if metric.goal == "change":
        return metric.measure(estimate)
    return metric.measure(ReleaseComparison(X, label, estimate, COPY)).value


def make_perfect_estimate(metric: Metric) -> np.ndarray:
    X = make_labelled_table()[0]
    estimates = {
        "link": np.arange(N),
        "pair": np.arange(N),
        "source": np.arange(N)[:, None],
        "member": IS_MEMBER.astype(np.float64),
        "norms": np.linalg.norm(X, axis=1),
        "single_out": np.stack([X, X], axis=2),  # the values of each person
        "change": np.zeros(N),
    }
    return estimates.get(metric.goal, X).copy()


def make_noise(metric: Metric, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    estimates = {
        "link": lambda: rng.permutation(N),
        "pair": lambda: rng.permutation(N),
        "source": lambda: rng.permutation(N)[:, None],
        "member": lambda: rng.random(N),
        "norms": lambda: rng.normal(0.0, 30.0, N),
        "single_out": lambda: np.sort(rng.normal(0.0, 30.0, (N, D, 2)), axis=2),
        "change": lambda: (rng.random(N) < 0.5).astype(np.float64),  # half get worse
    }
    return estimates.get(metric.goal, lambda: rng.normal(0.0, 30.0, (N, D)))()


def make_estimates(metric: Metric) -> Iterator[np.ndarray]:
    """Yield good, bad and absurd estimates."""
    yield make_perfect_estimate(metric)
    for seed in range(5):
        yield make_noise(metric, seed)
    good = make_perfect_estimate(metric)
    if np.issubdtype(good.dtype, np.integer):
        yield np.full_like(good, -1)
        yield np.zeros_like(good)
        return
    if metric.goal == "change":
        yield from (good + 1.0, good - 1.0)
        return
    yield from (good + 1e-9, good[::-1].copy(), 0 * good, 0 * good + 1e12, -good, good * 1e-12)


def check_inside_bounds(metric: Metric) -> None:
    """Check that all values are finite floats inside the bounds."""
    low, high = metric.bounds
    assert low < high, "its bounds are empty"
    for estimate in make_estimates(metric):
        value = measure(metric, estimate)
        assert isinstance(value, float), f"it returns {type(value).__name__}"
        assert np.isfinite(value), f"it returns {value}"
        assert low <= value <= high, f"{value} is outside [{low}, {high}]"


def check_copy_is_extreme(metric: Metric, expected: float | None) -> None:
    """Check that a copy is the worst for privacy and the best for utility."""
    X, label = make_labelled_table()
    if expected is None:
        expected = metric.original(ReleaseComparison(X, label, X, COPY))
    value = measure(metric, make_perfect_estimate(metric))
    assert value == expected, f"a copy scores {value}, not {expected}"
    low, high = metric.bounds
    if metric.kind == "privacy":
        worst = low if metric.better == "up" else high
        assert value == worst, f"a copy is the least private release, and it scores {value}"
    elif metric.goal == "release":
        best = low if metric.better == "down" else expected
        assert value == best, f"a copy is the most useful release, and it scores {value}"


def check_noise_differs_from_copy(metric: Metric) -> None:
    """Check that noise scores better for privacy and worse for utility than a copy."""
    copy = measure(metric, make_perfect_estimate(metric))
    for seed in range(5):
        value = measure(metric, make_noise(metric, seed))
        more = value > copy if metric.better == "up" else value < copy
        assert value != copy, "noise and a copy have the same score"
        assert more == (metric.kind == "privacy"), f"noise {value:.3g}, a copy {copy:.3g}: reversed"


def check_more_noise_is_worse(metric: Metric) -> None:
    """Check that, on average, some noise is no better than none, and twelve times that is worse."""
    X, label = make_labelled_table()

    def mean(scale: float) -> float:
        steps = [np.random.default_rng(seed).normal(0.0, scale, X.shape) for seed in range(4)]
        found = [
            metric.measure(ReleaseComparison(X, label, X + step, COPY)).value for step in steps
        ]
        return float(np.mean(found))

    values = [mean(scale * float(X.std())) for scale in (0.0, 0.5, 6.0)]
    none, some, much = (-1 if metric.better == "up" else 1) * np.array(values)
    assert none <= some < much, f"values with increasing noise: {values}"


def check_deterministic(metric: Metric) -> None:
    """Check that two runs agree, also on some of the records."""
    X, label = make_labelled_table()
    Y = X + np.random.default_rng(1).normal(0.0, 1.0, X.shape)
    one, two = (metric.measure(ReleaseComparison(X, label, Y, COPY)) for _ in range(2))
    keep = np.arange(N) % 4 > 0
    assert (one.value, one.notes) == (two.value, two.notes), "two runs differ"
    assert one.recompute(keep) == two.recompute(keep), "two runs differ on some of the records"
    assert one.recompute(np.ones(N, dtype=np.bool_)) == one.value, (
        "the value on all records differs"
    )


def check_nan_refused(metric: Metric) -> None:
    """Check that NaN and infinite values raise a PpdmError."""
    X, label = make_labelled_table()
    for bad in (np.nan, np.inf):
        estimate = make_perfect_estimate(metric).astype(np.float64)
        estimate[N // 2] = bad
        poisoned = X.copy()
        poisoned[3, 1] = bad
        if not (metric.goal == "single_out" and np.isinf(bad)):  # intervals may be open
            expect_refusal(
                lambda estimate=estimate: measure(metric, estimate), f"an estimate of {bad}"
            )
        if metric.goal == "reconstruct":
            expect_refusal(
                lambda table=poisoned: metric.measure(table, X, np.ptp(X, axis=0), EPSILON),
                f"a table of {bad}",
            )
        if metric.goal == "release":
            expect_refusal(
                lambda table=poisoned: (
                    metric.measure(ReleaseComparison(table, label, X, COPY)).value
                ),
                f"a table of {bad}",
            )


def check_bad_shapes_refused(metric: Metric) -> None:
    """Check that short and empty estimates raise a PpdmError."""
    good = make_perfect_estimate(metric)
    short = good[:, :-1] if metric.goal == "single_out" else good[:-1]
    if metric.goal != "change":  # one array, of any length
        expect_refusal(lambda: measure(metric, short), "an estimate that is too short")
    expect_refusal(
        lambda: measure(metric, make_perfect_estimate(metric)[:0]), "an estimate without rows"
    )


def expect_refusal(call: Callable[[], float], what: str) -> None:
    try:
        value = call()
    except PpdmError:
        return
    raise AssertionError(f"{what} scores {value}")


def check_sentence(metric: Metric) -> None:
    """Check that the sentence for a steward is complete and contains the value."""
    text = metric.sentence(
        SentenceValues(value=0.25, baseline=0.125, story="An attacker looks.", epsilon=0.1)
    )
    assert text.endswith("."), f"not a sentence: {text}"
    assert metric.format_value(0.25) in text, f"the value is missing: {text}"
    assert metric.describe, "it has no description"
    assert metric.kind in ("privacy", "utility"), f"unknown kind {metric.kind}"
    assert metric.better in ("up", "down"), f"unknown direction {metric.better}"


def check_capabilities(metric: Metric) -> None:
    """Check that the class declares what the audit asks it for, with the right types."""
    for flag in FLAGS:
        value = getattr(type(metric), flag)
        assert type(value) is bool, f"{flag} is {value!r}, not a bool"
    assert type(metric.reads) is frozenset, f"reads is {metric.reads!r}, not a frozenset"
    assert metric.reads, "it reads no columns"
    assert metric.reads <= set(get_args(ColumnKind)), f"it reads {set(metric.reads)}"
    assert isinstance(metric.must_notice, Mapping), f"must_notice is {metric.must_notice!r}"
    for leak, share in metric.must_notice.items():
        assert type(leak) is str, f"{leak!r} is no name of a planted leak"
        assert type(share) is float, f"the share of {leak} is {share!r}, not a float"
        assert 0.0 < share <= 1.0, f"the share of {leak} is {share}"
    assert metric.interval_method in get_args(IntervalMethod), "it declares no interval"
    judged = metric.goal not in ("release", "change")
    assert judged or not metric.is_headline, "a headline metric measures an attack"

"""What every metric must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import get_args

import numpy as np

from ppdm_core.metrics import ReleaseComparison, Metric, SentenceValues
from ppdm_core.model.attacker import ColumnKind
from ppdm_core.model.errors import PpdmError
from ppdm_core.model.release import PublicParameters
from tests.support.tables import schema, table

N, D = 60, 3
EPSILON = 0.1
FLAGS = (
    "is_rate",
    "gateable",
    "in_quick_audit",
    "in_summary",
    "needs_alignment",
    "is_headline",
    "uses_claims",
    "needs_method",
)
NO_DISTORTION = {"distance_distortion_mean": 0.0, "distance_distortion_variance": 0.0}
COPY = PublicParameters("copy", "original", tuple(f"x{j}" for j in range(D)), facts=NO_DISTORTION)


def truth() -> tuple[np.ndarray, np.ndarray]:
    """Two classes that can be learned, and that lie apart."""
    X = table(N, D, seed=3).whole.X.copy()
    label = (X[:, 0] > np.median(X[:, 0])).astype(np.int32)
    X[:, 0] += 3.0 * X.std() * label
    return X, label


IS_MEMBER = np.arange(N) % 2 == 0


def measured(metric: Metric, answer: np.ndarray) -> float:
    """The metric of an attacker's answer, or of a release."""
    X, label = truth()
    if metric.goal in ("link", "pair"):
        return metric.measure(answer, np.arange(N))
    if metric.goal == "source":
        return metric.measure(answer, np.ones(answer.shape), np.arange(N))
    if metric.goal == "member":
        return metric.measure(answer, IS_MEMBER)
    if metric.goal == "norms":
        return metric.measure(np.linalg.norm(X, axis=1), answer, EPSILON)
    if metric.goal == "infer":
        return metric.measure(answer, X, schema(D), EPSILON)
    if metric.goal == "single_out":
        return metric.measure(answer, X)
    if metric.goal == "reconstruct":
        return metric.measure(X, answer, schema(D), EPSILON)
    if metric.goal == "change":
        return metric.measure(answer)
    return metric.measure(ReleaseComparison(X, label, answer, COPY)).value


def perfect(metric: Metric) -> np.ndarray:
    X = truth()[0]
    answers = {
        "link": np.arange(N),
        "pair": np.arange(N),
        "source": np.arange(N)[:, None],
        "member": IS_MEMBER.astype(np.float64),
        "norms": np.linalg.norm(X, axis=1),
        "single_out": np.stack([X, X], axis=2),  # everybody's own values
        "change": np.zeros(N),
    }
    return answers.get(metric.goal, X).copy()


def noise(metric: Metric, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    answers = {
        "link": lambda: rng.permutation(N),
        "pair": lambda: rng.permutation(N),
        "source": lambda: rng.permutation(N)[:, None],
        "member": lambda: rng.random(N),
        "norms": lambda: rng.normal(0.0, 30.0, N),
        "single_out": lambda: np.sort(rng.normal(0.0, 30.0, (N, D, 2)), axis=2),
        "change": lambda: (rng.random(N) < 0.5).astype(np.float64),  # every other answer is lost
    }
    return answers.get(metric.goal, lambda: rng.normal(0.0, 30.0, (N, D)))()


def answers(metric: Metric) -> Iterator[np.ndarray]:
    """Good, bad and absurd ones."""
    yield perfect(metric)
    for seed in range(5):
        yield noise(metric, seed)
    good = perfect(metric)
    if np.issubdtype(good.dtype, np.integer):
        yield np.full_like(good, -1)
        yield np.zeros_like(good)
        return
    if metric.goal == "change":
        yield from (good + 1.0, good - 1.0)
        return
    yield from (good + 1e-9, good[::-1].copy(), 0 * good, 0 * good + 1e12, -good, good * 1e-12)


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
        expected = metric.original(ReleaseComparison(X, label, X, COPY))
    value = measured(metric, perfect(metric))
    assert value == expected, f"a copy scores {value}, not {expected}"
    low, high = metric.bounds
    if metric.kind == "privacy":
        worst = low if metric.better == "up" else high
        assert value == worst, f"nothing is less private than a copy, and it scores {value}"
    elif metric.goal == "release":
        best = low if metric.better == "down" else expected
        assert value == best, f"nothing is more useful than a copy, and it scores {value}"


def check_noise_is_told_from_a_copy(metric: Metric) -> None:
    copy = measured(metric, perfect(metric))
    for seed in range(5):
        value = measured(metric, noise(metric, seed))
        more = value > copy if metric.better == "up" else value < copy
        assert value != copy, "noise scores as a copy does"
        assert more == (metric.kind == "privacy"), f"noise {value:.3g}, a copy {copy:.3g}: reversed"


def check_worse_noise_is_worse(metric: Metric) -> None:
    """On average: some is no better than none, and twelve times that is worse."""
    X, label = truth()

    def mean(scale: float) -> float:
        steps = [np.random.default_rng(seed).normal(0.0, scale, X.shape) for seed in range(4)]
        found = [metric.measure(ReleaseComparison(X, label, X + step, COPY)).value for step in steps]
        return float(np.mean(found))

    values = [mean(scale * float(X.std())) for scale in (0.0, 0.5, 6.0)]
    none, some, much = (-1 if metric.better == "up" else 1) * np.array(values)
    assert none <= some < much, f"with more noise it goes {values}"


def check_deterministic(metric: Metric) -> None:
    X, label = truth()
    Y = X + np.random.default_rng(1).normal(0.0, 1.0, X.shape)
    one, two = (metric.measure(ReleaseComparison(X, label, Y, COPY)) for _ in range(2))
    keep = np.arange(N) % 4 > 0
    assert (one.value, one.notes) == (two.value, two.notes), "it does not repeat itself"
    assert one.recompute(keep) == two.recompute(keep), "of a part of the records it says something else"
    assert one.recompute(np.ones(N, dtype=np.bool_)) == one.value, "of all records it says something else"


def check_nan_is_an_error(metric: Metric) -> None:
    X, label = truth()
    for bad in (np.nan, np.inf):
        answer = perfect(metric).astype(np.float64)
        answer[N // 2] = bad
        poisoned = X.copy()
        poisoned[3, 1] = bad
        if not (metric.goal == "single_out" and np.isinf(bad)):  # intervals may be open
            must_refuse(lambda answer=answer: measured(metric, answer), f"an answer of {bad}")
        if metric.goal == "reconstruct":
            must_refuse(
                lambda table=poisoned: metric.measure(table, X, schema(D), EPSILON),
                f"a table of {bad}",
            )
        if metric.goal == "release":
            must_refuse(
                lambda table=poisoned: metric.measure(ReleaseComparison(table, label, X, COPY)).value,
                f"a table of {bad}",
            )


def check_shapes_are_checked(metric: Metric) -> None:
    good = perfect(metric)
    short = good[:, :-1] if metric.goal == "single_out" else good[:-1]
    if metric.goal != "change":  # one array, of any length
        must_refuse(lambda: measured(metric, short), "an answer that is too short")
    must_refuse(lambda: measured(metric, perfect(metric)[:0]), "an answer without rows")


def must_refuse(call: Callable[[], float], what: str) -> None:
    try:
        value = call()
    except PpdmError:
        return
    raise AssertionError(f"{what} scores {value}")


def check_speaks(metric: Metric) -> None:
    """One sentence a steward reads, with figures that were measured."""
    text = metric.sentence(SentenceValues(value=0.25, baseline=0.125, story="Somebody looks.", epsilon=0.1))
    assert text.endswith("."), f"not a sentence: {text}"
    assert "25.0 %" in text, f"it does not say what was measured: {text}"
    assert metric.describe, "it does not say what it measures"
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
    judged = metric.goal not in ("release", "change")
    assert judged or not metric.is_headline, "a headline metric measures an attack"

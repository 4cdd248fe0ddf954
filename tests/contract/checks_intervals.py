"""Checks that the interval of a metric covers. Each takes a metric and raises AssertionError.

The end that supports a PASS may miss no more often than stated, the other end 1.5 times as often.
Where a score depends on how many persons were hit, all numbers are tried; elsewhere many tables or
releases are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom, multinomial

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.evaluators import EVALUATORS
from ppdm_core.audit.scores import Figures, make_score
from ppdm_core.audit.simulation import Participants, TrialOutcome
from ppdm_core.audit.utility import measure_plain
from ppdm_core.metrics import METRICS, Metric, ReleaseComparison
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.score import Score
from ppdm_core.numerics.mean_limits import mean_interval
from tests.support.tables import make_schema

LEVELS = (0.95, 0.995)  # one limit, and ten
RATES = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
MAX_OTHER_MISSES = 1.5  # of the end that does not support a PASS, as a multiple of what is stated
D, EPSILON = 3, 0.1
COPY = PublicParameters("copy", "original", tuple(f"x{j}" for j in range(D)))
CONTROLLED = ("infer", "pair", "single_out")


@dataclass(frozen=True, eq=False)
class Ends:
    """Low and high ends of many scores, and how likely each of the scores is."""

    low: np.ndarray
    high: np.ndarray
    chance: np.ndarray

    def check(self, metric: Metric, truth: float, level: float, draws: int | None = None) -> None:
        """Check how often each end misses; ``draws``: how many random ones were counted."""
        slack = 1e-6 * max(1.0, abs(truth))
        missed = {
            "low": float(self.chance @ (self.low > truth + slack)),
            "high": float(self.chance @ (self.high < truth - slack)),
        }
        for end, rate in missed.items():
            supports_pass = end == ("high" if metric.better == "down" else "low")
            stated = (1.0 - level) / 2.0 * (1.0 if supports_pass else MAX_OTHER_MISSES)
            most = stated + 1e-9
            if draws is not None:  # exceeded by chance once in a thousand
                most = float(binom.isf(1e-3, draws, stated)) / draws
            assert rate <= most, (
                f"the {end} end misses {truth:.4g} in {rate:.2%}, where {stated:.2%} are stated"
            )


def check_mean_of_each(metric: Metric) -> None:
    """Check that a mean has one value for each unit, inside the bounds, and is their mean."""
    n = 40
    hits = np.random.default_rng(1).random(n) < 0.3
    if metric.goal == "release":
        measured = metric.measure(draw_comparison(n, 0.5, np.random.default_rng(2)))
        assert measured.each is not None, "it hands over no values"
        units, values = measured.each
        assert len(units) == len(np.unique(units)) == len(values), "a record has several values"
        value = measured.value
    elif metric.goal == "change":
        values = np.where(hits, 1.0, -0.5)
        value = metric.measure(values)
    else:
        outcome, truth = simulate_hits(metric, hits, hits[::-1])
        evaluator: Any = EVALUATORS[metric.goal](metric, truth, [outcome], EPSILON)
        keep = evaluator.select(outcome)
        values = evaluator.measure_each(outcome, "a", keep)
        assert len(values) == n, f"{len(values)} values of {n} units"
        value = evaluator.measure(outcome, "a", keep)
    low, high = metric.bound_values(values)
    assert low <= values.min() and values.max() <= high, "a value is outside the bounds"
    assert abs(np.mean(values) - value) < 1e-12, f"{value} is not the mean of its values"


def check_interval_covers(metric: Metric, n: int = 16, draws: int = 60) -> None:
    """Check both ends at all rates: by enumeration, or on as many random ``draws``."""
    if metric.goal == "release":
        simulate = simulate_tables if metric.interval_method == "mean" else simulate_noise
        simulate(metric, n, draws)
    elif metric.goal == "member":
        simulate_members(metric, n, draws)
    elif metric.interval_method == "own":
        simulate_errors(metric, n, draws)
    elif metric.goal in ("change", "single_out"):
        enumerate_changes(metric, min(n, 24) // 2)
    elif metric.goal in CONTROLLED:
        enumerate_differences(metric, min(n, 40) // 2)
    else:
        enumerate_hits(metric, n)


def enumerate_hits(metric: Metric, n: int) -> None:
    """Check a mean over persons who are each hit with some probability."""
    figures = [score_hits(metric, np.arange(n) < hits) for hits in range(n + 1)]
    none, every = (float(np.mean(figures[k].values)) for k in (0, n))
    for level in LEVELS:
        scores = [finish(metric, each, level) for each in figures]
        low, high = (np.array([getattr(each, end) for each in scores]) for end in ("low", "high"))
        for rate in RATES:
            ends = Ends(low, high, binom.pmf(np.arange(n + 1), n, rate))
            ends.check(metric, none + rate * (every - none), level)


def enumerate_differences(metric: Metric, n: int) -> None:
    """Check the excess over persons outside the release, who are hit with another probability."""
    k = np.arange(n + 1)
    figures = [[score_hits(metric, k[:n] < i, k[:n] < j) for j in k] for i in k]
    for level in LEVELS:
        scores = [[finish(metric, each, level) for each in row] for row in figures]
        low, high = (
            np.array([[getattr(s, end) - s.baseline for s in row] for row in scores]).ravel()
            for end in ("low", "high")
        )
        for rate in RATES:
            for other in RATES:
                chance = np.outer(binom.pmf(k, n, rate), binom.pmf(k, n, other)).ravel()
                # A value has no end below 0, and an excess below 0 is no breach.
                ends = Ends(low - max(other - rate, 0.0), high, chance)
                ends.check(metric, rate - other, level)


def enumerate_changes(metric: Metric, n: int) -> None:
    """Check a mean of -1, 0 and 1, the latter two with some probabilities."""
    counts = [(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]
    for level in LEVELS:
        ends = []
        for up, down, _ in counts:
            if metric.goal == "change":
                change = np.repeat([1.0, -1.0, 0.0], [up, down, n - up - down])
                ends.append(mean_interval(change, level, metric.bounds))
                continue
            place = np.arange(n)
            figures = score_hits(metric, place < up, (place >= up) & (place < up + down))
            score = finish(metric, figures, level)
            ends.append((score.low - score.baseline, score.high - score.baseline))
        low, high = np.array(ends).T
        for up, down in (
            (0.0, 0.0),
            (0.02, 0.0),
            (0.05, 0.05),
            (0.1, 0.02),
            (0.3, 0.1),
            (0.2, 0.2),
        ):
            chance = multinomial.pmf(counts, n, [up, down, 1 - up - down])
            Ends(low, high, chance).check(metric, up - down, level)


def simulate_errors(metric: Any, n: int, draws: int) -> None:
    """Check a metric of estimation errors, of which a share is recovered exactly."""
    rng, ranges = np.random.default_rng(3), np.full(D, 10.0)

    def draw(count: int, share: float) -> tuple[np.ndarray, np.ndarray]:
        X = rng.uniform(0.0, 10.0, (count, D))
        error = np.where(rng.random((count, 1)) < share, 0.0, rng.normal(0.0, 1.0, (count, D)))
        return X, X + error

    for share in (0.0, 0.2):
        truth = metric.measure(*draw(200_000, share), ranges, EPSILON)
        tables = [[draw(n, share), draw(n, share)] for _ in range(draws)]
        for level in LEVELS:
            low, high = np.array([metric.interval(each, ranges, level) for each in tables]).T
            Ends(low, high, np.full(draws, 1 / draws)).check(metric, truth, level, draws)


def simulate_members(metric: Any, n: int, draws: int) -> None:
    """Check a metric of membership for members who score higher, all or a few of them."""
    rng, is_member = np.random.default_rng(4), np.arange(2 * n) < n
    for by, share in ((0.0, 1.0), (1.0, 1.0), (3.0, 1.0), (20.0, 0.1)):
        shifted = rng.random((draws, 2 * n)) < share
        trials = rng.normal(0.0, 1.0, (draws, 2 * n)) + by * (shifted & is_member)
        truth = float(np.mean([metric.measure(score, is_member) for score in trials]))
        for level in LEVELS:
            found = [metric.interval([(score, is_member)], n, n, level) for score in trials]
            low, high = np.array(found).T
            Ends(low, high, np.full(draws, 1 / draws)).check(metric, truth, level, draws)


def draw_comparison(
    n: int, noise: float, rng: np.random.Generator, X: np.ndarray | None = None
) -> ReleaseComparison:
    """Return a noisy release of two classes; ``X``: of this table."""
    label = (np.arange(n) % 2).astype(np.int32)
    X = rng.normal(0.0, 1.0, (n, D)) + 1.5 * label[:, None] if X is None else X
    facts = {"distance_distortion_mean": 2 * D * noise**2, "distance_distortion_variance": 1.0}
    Y = X + rng.normal(0.0, noise, X.shape)
    return ReleaseComparison(
        X, label, Y, PublicParameters("noise", "original", COPY.columns, facts=facts)
    )


def simulate_tables(metric: Any, n: int, draws: int) -> None:
    """Check a mean over the records, on many tables with two releases each."""
    rng = np.random.default_rng(5)
    figures = []
    for _ in range(draws):
        one = draw_comparison(n, 0.5, rng)
        figures.append(measure_plain(metric, [one, draw_comparison(n, 0.5, rng, one.X)]))
    compare_with_mean(metric, figures)


def simulate_noise(metric: Any, n: int, draws: int) -> None:
    """Check what other releases of the same table give, for two tables."""
    rng = np.random.default_rng(6)
    for noise in (0.2, 1.0):
        X = draw_comparison(n, noise, rng).X
        figures = [
            measure_plain(metric, [draw_comparison(n, noise, rng, X) for _ in range(2)])
            for _ in range(draws)
        ]
        compare_with_mean(metric, figures)


def compare_with_mean(metric: Any, figures: list[Figures]) -> None:
    """Check scores of random releases against their mean."""
    truth, draws = float(np.mean([each.values for each in figures])), len(figures)
    for level in LEVELS:
        scores = [finish(metric, each, level) for each in figures]
        low, high = (np.array([getattr(each, end) for each in scores]) for end in ("low", "high"))
        Ends(low, high, np.full(draws, 1 / draws)).check(metric, truth, level, draws)


def finish(metric: Metric, figures: Figures, level: float) -> Score:
    make = partial(make_score, metric, metric.name, figures, story="", epsilon=EPSILON)
    return make(level=level, rng=np.random.default_rng(7))


def score_hits(metric: Metric, hits: np.ndarray, control: np.ndarray | None = None) -> Figures:
    """Return the figures of an attack that hits these members, and these persons outside."""
    outcome, truth = simulate_hits(
        metric, hits, np.zeros_like(hits) if control is None else control
    )
    evaluator: Any = EVALUATORS[metric.goal](metric, truth, [outcome], EPSILON)  # type: ignore[index]
    return evaluator.make_figures("hits", np.arange(1), {})


def simulate_hits(
    metric: Metric, hits: np.ndarray, control: np.ndarray
) -> tuple[TrialOutcome, OriginalTable]:
    """Return what an attack found that hits these members, and these persons outside."""
    n, rng = len(hits), np.random.default_rng(8)
    persons = 2 * n if metric.goal in CONTROLLED else n
    is_hit = np.append(hits, control)[:persons]
    X = 1.0 + rng.permutation(persons * D).reshape(persons, D)  # no value twice
    number = np.arange(persons)
    wrong = (number + 1) % persons
    statements = np.tile([-np.inf, np.inf], (n, D + 1, 1))
    statements[:, 0, :] = -1.0 - np.arange(n)[:, None]
    if metric.goal == "single_out":
        X[is_hit, 0] = -1.0 - (number % n)[is_hit]  # the person whom the statement is about
    lengths = np.linalg.norm(X, axis=1)
    estimates = {
        "reconstruct": np.where(is_hit[:, None], X, -X),
        "norms": np.where(is_hit, lengths, 3.0 * lengths),
        "link": np.where(is_hit, number, -1),
        "pair": np.where(is_hit, number, -1),
        "source": np.where(is_hit, number, wrong)[:, None],
        "infer": np.where(is_hit[:, None], X, X + 1e6),
        "single_out": statements,
    }
    roles = Participants(
        number[:0], number[:0], number, number < n, number[:0], number[:n], number[:0]
    )
    draw = ReleaseDraw(X[:n], COPY, members=np.arange(n))
    claims = {"a": np.ones((n, 1))} if metric.goal == "source" else {}
    outcome = TrialOutcome(draw, roles, {"a": estimates[metric.goal]}, {}, claims, {})
    return outcome, OriginalTable(X, np.zeros(persons, dtype=np.int32), make_schema(D))


def list_judged() -> Iterator[str]:
    """Yield the metrics that a limit can judge."""
    return (name for name, metric in METRICS.items() if metric.gateable)

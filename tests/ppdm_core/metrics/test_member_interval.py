"""Coverage of the intervals of membership metrics: both ends miss no more often than stated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom, norm

from ppdm_core import audit_tables
from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.audit.evaluator import count_effective
from ppdm_core.audit.evaluators import MembershipEvaluator
from ppdm_core.audit.simulation import Participants, TrialOutcome
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.true_positive_rate import TruePositiveRate, _ThresholdRange
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.numerics.intervals import joint_error_quantile
from tests.support.audit_cases import COPY, make_truth

LEVEL = 0.995  # as for ten limits
Sample = Callable[[np.random.Generator, int], np.ndarray]


def draw_shifted(rng: np.random.Generator, n: int, by: float = 0.0) -> np.ndarray:
    return rng.normal(by, 1.0, n)


def draw_with_outliers(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """Draw normal scores, a share of which is shifted far above the rest."""
    return rng.normal(0.0, 1.0, n) + np.where(rng.random(n) < share, 20.0, 0.0)


def draw_scores(rng: np.random.Generator, t: int, members: Sample, others: Sample):
    return np.append(members(rng, t), others(rng, t)), np.arange(2 * t) < t


def count_misses(metric, value: float, t: int, members: Sample, others: Sample, repetitions: int):
    """Return how often the low end is above the true value, and the high end below it."""
    rng = np.random.default_rng(0)
    ends = np.array(
        [
            metric.interval([draw_scores(rng, t, members, others)], t, t, LEVEL)
            for _ in range(repetitions)
        ]
    )
    return np.sum(ends[:, 0] > value), np.sum(ends[:, 1] < value)


def find_shift(value: float, t: int) -> float:
    """Return the shift of normal members for which ``value`` of them is found."""
    return float(norm.isf(max(0.01, 5 / t)) - norm.isf(value))


@pytest.mark.extended
@pytest.mark.parametrize(("t", "value"), [(46, 0.25)])
def test_true_positive_rate_interval_few_misses(t, value):
    """The jackknife puts 8 low ends of 300 too high, where 0.75 are expected."""
    members = partial(draw_shifted, by=find_shift(value, t))
    assert max(count_misses(TruePositiveRate(), value, t, members, draw_shifted, 300)) <= 2


def test_true_positive_rate_interval_kinked_curve_few_misses():
    """If 1 % of the others look like members, the value depends on their exact number."""
    members, others = (
        partial(draw_with_outliers, share=0.6),
        partial(draw_with_outliers, share=0.01),
    )
    assert max(count_misses(TruePositiveRate(), 0.6, 500, members, others, 100)) <= 2


def max_misses(repetitions: int) -> float:
    """Return the number of misses that an end exceeds once in a thousand runs."""
    return float(binom.isf(1e-3, repetitions, (1 - LEVEL) / 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("t", "value"), [(500, 0.12), (500, 0.01), (500, 0.5), (246, 0.12), (46, 0.25), (46, 0.97)]
)
def test_true_positive_rate_interval_both_ends_cover(t, value):
    members = partial(draw_shifted, by=find_shift(value, t))
    found = count_misses(TruePositiveRate(), value, t, members, draw_shifted, 2_000)
    assert max(found) <= max_misses(2_000)


@pytest.mark.slow
@pytest.mark.parametrize("t", [500, 46])
def test_true_positive_rate_interval_kinked_curve_both_ends_cover(t):
    members, others = (
        partial(draw_with_outliers, share=0.6),
        partial(draw_with_outliers, share=max(0.01, 5 / t)),
    )
    assert max(count_misses(TruePositiveRate(), 0.6, t, members, others, 2_000)) <= max_misses(
        2_000
    )


@pytest.mark.parametrize("by", [1.0, 3.0])
def test_auc_interval_few_misses(by):
    """The jackknife puts 32 low ends of 300 too high if the true value is 0.98."""
    value = norm.cdf(by / np.sqrt(2))
    assert max(count_misses(Auc(), value, 46, partial(draw_shifted, by=by), draw_shifted, 300)) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("t", [500, 46])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_auc_interval_both_ends_cover(t, share):
    value = share + (1 - share) / 2
    found = count_misses(
        Auc(), value, t, partial(draw_with_outliers, share=share), draw_shifted, 2_000
    )
    assert max(found) <= max_misses(2_000)


@pytest.mark.slow
@pytest.mark.parametrize("is_same", [True, False])
def test_true_positive_rate_interval_repeated_persons_covers(is_same):
    """The score of a person may be the same in every split, or independent."""
    rng, n, t = np.random.default_rng(1), 300, 100
    by, metric, missed = find_shift(0.2, t), TruePositiveRate(), 0
    is_member = np.arange(2 * t) < t
    for _ in range(400):
        personal, scores, inside, outside = rng.normal(0.0, 1.0, n), [], [], []
        for _ in range(5):
            persons = rng.permutation(n)[: 2 * t]
            score = personal[persons] if is_same else rng.normal(0.0, 1.0, 2 * t)
            scores.append((score + by * is_member, is_member))
            inside.append(persons[:t])
            outside.append(persons[t:])
        counts = (count_effective(np.concatenate(each)) for each in (inside, outside))
        low, high = metric.interval(scores, *counts, 0.95)
        missed += not low <= 0.2 <= high
    assert missed <= binom.isf(1e-3, 400, 0.05)


def test_errors_together_equals_chi_square_tables():
    # Tables of the mixture 1/4, 1/2, 1/4 of chi-squares with 0, 1, 2 degrees of freedom.
    assert joint_error_quantile(0.05) ** 2 == pytest.approx(4.231, abs=1e-3)
    assert joint_error_quantile(0.01) ** 2 == pytest.approx(7.289, abs=1e-3)


@pytest.mark.parametrize(("m", "share", "tail"), [(500, 0.01, 0.02), (2_000, 0.01, 1e-3)])
def test_threshold_range_equals_binomial_quantiles(m, share, tail):
    above = np.arange(m + 1)  # of m others, as many are above the true threshold
    high, low, chance = _ThresholdRange.from_counts(share, m, m).find_ends(tail)
    assert low * m == above[binom.sf(above, m, share) <= tail][0]
    assert high * m + 1 == above[binom.cdf(above - 1, m, share) <= tail][-1]
    assert chance == 1.0


def test_threshold_range_above_all_scores_reduces_chance():
    # P(none of 500 is above) = 0.99^500 = 0.0066; at 0.001 the highest may have 1.37 % above it.
    high, _, chance = _ThresholdRange.from_counts(0.01, 500, 500).find_ends(0.001)
    assert high == 0.0
    assert chance == pytest.approx(0.01 / (1 - 0.001 ** (1 / 500)))


def test_auc_interval_random_scores_a_quarter_wider_than_rank_test():
    score, is_member = np.random.default_rng(2).random(800), np.arange(800) < 400
    low, high = Auc().interval([(score, is_member)], 400, 400, 0.95)
    rank_test = 1.96 * np.sqrt(801 / (12 * 400**2))
    assert 1.2 * rank_test < (high - low) / 2 < 1.3 * rank_test


def test_auc_interval_few_members_not_narrowed_by_many_others():
    is_member = np.arange(505) < 5
    low, _ = Auc().interval([(is_member * 1.0, is_member)], 5, 500, 0.95)
    assert low < 0.9


@pytest.mark.parametrize("metric", [Auc(), TruePositiveRate()], ids=lambda m: m.name)
def test_member_interval_repeated_persons_not_narrower(metric):
    def find_interval(*numbers: np.ndarray) -> tuple[float, float]:
        is_member = np.arange(120) % 2 == 0
        score = is_member + np.random.default_rng(3).normal(0.0, 1.0, 120)
        outcomes = []
        for targets in numbers:
            nothing = targets[:0]
            participants = Participants(
                nothing, nothing, targets, is_member, nothing, nothing, nothing
            )
            outcomes.append(
                TrialOutcome(
                    ReleaseDraw(np.zeros((0, 4)), COPY), participants, {"a": score}, {}, {}, {}
                )
            )
        return MembershipEvaluator(metric, make_truth(240), outcomes, 0.1).interval("a")(0.95)

    first, others = np.arange(120), np.arange(120, 240)
    assert find_interval(first, first, first) == pytest.approx(find_interval(first))
    low, high = find_interval(first, others)
    assert high - low < 0.9 * np.diff(find_interval(first))[0]


def test_audit_tables_copy_interval_reflects_sample_size():
    rng = np.random.default_rng(4)
    X, control = rng.random((80, 4)), rng.random((120, 4))
    quick = Policy(
        required=("membership",), limits={}, attacker=Attacker(known_records=5), effort="quick"
    )
    report = audit_tables(X, X, control=control, policy=quick)
    found = {score.name: score for score in report.scores}
    for name in ("membership.true_positive_rate", "membership.auc"):
        assert found[name].value == found[name].high == 1.0
        assert 0.5 < found[name].low < 0.97

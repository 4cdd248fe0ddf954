"""How sure a score of membership is: both ends miss no oftener than they say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom, norm

from ppdm_core import audit_tables
from ppdm_core.audit.evaluators import Members, people_behind
from ppdm_core.audit.simulation import Cast, Draw, Played
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.true_positive_rate import TruePositiveRate, _Places
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.numerics.intervals import errors_together
from tests.support.audit_cases import COPY, truth

LEVEL = 0.995  # as with ten limits
Sample = Callable[[np.random.Generator, int], np.ndarray]


def shifted(rng: np.random.Generator, n: int, by: float = 0.0) -> np.ndarray:
    return rng.normal(by, 1.0, n)


def some_apart(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """That share is far above the rest, and among itself alike."""
    return rng.normal(0.0, 1.0, n) + np.where(rng.random(n) < share, 20.0, 0.0)


def asked(rng: np.random.Generator, t: int, members: Sample, others: Sample):
    return np.append(members(rng, t), others(rng, t)), np.arange(2 * t) < t


def misses(metric, value: float, t: int, members: Sample, others: Sample, repetitions: int):
    """How often the low end is above the true value, and the high end below it."""
    rng = np.random.default_rng(0)
    ends = np.array(
        [metric.interval([asked(rng, t, members, others)], t, t, LEVEL) for _ in range(repetitions)]
    )
    return np.sum(ends[:, 0] > value), np.sum(ends[:, 1] < value)


def shift_for(value: float, t: int) -> float:
    """Of normal members, so that the share of them is found at the false alarms allowed."""
    return float(norm.isf(max(0.01, 5 / t)) - norm.isf(value))


@pytest.mark.parametrize(("t", "value"), [(500, 0.12), (46, 0.25)])
def test_few_intervals_miss_what_is_found(t, value):
    """Leaving groups out puts 9 and 8 low ends of 300 too high, where 0.75 are expected."""
    members = partial(shifted, by=shift_for(value, t))
    assert max(misses(TruePositiveRate(), value, t, members, shifted, 300)) <= 2


def test_a_curve_with_a_kink_misleads_nobody():
    """Where 1 % of the others look like members, all depends on how many of these there are."""
    members, others = partial(some_apart, share=0.6), partial(some_apart, share=0.01)
    assert max(misses(TruePositiveRate(), 0.6, 500, members, others, 300)) <= 3


def allowed(repetitions: int, tail: float = (1 - LEVEL) / 2) -> float:
    """What an end that misses so often would stay below, but for one time in a thousand."""
    return float(binom.isf(1e-3, repetitions, tail))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("t", "value"), [(500, 0.12), (500, 0.01), (500, 0.5), (246, 0.12), (46, 0.25), (46, 0.97)]
)
def test_both_ends_of_what_is_found_hold(t, value):
    members = partial(shifted, by=shift_for(value, t))
    found = misses(TruePositiveRate(), value, t, members, shifted, 2_000)
    assert max(found) <= allowed(2_000)


@pytest.mark.slow
@pytest.mark.parametrize("t", [500, 46])
def test_both_ends_hold_for_a_curve_with_a_kink(t):
    members, others = partial(some_apart, share=0.6), partial(some_apart, share=max(0.01, 5 / t))
    assert max(misses(TruePositiveRate(), 0.6, t, members, others, 2_000)) <= allowed(2_000)


@pytest.mark.parametrize("by", [1.0, 3.0])
def test_few_intervals_miss_the_chance(by):
    """Leaving groups out puts 32 low ends of 300 too high where the chance is 0.98."""
    value = norm.cdf(by / np.sqrt(2))
    assert max(misses(Auc(), value, 46, partial(shifted, by=by), shifted, 300)) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("t", [500, 46])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_both_ends_of_the_chance_hold(t, share):
    """Wilson's own interval misses a rate of 0.95 in 46 trials with a probability of 0.0075."""
    value = share + (1 - share) / 2
    found = misses(Auc(), value, t, partial(some_apart, share=share), shifted, 2_000)
    assert max(found) <= allowed(2_000, 0.0075)


@pytest.mark.slow
@pytest.mark.parametrize("is_same", [True, False])
def test_people_who_are_met_in_several_splits(is_same):
    """What is odd about a person may show in every split, or in none but one."""
    rng, n, t = np.random.default_rng(1), 300, 100
    by, metric, missed = shift_for(0.2, t), TruePositiveRate(), 0
    is_member = np.arange(2 * t) < t
    for _ in range(400):
        oddness, scores, inside, outside = rng.normal(0.0, 1.0, n), [], [], []
        for _ in range(5):
            people = rng.permutation(n)[: 2 * t]
            score = oddness[people] if is_same else rng.normal(0.0, 1.0, 2 * t)
            scores.append((score + by * is_member, is_member))
            inside.append(people[:t])
            outside.append(people[t:])
        counts = (people_behind(np.concatenate(each)) for each in (inside, outside))
        low, high = metric.interval(scores, *counts, 0.95)
        missed += not low <= 0.2 <= high
    assert missed <= binom.isf(1e-3, 400, 0.05)


def test_two_errors_together():
    # Tables of the mixture 1/4, 1/2, 1/4 of chi-squares with 0, 1, 2 degrees of freedom.
    assert errors_together(0.05) ** 2 == pytest.approx(4.231, abs=1e-3)
    assert errors_together(0.01) ** 2 == pytest.approx(7.289, abs=1e-3)


@pytest.mark.parametrize(("m", "share", "tail"), [(500, 0.01, 0.02), (2_000, 0.01, 1e-3)])
def test_the_threshold_lies_where_the_binomial_law_puts_it(m, share, tail):
    above = np.arange(m + 1)  # of m others, as many are above the true threshold
    high, low, chance = _Places.of(share, m, m).ends(tail)
    assert low * m == above[binom.sf(above, m, share) <= tail][0]
    assert high * m + 1 == above[binom.cdf(above - 1, m, share) <= tail][-1]
    assert chance == 1.0


def test_a_threshold_that_nobody_reaches_costs_a_chance():
    # P(nobody of 500 is above) = 0.99^500 = 0.0066; at 0.001 the highest may have 1.37 % above it.
    high, _, chance = _Places.of(0.01, 500, 500).ends(0.001)
    assert high == 0.0
    assert chance == pytest.approx(0.01 / (1 - 0.001 ** (1 / 500)))


def test_a_blind_chance_is_as_sure_as_the_rank_test():
    score, is_member = np.random.default_rng(2).random(800), np.arange(800) < 400
    low, high = Auc().interval([(score, is_member)], 400, 400, 0.95)
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(801 / (12 * 400**2)), rel=0.05)


@pytest.mark.parametrize("metric", [Auc(), TruePositiveRate()], ids=lambda m: m.name)
def test_the_same_people_in_several_splits_are_no_further_evidence(metric):
    def ends(*numbers: np.ndarray) -> tuple[float, float]:
        is_member = np.arange(120) % 2 == 0
        score = is_member + np.random.default_rng(3).normal(0.0, 1.0, 120)
        played = []
        for targets in numbers:
            nobody = targets[:0]
            cast = Cast(nobody, nobody, targets, is_member, nobody, nobody, nobody)
            played.append(Played(Draw(np.zeros((0, 4)), COPY), cast, {"a": score}, {}, {}, {}))
        return Members(truth(240), played, 0.1, "").ends(metric, "a")(0.95)

    once, others = np.arange(120), np.arange(120, 240)
    assert ends(once, once, once) == pytest.approx(ends(once))
    low, high = ends(once, others)
    assert high - low < 0.9 * np.diff(ends(once))[0]


def test_a_copy_is_told_with_the_doubt_that_its_people_leave():
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

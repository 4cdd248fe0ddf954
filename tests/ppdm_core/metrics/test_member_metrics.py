from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from ppdm_core.metrics import SentenceValues
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.true_positive_rate import TruePositiveRate
from ppdm_core.model.errors import Defect

METRICS = [Auc(), TruePositiveRate()]


def make_scores(members: list[float], others: list[float]) -> tuple[np.ndarray, np.ndarray]:
    score = np.array(members + others, dtype=np.float64)
    return score, np.arange(len(score)) < len(members)


def test_auc_by_hand():
    assert Auc().measure(*make_scores([3, 1], [2, 0])) == 0.75
    assert Auc().measure(*make_scores([1, 1], [1, 0])) == 0.75  # two ties of four pairs
    assert Auc().measure(*make_scores([0], [5, 5])) == 0.0


def test_auc_equals_rank_statistic():
    rng = np.random.default_rng(0)
    members, others = rng.integers(0, 9, 40).tolist(), rng.integers(0, 7, 60).tolist()
    expected = mannwhitneyu(members, others).statistic / 2400
    assert Auc().measure(*make_scores(members, others)) == pytest.approx(expected)


def test_true_positive_rate_by_hand():
    """Ten others: five of them may be taken, that is one half."""
    others = [float(i) for i in range(10)]
    # 9..5 are taken, and members above 4; the threshold lies between 5 and 4
    assert TruePositiveRate().measure(*make_scores([20.0, 4.5, 3.0, -1.0], others)) == 0.5
    # All are equal: a threshold by chance takes half of all.
    assert TruePositiveRate().measure(*make_scores([1.0] * 4, [1.0] * 10)) == pytest.approx(0.5)
    # Two of the others are above, three of the four in the tie may be taken.
    tied = make_scores([5.0, 5.0, 0.0], [9.0, 9.0, 5.0, 5.0, 5.0, 5.0] + [-1.0] * 4)
    assert TruePositiveRate().measure(*tied) == pytest.approx(2 / 3 * 3 / 4)


def test_true_positive_rate_many_others_one_per_cent():
    rng = np.random.default_rng(1)
    others, members = rng.random(10_000), np.array([0.98, 0.995, 0.5])
    score, is_member = make_scores(members.tolist(), others.tolist())
    assert TruePositiveRate().baseline(is_member) == 0.01
    assert TruePositiveRate().measure(score, is_member) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("others", "expected"), [(1, 1.0), (5, 1.0), (50, 0.1), (500, 0.01)])
def test_true_positive_rate_baseline_by_count_of_others(others, expected):
    is_member = np.arange(others + 3) < 3
    assert TruePositiveRate().baseline(is_member) == expected
    assert Auc().baseline(is_member) == 0.5


@pytest.mark.parametrize("metric", METRICS)
def test_member_metrics_random_scores_equal_baseline(metric):
    is_member = np.arange(4000) < 2000
    found = [metric.measure(np.random.default_rng(s).random(4000), is_member) for s in range(20)]
    assert np.mean(found) == pytest.approx(metric.baseline(is_member), abs=0.01)
    assert metric.measure(np.zeros(4000), is_member) == pytest.approx(metric.baseline(is_member))


@pytest.mark.parametrize("metric", METRICS)
def test_member_metrics_monotone_scores_same_value(metric):
    rng = np.random.default_rng(2)
    score, is_member = rng.integers(0, 30, 200).astype(np.float64), rng.random(200) < 0.4
    order = rng.permutation(200)
    value = metric.measure(score, is_member)
    assert metric.measure(np.exp(score), is_member) == pytest.approx(value)
    assert metric.measure(score[order], is_member[order]) == pytest.approx(value)


@pytest.mark.parametrize("metric", METRICS)
def test_member_metrics_perfect_scores_one(metric):
    is_member = np.arange(40) < 20
    assert metric.measure(is_member.astype(np.float64), is_member) == 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_member_metrics_bad_scores_raise_defect(metric):
    is_member = np.arange(4) < 2
    for bad in ([1.0, np.nan, 2.0, 3.0], [1.0, np.inf, 2.0, 3.0], [1.0, 2.0, 3.0]):
        with pytest.raises(Defect):
            metric.measure(np.array(bad), is_member)
    for same_group in (np.ones(4, dtype=bool), np.zeros(4, dtype=bool)):
        with pytest.raises(Defect, match="members and non-members"):
            metric.measure(np.arange(4.0), same_group)


@pytest.mark.parametrize("metric", METRICS)
def test_member_metrics_sentence_contains_values(metric):
    text = metric.sentence(SentenceValues(value=0.25, baseline=0.01, story="An attacker asks."))
    assert text.startswith("An attacker asks.") and "25.0 %" in text and "1.0 %" in text

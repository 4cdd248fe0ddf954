from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.model.policy import Limit, Policy
from ppdm_core.tuning.choice import choose_setting, find_dominated
from ppdm_core.tuning.halving import FINALISTS, plan_rounds, rank_trials
from ppdm_core.tuning.trial import MARGIN, compute_room, compute_slack
from tests.ppdm_core.tuning.trials import (
    ACCURACY,
    BOUND,
    LIMITS,
    LINKAGE,
    fail,
    make_score,
    make_trial,
)


def test_choose_setting_best_use_among_those_that_keep_the_limit():
    trials = [make_trial(0.0, 0.6), make_trial(0.01, 0.7), make_trial(0.09, 0.9)]
    choice = choose_setting(trials, ACCURACY, LIMITS)
    assert choice is not None and choice.has_margin
    assert choice.trial is trials[1]


def test_choose_setting_pass_without_margin_only_if_there_is_no_other():
    near = make_trial(0.039, 0.8)  # the upper end is 0.049, 1.5 times as far is 0.054
    choice = choose_setting([near, make_trial(0.01, 0.7)], ACCURACY, LIMITS)
    assert choice is not None and choice.trial is not near
    alone = choose_setting([near], ACCURACY, LIMITS)
    assert alone is not None and alone.trial is near and not alone.has_margin


def test_choose_setting_undecided_or_failed_none():
    assert choose_setting([make_trial(0.045, 0.8)], ACCURACY, LIMITS) is None
    assert choose_setting([make_trial(0.2, 0.8)], ACCURACY, LIMITS) is None
    assert (
        choose_setting([make_trial(0.0, 0.8, more=[fail("required.x")])], ACCURACY, LIMITS) is None
    )


def test_choose_setting_equal_use_stronger_guarantee():
    weak = make_trial(0.0, 0.705, guarantee=replace(BOUND, kind="empirical"))
    strong = make_trial(0.001, 0.702)
    choice = choose_setting([weak, strong], ACCURACY, LIMITS)
    assert choice is not None and choice.trial is strong


def test_compute_slack_golden():
    # 0.02 + 1.5 * 0.01 = 0.035 of 0.05
    score, limit = make_score(LINKAGE, 0.02), LIMITS[LINKAGE]
    assert math.isclose(compute_slack(score, limit), (0.05 - 0.035) / 0.05)
    assert math.isclose(compute_slack(score, limit, shrink=0.5), (0.05 - 0.0275) / 0.05)
    assert MARGIN == 1.5


@given(st.floats(0, 1), st.floats(0, 0.2), st.floats(0.001, 0.5), st.floats(0, 1))
def test_compute_slack_room_implies_pass(value: float, half: float, limit: float, shrink: float):
    trial = make_trial(value, 0.7, half)
    if compute_room(trial, LIMITS, 1.0) >= 0:
        assert trial.outcome == "PASS"
    score = make_score(LINKAGE, value, half)
    loose, tight = Limit(limit * 2, "a", "b"), Limit(limit, "a", "b")
    assert compute_slack(score, loose, shrink) >= compute_slack(score, tight, shrink) - 1e-9


def test_compute_room_failed_check_without_a_score_none():
    assert (
        compute_room(make_trial(0.0, 0.7, more=[fail("amplification.record")]), LIMITS) == -math.inf
    )
    assert compute_room(make_trial(0.0, 0.7, why_not="no"), LIMITS) == -math.inf


def test_rank_trials_keepers_by_use_then_others_by_distance():
    keeper, useful = make_trial(0.0, 0.6), make_trial(0.01, 0.7)
    near, far = make_trial(0.1, 0.8), make_trial(0.5, 0.9)
    assert rank_trials([far, keeper, near, useful], ACCURACY, LIMITS, 500) == [
        useful,
        keeper,
        near,
        far,
    ]


def test_rank_trials_small_sample_interval_of_the_last_round_counts():
    wide = replace(make_trial(0.02, 0.9, half=0.04), records=100)
    keeper = replace(make_trial(0.0, 0.6), records=100)
    assert rank_trials([keeper, wide], ACCURACY, LIMITS, 100)[0] is keeper
    assert rank_trials([keeper, wide], ACCURACY, LIMITS, 5000)[0] is wide


@pytest.mark.parametrize("count", [1, 3, 7, 24, 200])
def test_plan_rounds_any_count_last_round_as_the_release(count: int):
    policy = Policy(required=(), limits={}, shadow_draws=3, splits=5)
    rounds = plan_rounds(count, 10_000, policy)
    assert rounds[0].settings == count
    assert rounds[-1].policy is policy and rounds[-1].is_last
    assert rounds[-1].settings == min(FINALISTS, count)
    assert [each.number for each in rounds] == list(range(1, len(rounds) + 1))
    assert all(a.records <= b.records for a, b in pairwise(rounds))
    assert all(a.settings >= b.settings for a, b in pairwise(rounds))


POINTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12)


@given(POINTS)
def test_find_dominated_any_points_frontier_is_not_empty(points: list[tuple[float, float]]):
    dominated = find_dominated(points)
    assert not all(dominated)
    best = max(use for _, use in points)
    assert any(use == best and not each for (_, use), each in zip(points, dominated, strict=True))


def test_find_dominated_golden():
    assert find_dominated([(0.1, 0.5), (0.2, 0.6), (0.2, 0.5), (0.1, 0.5)]) == [
        False,
        False,
        True,
        False,
    ]

from __future__ import annotations

import math

import numpy as np
import pytest

from ppdm_core.audit.scores import Figures, compute_interval
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import Policy
from ppdm_core.numerics.intervals import clopper_pearson

FOUND, PERSONS, JUDGED, TRIED = 45, 500, 4, 24


def test_judge_choice_error_is_divided_by_the_settings():
    policy = Policy((), {})
    assert policy.judge_choice(0) == policy.judge_choice(1) == policy
    chosen = policy.judge_choice(TRIED)
    assert math.isclose(chosen.pass_level, 1 - 0.05 / TRIED)
    assert (chosen.level, policy.pass_level) == (policy.level, policy.level)
    assert chosen.attack_settings_key == policy.attack_settings_key


@pytest.mark.parametrize("better", ["down", "up"])
def test_compute_interval_chosen_setting_only_the_end_of_a_pass_is_wider(better: str):
    name = {"down": "rate", "up": "best_accuracy"}[better]
    metric = METRICS[name]
    assert metric.better == better
    share = FOUND / PERSONS
    figures = Figures(
        values=[share],
        n=PERSONS,
        baseline=0.0,
        value_on=lambda persons: share,
        units=PERSONS,
        interval=lambda level: clopper_pearson(FOUND, PERSONS, level),
    )
    rng = np.random.default_rng(1)
    one = compute_interval(metric, figures, 0.95, JUDGED, rng)
    chosen = compute_interval(metric, figures, 0.95, JUDGED, rng, TRIED)
    fails, passes = (0, 1) if better == "down" else (1, 0)
    assert chosen[fails] == one[fails]
    assert chosen[passes] == clopper_pearson(FOUND, PERSONS, 1 - 0.05 / TRIED)[passes]
    assert abs(chosen[passes] - share) > abs(one[passes] - share)

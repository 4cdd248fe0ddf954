from __future__ import annotations

import math

from ppdm_core.model.policy import Policy


def test_judge_choice_error_is_divided_by_the_settings():
    policy = Policy((), {})
    assert policy.judge_choice(0) is policy
    assert policy.judge_choice(1) is policy
    assert math.isclose(policy.judge_choice(24).level, 1 - 0.05 / 24)
    assert policy.judge_choice(24).attack_settings_key == policy.attack_settings_key

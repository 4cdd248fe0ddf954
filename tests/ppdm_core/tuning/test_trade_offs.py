from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.gates.score_limits import judge
from ppdm_core.model.policy import Limit
from ppdm_core.model.verdict import Finding
from ppdm_core.tuning.setting import Setting
from ppdm_core.tuning.trade_offs import list_trade_offs
from tests.ppdm_core.tuning.trials import (
    ACCURACY,
    BOUND,
    LIMITS,
    LINKAGE,
    fail,
    make_accuracy,
    make_score,
    make_trial,
)

GAMMA = "amplification.record"
BOTH = {**LIMITS, GAMMA: Limit(100.0, "a", "b")}
ASKED = "record_linkage.rate at most 5 % above the baseline"


def test_list_trade_offs_golden_sentence():
    trials = [make_trial(0.01, 0.71), make_trial(0.07, 0.8)]
    (found,) = list_trade_offs(trials, ACCURACY, LIMITS)
    assert found.sentence == (
        f"With {ASKED}, the best tried is best_accuracy 71.0 %; at 8 % it would be best_accuracy "
        "80.0 %."
    )


def test_list_trade_offs_setting_of_an_early_round_records_named():
    finalist = make_trial(0.01, 0.71, round=3, records=3_000)
    (found,) = list_trade_offs([finalist, make_trial(0.07, 0.8)], ACCURACY, LIMITS)
    assert found.sentence == (
        f"With {ASKED}, the best tried is best_accuracy 71.0 %; at 8 % it would be best_accuracy "
        "80.0 % (measured on 500 records only)."
    )


def test_list_trade_offs_most_useful_setting_named_after_the_nearest():
    trials = [make_trial(0.01, 0.71), make_trial(0.07, 0.8), make_trial(0.4, 0.88)]
    (found,) = list_trade_offs(trials, ACCURACY, LIMITS)
    assert [offer.gained for offer in found.offers] == [
        "best_accuracy 80.0 %",
        "best_accuracy 88.0 %",
    ]
    assert found.sentence.endswith(
        "at 8 % it would be best_accuracy 80.0 %, and at 41 % it would be best_accuracy 88.0 %."
    )


def test_list_trade_offs_no_setting_keeps_the_limit_closest_named():
    (found,) = list_trade_offs([make_trial(0.4, 0.88), make_trial(0.9, 0.883)], ACCURACY, LIMITS)
    assert found.sentence == (
        f"No setting tried keeps {ASKED}; at 41 % it would be best_accuracy 88.0 %."
    )


def test_list_trade_offs_limits_broken_together_each_names_the_other():
    trial = make_trial(0.4, 0.88, more=[fail(GAMMA)])
    linkage, gamma = list_trade_offs([trial], ACCURACY, BOTH)
    assert linkage.sentence == (
        f"No setting tried keeps {ASKED}; at 41 % it would be best_accuracy 88.0 %, together with "
        "amplification.record at 404."
    )
    assert gamma.sentence == (
        "No setting tried keeps amplification.record at most 100; at 404 it would be best_accuracy "
        "88.0 %, together with record_linkage.rate at 41 %."
    )


def test_list_trade_offs_no_bound_waiver_named_for_every_broken_limit():
    trial = make_trial(0.99, 0.88, guarantee=replace(BOUND, kind="empirical"), more=[fail(GAMMA)])
    trial = replace(trial, setting=Setting("random_rotation"))
    linkage, gamma = list_trade_offs([trial], ACCURACY, BOTH)
    assert linkage.sentence == (
        f"No setting tried keeps {ASKED}; at 100 % it would be best_accuracy 88.0 %, together with "
        "amplification.record with a waiver for random_rotation (no bound)."
    )
    assert gamma.sentence == (
        "No setting tried keeps amplification.record at most 100; with a waiver for "
        "random_rotation (no bound) it would be best_accuracy 88.0 %, together with "
        "record_linkage.rate at 100 %."
    )


def test_list_trade_offs_none_passes_best_under_the_limit_alone():
    private = make_trial(0.0, 0.7, more=[fail(GAMMA)])
    useful = make_trial(0.4, 0.88, more=[fail(GAMMA)])
    linkage, _ = list_trade_offs([private, useful], ACCURACY, BOTH)
    assert linkage.is_alone
    assert linkage.sentence.startswith(
        f"With {ASKED} alone, the best tried is best_accuracy 70.0 %; at 41 % it would be "
    )


def test_list_trade_offs_check_without_a_limit_reason_given():
    trials = [make_trial(0.0, 0.88, more=[Finding("required.x", "FAIL", "It does not apply.")])]
    (found,) = list_trade_offs(trials, ACCURACY, LIMITS)
    assert found.sentence == "No setting tried passes required.x: It does not apply."
    trials = [make_trial(0.4, 0.88, more=[fail("required.x")])]
    found, _ = list_trade_offs(trials, ACCURACY, LIMITS)
    assert found.sentence.endswith("together with required.x, which it does not pass.")


def test_list_trade_offs_amplification_names_gamma():
    limits = {GAMMA: Limit(100.0, "a", "b")}
    (found,) = list_trade_offs([make_trial(0.0, 0.8, more=[fail(GAMMA)])], ACCURACY, limits)
    assert found.offers[0].needed == "at 404"  # exp(6) = 403.4


def test_list_trade_offs_limit_that_costs_nothing_not_named():
    assert list_trade_offs([make_trial(0.0, 0.8), make_trial(0.4, 0.7)], ACCURACY, LIMITS) == ()


def test_list_trade_offs_passed_in_an_earlier_round_alone_left_out():
    trials = [
        make_trial(0.0, 0.75),
        make_trial(0.01, 0.71, round=2),
        make_trial(0.07, 0.8, round=2),
    ]
    (found,) = list_trade_offs(trials, ACCURACY, LIMITS)
    assert found.utility == "best_accuracy 71.0 %"
    (found,) = list_trade_offs([trials[0], trials[2]], ACCURACY, LIMITS)
    assert found.sentence.startswith(f"No setting tried keeps {ASKED}; at 8 % ")


def test_list_trade_offs_limit_on_use_names_the_smaller_value():
    limit = Limit(0.3, "a", "b")
    score = make_accuracy(0.62)  # the lower end is 0.11 above the baseline
    trial = make_trial(0.0, 0.62, more=[judge(score, limit)])
    (found,) = list_trade_offs([trial], ACCURACY, {"best_accuracy": limit})
    assert found.sentence == (
        "No setting tried keeps best_accuracy at least 30 % above the baseline; at 11 % it would "
        "be best_accuracy 62.0 %."
    )


def test_list_trade_offs_weak_limit_no_other_value_invented():
    limit = Limit(0.9, "a", "b")  # allows more than needs no reviewer
    score = make_score(LINKAGE, 0.1)
    trial = replace(make_trial(0.1, 0.7), findings=(judge(score, limit),))
    (found,) = list_trade_offs([trial], ACCURACY, {LINKAGE: limit})
    assert found.sentence.startswith(f"No setting tried passes {LINKAGE}: ")


FIGURES = st.lists(st.tuples(st.floats(0, 1), st.floats(0.5, 0.9), st.booleans()), min_size=1)


@given(FIGURES)
def test_list_trade_offs_no_setting_passes_always_a_sentence(
    figures: list[tuple[float, float, bool]],
):
    trials = [
        make_trial(risk, use, more=[fail(GAMMA)] if is_unbound else [])
        for risk, use, is_unbound in figures
    ]
    if all(trial.outcome != "PASS" for trial in trials):
        assert list_trade_offs(trials, ACCURACY, BOTH)

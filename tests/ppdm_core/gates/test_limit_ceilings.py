"""Limits far above the baseline, which only a reviewer may let pass."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ppdm_core.gates import decide
from ppdm_core.metrics import METRICS
from tests.contract.gate_inputs import (
    BREACH,
    LINK,
    MEMBER,
    UTILITY,
    add_self_test,
    judge_score,
    make_good_input,
    make_limit,
    make_score,
)

CEILINGS = {
    "record_linkage.rate": 0.2,
    "record_linkage.partial.rate": 0.2,  # a scenario has the ceiling of its metric
    "transform_inverse.leaked.breach_rate": 0.2,
    "source_record.source_rate": 0.2,
    "source_record.source_posterior": 0.2,
    "membership.true_positive_rate": 0.2,
    "membership.auc": 0.1,
    "known_pairs.breach_rate": 0.2,
    "norm_bounds.norm_breach_rate": 0.2,
    "linkability.pair_rate": 0.2,
    "attribute_inference.inference_rate": 0.3,
    "singling_out.singling_rate": 0.3,
    "label.rate": 0.2,
    "copied_records": 0.2,
    "hidden_digits": 0.2,
    "repeated_noise": 0.2,
    "predictable_noise": 0.2,
    "recomputed_noise": 0.2,
}


@pytest.mark.parametrize("name", CEILINGS)
@pytest.mark.parametrize("absolute", [False, True])
def test_score_limits_limit_above_ceiling_review(name, absolute):
    """Nothing was found at all, and still nobody but a reviewer may pass it."""
    baseline, ceiling = 0.05, CEILINGS[name]
    one = make_score(name, baseline, baseline=baseline)
    start = baseline if absolute else 0.0
    assert judge_score(one, make_limit(start + ceiling, absolute=absolute)).outcome == "PASS"
    for value in (start + ceiling + 0.001, 0.9, 5.0, math.inf):
        finding = judge_score(one, make_limit(value, absolute=absolute))
        assert finding.outcome == "REVIEW"
        assert f"more than {ceiling:g} above the baseline (0.05)" in finding.why
        assert f"{value:.3g}" in finding.why and "DPO: for the test" in finding.why


def test_score_limits_absolute_limit_counts_over_the_baseline():
    found = make_score(LINK, 0.5, baseline=0.45)
    assert judge_score(found, make_limit(0.6, absolute=True)).outcome == "PASS"
    assert judge_score(found, make_limit(0.66, absolute=True)).outcome == "REVIEW"


@pytest.mark.parametrize(
    ("value", "band", "outcome"), [(0.9, 0.1, "PASS"), (0.9, 0.2, "PASS"), (0.9, 0.21, "REVIEW")]
)
def test_score_limits_review_band_counts_from_its_start(value, band, outcome):
    finding = judge_score(make_score(LINK, 0.02), make_limit(value, review=band))
    assert finding.outcome == outcome
    assert judge_score(make_score(LINK, 0.5), make_limit(value, review=0.1)).outcome == "REVIEW"


@pytest.mark.parametrize("name", ["shrinkage.interval_privacy", "known_pairs.relative_error"])
@pytest.mark.parametrize(("absolute", "kept", "weak"), [(False, 0.1, 0.11), (True, 0.4, 0.39)])
def test_score_limits_error_may_fall_by_a_fifth(name, absolute, kept, weak):
    one = replace(make_score(LINK, 0.5, baseline=0.5), name=name, better="up")
    assert judge_score(one, make_limit(kept, absolute=absolute)).outcome == "PASS"
    finding = judge_score(one, make_limit(weak, absolute=absolute))
    assert finding.outcome == "REVIEW"
    assert "more than 0.1 below the baseline (0.5)" in finding.why


def test_score_limits_weak_limit_that_is_broken_fails():
    assert judge_score(make_score(LINK, 0.95), make_limit(0.9)).outcome == "FAIL"


def test_score_limits_utility_limit_has_no_ceiling():
    assert judge_score(make_score(UTILITY, 0.9), make_limit(0.5, absolute=True)).outcome == "PASS"


def test_metrics_every_limit_on_privacy_has_a_tested_ceiling():
    named = {name.split(".")[-1] for name in CEILINGS} | {"interval_privacy", "relative_error"}
    assert named == {
        name for name, metric in METRICS.items() if metric.kind == "privacy" and metric.gateable
    }


def test_decide_limits_of_nine_tenths_review():
    gate_input = make_good_input()
    wide = {
        name: make_limit(0.9) if name in (LINK, BREACH, MEMBER) else limit
        for name, limit in gate_input.policy.limits.items()
    }
    gate_input = replace(gate_input, policy=replace(gate_input.policy, limits=wide))
    verdict = decide(add_self_test(gate_input), data_digest="d", code_version="c")
    assert verdict.outcome == "REVIEW"
    assert {finding.check for finding in verdict.failures} == {LINK, BREACH, MEMBER}

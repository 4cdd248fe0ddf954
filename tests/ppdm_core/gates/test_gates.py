from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ppdm_core.gates import GATES, decide
from ppdm_core.gates.required_audits import list_powerless_attacks
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding, Review, Verdict, worst
from tests.contract.gate_inputs import (
    BREACH,
    LINK,
    MEMBER,
    UTILITY,
    add_self_test,
    change_policy_check,
    change_report,
    judge_score,
    make_good_input,
    make_limit,
    make_score,
)

FINE = Finding("a", "PASS", "Fine.")
BAD = Finding("b", "FAIL", "Bad.")
OPEN = Finding("c", "REVIEW", "Who knows.")


@pytest.mark.parametrize(
    ("name", "value", "baseline", "line", "absolute", "outcome"),
    [
        (LINK, 0.30, 0.28, 0.05, False, "PASS"),  # 0.02 +- 0.01 above the baseline
        (LINK, 0.30, 0.28, 0.05, True, "FAIL"),
        (LINK, 0.30, 0.22, 0.05, False, "FAIL"),
        (LINK, 0.04, 0.00, 0.05, True, "PASS"),  # the upper end is on the limit
        (LINK, 0.0401, 0.00, 0.05, True, "REVIEW"),
        (LINK, 0.06, 0.00, 0.05, True, "REVIEW"),  # the lower end is on it
        (LINK, 0.0601, 0.00, 0.05, True, "FAIL"),
        (LINK, 0.02, 0.00, math.nan, True, "FAIL"),  # a limit that is NaN keeps nothing
        (UTILITY, 0.80, 0.62, 0.15, False, "PASS"),  # 0.18 +- 0.01 above always guessing
        (UTILITY, 0.80, 0.66, 0.15, False, "REVIEW"),  # 0.14 +- 0.01: 0.15 is within
        (UTILITY, 0.80, 0.67, 0.15, False, "FAIL"),
        (UTILITY, 0.80, 0.62, 0.75, True, "PASS"),
        (UTILITY, 0.7401, 0.00, 0.75, True, "REVIEW"),
        (UTILITY, 0.73, 0.00, 0.75, True, "FAIL"),
    ],
)
def test_score_limits_excess_or_absolute(name, value, baseline, line, absolute, outcome):
    one = make_score(name, value, baseline=baseline)
    assert judge_score(one, make_limit(line, absolute=absolute)).outcome == outcome


def test_score_limits_limit_inside_interval_review():
    unsure = judge_score(make_score(LINK, 0.05, 0.02), make_limit(0.05))
    broken = judge_score(make_score(LINK, 0.50, 0.02), make_limit(0.05))
    assert (unsure.outcome, broken.outcome) == ("REVIEW", "FAIL")
    assert "500 records measured are too few to tell" in unsure.why
    assert "are needed" not in unsure.why
    assert "too few" not in broken.why
    assert "DPO: for the test" in broken.why


def test_score_limits_interval_wider_than_limit_says_how_many_records():
    found = judge_score(make_score(LINK, 0.03, 0.10), make_limit(0.05))
    assert found.outcome == "REVIEW"
    assert "about 2,000 are needed" in found.why  # 500 x (0.10 / 0.05)^2


@pytest.mark.parametrize(
    ("name", "value", "line", "band", "outcome"),
    [
        (LINK, 0.04, 0.10, 0.05, "PASS"),  # the upper end is where the review band begins
        (LINK, 0.041, 0.10, 0.05, "REVIEW"),
        (LINK, 0.07, 0.10, 0.05, "REVIEW"),
        (LINK, 0.10, 0.10, 0.05, "REVIEW"),
        (LINK, 0.12, 0.10, 0.05, "FAIL"),
        (LINK, 0.02, 0.10, math.nan, "REVIEW"),  # a limit that is NaN keeps nothing
        (UTILITY, 0.95, 0.75, 0.90, "PASS"),
        (UTILITY, 0.80, 0.75, 0.90, "REVIEW"),
        (UTILITY, 0.70, 0.75, 0.90, "FAIL"),
    ],
)
def test_score_limits_review_band(name, value, line, band, outcome):
    finding = judge_score(make_score(name, value), make_limit(line, absolute=True, review=band))
    assert finding.outcome == outcome
    if value in (0.07, 0.80):
        assert "on a reviewer decides" in finding.why and "too few" not in finding.why


@pytest.mark.parametrize(
    ("gamma", "outcome"), [(499.0, "PASS"), (501.0, "REVIEW"), (999.0, "REVIEW"), (1001.0, "FAIL")]
)
def test_amplification_review_band(gamma, outcome):
    gate_input = make_good_input()
    limits = {"amplification.record": make_limit(1000.0, review=500.0)}
    gate_input = replace(
        gate_input,
        guarantee=Guarantee("bounded", 0.1, 0.1, math.log(gamma)),
        policy=replace(gate_input.policy, limits=limits),
    )
    (finding,) = GATES["amplification"].check(gate_input)
    assert finding.outcome == outcome
    assert ("A reviewer decides from 500 on." in finding.why) == (outcome == "REVIEW")


@pytest.mark.parametrize(
    ("kind", "ln_record", "value", "waive", "outcome"),
    [
        ("bounded", math.log(1000.0), 1000.0, (), "PASS"),
        ("bounded", math.log(1000.1), 1000.0, (), "FAIL"),
        ("bounded_given_basis", math.log(999.0), 1000.0, (), "PASS"),
        ("bounded", 800.0, 1e300, (), "FAIL"),
        ("bounded", 1.0, 0.0, (), "FAIL"),
        ("empirical", math.inf, math.inf, (), "FAIL"),
        ("empirical", math.inf, 1000.0, ("pca_laplace",), "PASS"),
        ("empirical", math.inf, 1000.0, ("random_rotation",), "FAIL"),
        ("bounded", math.log(2000.0), 1000.0, ("pca_laplace",), "FAIL"),
    ],
)
def test_amplification_gamma_judged_by_limit_and_waiver(kind, ln_record, value, waive, outcome):
    gate_input = make_good_input()
    limits = {"amplification.record": make_limit(value, waive=waive)}
    gate_input = replace(
        gate_input,
        guarantee=Guarantee(kind, 0.1, 0.1, ln_record),
        policy=replace(gate_input.policy, limits=limits),
    )
    (finding,) = GATES["amplification"].check(gate_input)
    assert finding.outcome == outcome


def test_amplification_limit_judges_its_unit():
    gate_input = replace(make_good_input(), guarantee=Guarantee("bounded", 1.0, 2.0, 3.0))
    outcomes = {}
    for unit in ("component", "attribute", "record"):
        limits = {f"amplification.{unit}": make_limit(math.exp(2.5))}
        judge = replace(gate_input, policy=replace(gate_input.policy, limits=limits))
        (finding,) = GATES["amplification"].check(judge)
        outcomes[unit] = finding.outcome
    assert outcomes == {"component": "PASS", "attribute": "PASS", "record": "FAIL"}


def test_worst_no_findings_fail():
    assert worst((FINE, FINE)) == "PASS"
    assert worst((FINE, OPEN, FINE)) == "REVIEW"
    assert worst((FINE, OPEN, BAD)) == "FAIL"
    assert worst(()) == "FAIL"


def test_decide_verdict_digests_and_round_trip():
    gate_input = make_good_input()
    verdict = decide(gate_input, data_digest="data", code_version="c")
    assert verdict.policy_digest == gate_input.policy.digest
    assert (verdict.data_digest, verdict.code_version) == ("data", "c")
    assert Verdict.from_dict(verdict.as_dict()) == verdict
    assert verdict.failures == ()
    refused = decide(change_report(scores=()), data_digest="data", code_version="1")
    assert refused.outcome == "FAIL"
    mixed = Verdict("FAIL", (OPEN, FINE, BAD), "p", "d", "c")
    assert mixed.failures == (BAD, OPEN)  # the worst first
    assert {finding.check for finding in refused.failures} >= {
        "required.known_pairs",
        "covered.linkage",
        "covered.label",
        BREACH,
    }


def test_policy_digest_any_change_differs():
    policy = make_good_input().policy
    others = [
        replace(policy, required=("known_pairs",)),
        replace(policy, limits={**policy.limits, LINK: make_limit(0.2)}),
        replace(policy, limits={**policy.limits, LINK: make_limit(0.1, absolute=True)}),
        replace(policy, limits={**policy.limits, LINK: make_limit(0.1, review=0.05)}),
        replace(policy, review=Review(approvals=2)),
        replace(policy, review=Review(lapses_after=60.0)),
        replace(policy, attacker=replace(policy.attacker, known_records=1)),
        replace(policy, shadow_draws=4),
        replace(policy, level=0.9),
        replace(policy, time_limit=1.0),
    ]
    assert len({policy.digest, *(other.digest for other in others)}) == len(others) + 1
    assert policy.digest == make_good_input().policy.digest


def checks(gate_input) -> dict[str, str]:
    findings = decide(gate_input, data_digest="d", code_version="c").findings
    return {finding.check: finding.outcome for finding in findings}


COVERED = [(LINK, "linkage"), (BREACH, "reconstruction"), (MEMBER, "membership")]


@pytest.mark.parametrize(("name", "word"), COVERED)
def test_required_audits_attack_without_limit_fails(name, word):
    gate_input = make_good_input()
    limits = {key: value for key, value in gate_input.policy.limits.items() if key != name}
    without = replace(gate_input, policy=replace(gate_input.policy, limits=limits))
    assert checks(gate_input)[f"covered.{word}"] == "PASS"
    assert checks(without)[f"covered.{word}"] == "FAIL"


def test_required_audits_scenario_is_no_substitute():
    name = "record_linkage.partial.rate"
    gate_input = make_good_input()
    scores = tuple(replace(s, name=name) if s.name == LINK else s for s in gate_input.report.scores)
    limits = {
        name if key == LINK else key: limit for key, limit in gate_input.policy.limits.items()
    }
    changed = replace(
        gate_input,
        report=replace(gate_input.report, scores=scores),
        policy=replace(gate_input.policy, limits=limits),
    )
    found = checks(changed)
    assert (found["required.record_linkage"], found["covered.linkage"]) == ("FAIL", "FAIL")


def test_required_audits_powerless_limit_review():
    found = checks(change_policy_check(powerless={"record_linkage": "It keeps its limit."}))
    assert (found["covered.linkage"], found["covered.membership"]) == ("REVIEW", "PASS")


def without_membership(**report):
    gate_input = make_good_input()
    scores = tuple(s for s in gate_input.report.scores if s.name != MEMBER)
    limits = {key: value for key, value in gate_input.policy.limits.items() if key != MEMBER}
    changed = replace(
        gate_input,
        report=replace(gate_input.report, scores=scores, **report),
        policy=replace(gate_input.policy, limits=limits),
    )
    return add_self_test(changed)


def test_required_audits_kind_not_applicable_review():
    names = ("membership", "kernel_support")
    skipped = {name: Skip(Reason.NO_NUMERIC_COLUMN, f"{name} has no number.") for name in names}
    verdict = decide(without_membership(skipped=skipped), data_digest="d", code_version="c")
    (finding,) = verdict.failures
    assert (verdict.outcome, finding.check) == ("REVIEW", "covered.membership")
    assert all(skip.sentence in finding.why for skip in skipped.values())


def test_required_audits_kind_not_run_fails():
    skipped = {"kernel_support": Skip(Reason.METHOD_UNKNOWN)}
    not_run = {"membership": Skip(Reason.NOT_REQUESTED)}
    one = without_membership(skipped=skipped, not_run=not_run)
    verdict = decide(one, data_digest="d", code_version="c")
    (finding,) = verdict.failures
    assert (verdict.outcome, finding.check) == ("FAIL", "covered.membership")
    assert "Set one on a score of membership, or" in finding.why
    assert 'effort = "standard"' in finding.why


def test_required_audits_failed_optional_audit_fails():
    gate_input = make_good_input()
    report = replace(gate_input.report, failed={"distance_loss": "MemoryError"})
    assert checks(replace(gate_input, report=report))["failed.distance_loss"] == "FAIL"


def test_amplification_no_bound_no_limit_fails():
    gate_input = make_good_input()
    limits = {
        k: v for k, v in gate_input.policy.limits.items() if not k.startswith("amplification")
    }
    none = Guarantee("empirical", math.inf, math.inf, math.inf)
    without = replace(gate_input, policy=replace(gate_input.policy, limits=limits), guarantee=none)
    assert checks(without)["amplification.record"] == "FAIL"


@pytest.mark.parametrize(
    ("waive", "outcome"),
    [
        (("pipeline",), "FAIL"),
        (("randomized_response",), "FAIL"),
        (("pipeline", "dct_fuzzy"), "FAIL"),
        (("random_rotation",), "PASS"),
    ],
)
def test_amplification_pipeline_waiver_names_inner_method(waive, outcome):
    inside = Guarantee("empirical", *[math.inf] * 3, without_bound=("random_rotation",))
    limits = {"amplification.record": make_limit(1000.0, waive=waive)}
    policy = replace(make_good_input().policy, limits=limits)
    gate_input = replace(make_good_input(), method="pipeline", guarantee=inside, policy=policy)
    (finding,) = GATES["amplification"].check(gate_input)
    assert finding.outcome == outcome
    assert finding.why.startswith("random_rotation has no worst-case bound")


def test_amplification_waiver_of_one_of_two_methods_fails():
    names = ("random_rotation", "dct_fuzzy")
    guarantee = Guarantee("empirical", *[math.inf] * 3, without_bound=names)
    outcomes = []
    for waive in (names[:1], names):
        limits = {"amplification.record": make_limit(1000.0, waive=waive)}
        policy = replace(make_good_input().policy, limits=limits)
        gate_input = replace(make_good_input(), guarantee=guarantee, policy=policy)
        outcomes += [finding.outcome for finding in GATES["amplification"].check(gate_input)]
    assert outcomes == ["FAIL", "PASS"]


def test_score_limits_unbreakable_limit_review():
    certain = replace(make_score(BREACH, 1.0), low=0.99, high=1.0, baseline=1.0)
    finding = judge_score(certain, make_limit(0.1))
    assert finding.outcome == "REVIEW"
    assert "cannot be broken" in finding.why
    assert (
        "cannot be broken" not in judge_score(certain, make_limit(1.0)).why
    )  # it is weak first of all


def test_score_limits_value_follows_from_the_population_pass_without_coverage():
    name = "attribute_inference.inference_rate"
    known = replace(make_score(BREACH, 0.99), name=name, low=0.9, high=1.2, baseline=0.95)
    assert judge_score(known, make_limit(0.1)).outcome == "PASS"
    assert judge_score(replace(known, baseline=0.85), make_limit(0.1)).outcome == "REVIEW"
    policy = replace(make_good_input().policy, limits={name: make_limit(0.1)})
    for baseline, powerless in ((0.95, {"attribute_inference"}), (0.85, set())):
        report = AuditReport((replace(known, baseline=baseline),))
        assert list_powerless_attacks(report, policy) == powerless


@pytest.mark.parametrize(("value", "outcome"), [(0.50, "PASS"), (0.46, "PASS"), (0.30, "FAIL")])
def test_score_limits_privacy_shortfall_below_baseline(value, outcome):
    one = replace(
        make_score(BREACH, value, baseline=0.51), name="shrinkage.interval_privacy", better="up"
    )
    assert judge_score(one, make_limit(0.1)).outcome == outcome


def test_policy_unlimited_names_what_no_limit_judges():
    policy = make_good_input().policy
    assert policy.unlimited == ()
    assert replace(policy, limits={}).unlimited == ("amplification", "ledger")
    draws = {"ledger.draws": make_limit(3)}
    assert replace(policy, limits=draws).unlimited == ("amplification",)

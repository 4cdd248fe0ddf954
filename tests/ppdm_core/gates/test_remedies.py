"""Every refusal says what would change it, with measured figures."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ppdm_core.gates import decide
from ppdm_core.gates.score_limits import judge
from ppdm_core.gates.self_test import SelfTest
from ppdm_core.model.advice import Advice
from ppdm_core.model.release import Guarantee
from ppdm_core.model.self_test import ReleaseTest
from ppdm_core.model.verdict import Finding
from ppdm_core.sanitizers import SANITIZERS, make_sanitizer
from tests.contract.gate_inputs import (
    LABEL,
    LINK,
    UTILITY,
    change_policy_check,
    make_good_input,
    make_limit,
    make_score,
)

ADVICE = Advice(("raise 'b' (now 0.3)",), ("lower 'b' (now 0.3)",))


def test_score_limits_broken_limit_says_needed_observed_and_direction():
    finding = judge(make_score(LINK, 0.061, baseline=0.01), make_limit(0.02), ADVICE)
    assert finding.outcome == "FAIL"
    assert finding.remedy == (
        "For a PASS, the upper end of the interval must be at most 0.03; it is 0.071. "
        "What helps: raise 'b' (now 0.3), or release fewer columns."
    )
    assert finding.text == f"{finding.why} {finding.remedy}"


def test_score_limits_broken_utility_limit_advises_less_noise():
    finding = judge(make_score(UTILITY, 0.7), make_limit(0.8, absolute=True), ADVICE)
    assert "lower end of the interval must be at least 0.8; it is 0.69." in finding.remedy
    assert "What helps: lower 'b' (now 0.3), or release more records." in finding.remedy


def test_score_limits_too_few_records_says_how_many():
    """0.04 +- 0.02 under a limit of 0.05: half the width needs four times 500 records."""
    finding = judge(make_score(LINK, 0.04, 0.02), make_limit(0.05), ADVICE)
    assert finding.outcome == "REVIEW"
    assert "release more records (about 2,000 with this value)" in finding.remedy


def test_score_limits_that_many_records_would_pass():
    """The number of records is the one with which the same value passes."""
    score, limit = make_score(LINK, 0.04, 0.02), make_limit(0.05)
    narrower = replace(score, low=0.03, high=0.05, n=2000)
    assert judge(narrower, limit).outcome == "PASS"


def test_score_limits_label_advice_is_about_its_classes():
    finding = judge(make_score(LABEL, 0.2, 0.0), make_limit(0.05), ADVICE)
    assert "merge classes of the label" in finding.remedy and "'b'" not in finding.remedy


def test_score_limits_passed_score_has_no_remedy():
    assert judge(make_score(LINK, 0.01), make_limit(0.05), ADVICE).remedy == ""


def find_finding(check: str, **changes: object) -> Finding:
    given = replace(make_good_input(), advice=ADVICE, **changes)  # type: ignore[arg-type]
    verdict = decide(given, data_digest="d", code_version="c")
    return next(each for each in verdict.findings if each.check == check)


def test_amplification_broken_limit_says_needed_and_direction():
    finding = find_finding("amplification.record", guarantee=Guarantee("bounded", 1, 2, 9.0, ()))
    assert finding.remedy == (
        "For a PASS, gamma must be at most 30. What helps: raise 'b' (now 0.3), or release fewer "
        "columns."
    )


def test_ledger_broken_limit_says_what_the_release_may_ask_for():
    good = make_good_input()
    assert good.balance is not None
    over = replace(good.balance, asked=5.0, after=11.0, over=3)
    finding = find_finding("ledger.record", balance=over)
    assert f"may ask for at most {math.exp(4.0):,.0f}" in finding.remedy.replace(".0", "")
    assert "raise 'b'" in finding.remedy and "raise the limit" in finding.remedy


def test_required_audits_failed_audit_names_the_time_limit():
    report = replace(make_good_input().report, failed={"known_pairs": "TimeLimit"})
    finding = find_finding("required.known_pairs", report=report)
    assert "raise 'time_limit' in [audit], now 600 s" in finding.remedy


def test_self_test_bad_release_passes_says_figure_limit_and_direction():
    bad = ReleaseTest("identity", (), {LINK: 0.061}, {LINK: 0.02})
    finding = list(SelfTest().check(replace(change_policy_check(bad=(bad,)), advice=ADVICE)))[-1]
    assert f"{LINK} of that bad release is 0.061; a limit of 0.02 would refuse it." in finding.why
    assert "raise 'b' (now 0.3)" in finding.remedy


def test_self_test_no_limit_refuses_says_what_was_measured():
    bad = ReleaseTest("identity", (), {LINK: 0.004})
    finding = list(SelfTest().check(change_policy_check(bad=(bad,))))[-1]
    assert f"No limit on these attacks can (measured of it: {LINK} 0.004)." in finding.why
    assert "let the attacker know more" in finding.why


@pytest.mark.parametrize("key", SANITIZERS)
def test_advise_example_parameters_named_with_their_value(key: str):
    method = make_sanitizer(key, SANITIZERS[key].example)
    advice = method.advise()
    assert len(advice.more_private) == len(advice.more_useful)
    for more, less in zip(advice.more_private, advice.more_useful, strict=True):
        assert {more.split(" ")[0], less.split(" ")[0]} == {"raise", "lower"}
        assert "(now " in more


def test_advise_pipeline_names_both_parts():
    advice = make_sanitizer("pipeline", SANITIZERS["pipeline"].example).advise()
    assert advice.more_private == (
        "raise 'b' (now 0.3) of numeric",
        "lower 'components' (now 2) of numeric",
        "lower 'gamma' (now attribute = 3) of categorical",
    )

"""A gate input that passes, and every way to break it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ppdm_core.audit.self_test.matrix import LEAK_SCAN, find_leaks, list_relied_on
from ppdm_core.gates import GATES, GateInput
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.self_test import NOISE, LeakTest, PolicyCheck, ReleaseTest, SelfTestResult
from ppdm_core.model.verdict import Finding

NAN, INF = math.nan, math.inf
BREACH, LINK, UTILITY = "known_pairs.breach_rate", "record_linkage.rate", "knn_accuracy"
MEMBER, LABEL = "membership.true_positive_rate", "label.rate"
OTHER = "shrinkage.relative_error"  # measured, without a limit


def make_score(name: str, value: float, width: float = 0.01, **changed: Any) -> Score:
    score = Score(
        name=name,
        kind="utility" if name == UTILITY else "privacy",
        better="up" if name in (UTILITY, OTHER) else "down",
        value=value,
        low=value - width,
        high=value + width,
        n=500,
        baseline=0.0,
        worst=value,
        sentence="Measured.",
    )
    return replace(score, **changed)


def make_limit(value: float, **changed: Any) -> Limit:
    return Limit(value, set_by="DPO", reason="for the test", **changed)


ACCOUNT = LedgerBalance(spent=6.0, asked=3.0, after=9.0, records=500, draws_spent=1, draws_after=2)


def add_self_test(gate_input: GateInput) -> GateInput:
    """Return the same with a self-test in which everything was noticed."""
    names = list_relied_on(gate_input.policy)
    found = [LeakTest(name, leak, 20, 20) for name in names for leak in find_leaks(name)]
    found += [LeakTest(name, NOISE, 0, 20) for name in names]
    bad = (
        ReleaseTest("identity", ("known_pairs",)),
        ReleaseTest("slight noise", ("record_linkage",)),
    )
    result = SelfTestResult(
        code_version="c",
        policy_digest=gate_input.policy.digest,
        leak_tests=tuple(found),
        policy_check=PolicyCheck(500, bad, ReleaseTest(NOISE, ())),
    )
    report = replace(gate_input.report, self_test=result)
    return replace(gate_input, report=report, code_version="c")


def make_good_input() -> GateInput:
    return add_self_test(make_untested_input())


def make_untested_input() -> GateInput:
    return GateInput(
        report=AuditReport(
            scores=(
                make_score(BREACH, 0.02),
                make_score(LINK, 0.02),
                make_score(MEMBER, 0.02),
                make_score(UTILITY, 0.9),
                make_score(OTHER, 0.5),
                make_score(LABEL, 0.004, 0.0, baseline=0.002),
            )
        ),
        guarantee=Guarantee("bounded", 1.0, 2.0, 3.0, ("One release.",)),
        method="pca_laplace",
        owner="registry",
        audience="partners",
        policy=Policy(
            required=("known_pairs", "record_linkage"),
            limits={
                "amplification.record": make_limit(30.0),
                BREACH: make_limit(0.1),
                LINK: make_limit(0.1),
                MEMBER: make_limit(0.1),
                LABEL: make_limit(0.05),
                UTILITY: make_limit(0.8, absolute=True),
                "ledger.record": make_limit(math.exp(10.0)),
                "ledger.draws": make_limit(3),
            },
        ),
        balance=ACCOUNT,
    )


def judge_score(one: Score, line: Limit) -> Finding:
    """Return the finding of the gate for this score and this limit alone."""
    gate_input = make_good_input()
    gate_input = replace(
        gate_input,
        report=replace(gate_input.report, scores=(one,)),
        policy=replace(gate_input.policy, limits={one.name: line}),
    )
    (finding,) = GATES["score_limits"].check(gate_input)
    return finding


def change_score(name: str, **changed: Any) -> GateInput:
    scores = tuple(
        replace(s, **changed) if s.name == name else s for s in make_good_input().report.scores
    )
    return change_report(scores=scores)


def change_report(**changed: Any) -> GateInput:
    gate_input = make_good_input()
    return replace(gate_input, report=replace(gate_input.report, **changed))


def add_limit(name: str, value: float) -> GateInput:
    gate_input = make_good_input()
    limits = {**gate_input.policy.limits, name: make_limit(value)}
    return replace(gate_input, policy=replace(gate_input.policy, limits=limits))


def set_all_limits(value: float) -> GateInput:
    gate_input = make_good_input()
    limits = {name: replace(old, value=value) for name, old in gate_input.policy.limits.items()}
    return replace(gate_input, policy=replace(gate_input.policy, limits=limits))


def drop_limit(name: str) -> GateInput:
    gate_input = make_good_input()
    limits = {key: limit for key, limit in gate_input.policy.limits.items() if key != name}
    return replace(gate_input, policy=replace(gate_input.policy, limits=limits))


def keep_scores(*names: str) -> GateInput:
    gate_input = change_report(
        scores=tuple(s for s in make_good_input().report.scores if s.name in names)
    )
    return replace(gate_input, policy=replace(gate_input.policy, required=()))


def change_guarantee(kind: str, ln_record: float) -> GateInput:
    return replace(make_good_input(), guarantee=Guarantee(kind, 1.0, 2.0, ln_record))  # type: ignore[arg-type]


def change_account(**changed: Any) -> GateInput:
    return replace(make_good_input(), balance=replace(ACCOUNT, **changed))


def change_self_test(**changed: Any) -> GateInput:
    result = make_good_input().report.self_test
    assert result is not None
    return change_report(self_test=replace(result, **changed))


def replace_leak_tests(attack: str, leak: str, *changed: LeakTest) -> GateInput:
    """Return the good input with these in place of one leak test."""
    result = make_good_input().report.self_test
    assert result is not None
    rest = [each for each in result.leak_tests if (each.attack, each.leak) != (attack, leak)]
    return change_self_test(leak_tests=(*rest, *changed))


def change_policy_check(**changed: Any) -> GateInput:
    result = make_good_input().report.self_test
    assert result is not None
    assert result.policy_check is not None
    return change_self_test(policy_check=replace(result.policy_check, **changed))


def forget_who_set_limits() -> GateInput:
    """Return an input whose self-test is of the same policy, without the names."""
    gate_input = make_untested_input()
    limits = {name: replace(one, set_by="") for name, one in gate_input.policy.limits.items()}
    policy = replace(gate_input.policy, limits=limits)
    return add_self_test(replace(gate_input, policy=policy))


BROKEN_INPUTS: dict[str, GateInput] = {
    "no owner": replace(make_good_input(), owner=" "),
    "audience to be decided": replace(make_good_input(), audience="To be decided"),
    "limit set by no person": forget_who_set_limits(),
    "no self-test": change_report(self_test=None),
    "self-test of other code": change_self_test(code_version="d"),
    "self-test of no code": replace(change_self_test(code_version=""), code_version=""),
    "self-test of another policy": change_self_test(policy_digest="0"),
    "self-test without a leak test": change_self_test(leak_tests=()),
    "a leak that was not tried": replace_leak_tests("known_pairs", "rotation"),
    "a leak that was not noticed": replace_leak_tests(
        "known_pairs", "rotation", LeakTest("known_pairs", "rotation", 16, 20)
    ),
    "a leak noticed more often than tried": replace_leak_tests(
        "known_pairs", "rotation", LeakTest("known_pairs", "rotation", 25, 20)
    ),
    "a leak noticed in few trials": replace_leak_tests(
        "known_pairs", "rotation", LeakTest("known_pairs", "rotation", 17, 17)
    ),
    "a leak tested twice": replace_leak_tests(
        "known_pairs", "rotation", *[LeakTest("known_pairs", "rotation", 20, 20)] * 2
    ),
    "noise taken for a leak": replace_leak_tests(
        "record_linkage", NOISE, LeakTest("record_linkage", NOISE, 4, 20)
    ),
    "no noise was tried": replace_leak_tests("record_linkage", NOISE),
    "an attack failed on a leak": change_self_test(failed={"record_linkage": "ValueError"}),
    "the leak scan sees nothing": replace_leak_tests(
        LEAK_SCAN, "verbatim rows", LeakTest(LEAK_SCAN, "verbatim rows", 0, 20)
    ),
    "policy not checked": change_self_test(policy_check=None, failed={"coverage": "TimeLimit"}),
    "policy checked on no release": change_policy_check(bad=()),
    "policy checked on no record": change_policy_check(records=0),
    "policy lets a copy pass": change_policy_check(bad=(ReleaseTest("identity", ()),)),
    "policy refuses noise": change_policy_check(noise=ReleaseTest(NOISE, ("record_linkage",))),
    "empty report": change_report(scores=()),
    "required audit failed": change_report(failed={"known_pairs": "ValueError"}),
    "required audit skipped": change_report(
        skipped={"known_pairs": Skip(Reason.MISSING_KNOWLEDGE, "It has no pairs.")}
    ),
    "required audit missing": change_report(scores=make_good_input().report.scores[1:]),
    "no linkage attack": keep_scores(BREACH, MEMBER, UTILITY, OTHER, LABEL),
    "no reconstruction attack": keep_scores(LINK, MEMBER, UTILITY, LABEL),
    "no membership attack": keep_scores(BREACH, LINK, UTILITY, LABEL),
    "label not measured": keep_scores(BREACH, LINK, MEMBER, UTILITY, OTHER),
    "label skipped for another reason": change_report(
        scores=make_good_input().report.scores[:-1],
        skipped={"label": Skip(Reason.NOT_MEASURABLE)},
    ),
    "label without a limit": drop_limit(LABEL),
    "label over its limit": change_score(LABEL, value=0.06, low=0.06, high=0.06),
    "label identifies persons": replace(
        change_score(LABEL, value=0.5, low=0.5, high=0.5), policy=add_limit(LABEL, 0.6).policy
    ),
    "limit far above the baseline": add_self_test(add_limit(LINK, 0.21)),
    "no bound": change_guarantee("empirical", INF),
    "gamma is NaN": change_guarantee("bounded", NAN),
    "gamma too large": change_guarantee("bounded", math.log(30.0) + 1e-6),
    "unknown unit": add_limit("amplification.family", 1e9),
    "limit is NaN": set_all_limits(NAN),
    "value is NaN": change_score(BREACH, value=NAN),
    "low is NaN": change_score(BREACH, low=NAN),
    "high is infinite": change_score(UTILITY, high=INF),
    "baseline is NaN": change_score(LINK, baseline=NAN),
    "worst draw is NaN": change_score(LINK, worst=NAN),
    "interval upside down": change_score(LINK, low=0.03, high=0.01),
    "value outside its interval": change_score(LINK, value=0.2),
    "no records": change_score(LINK, n=0),
    "an unlimited score is NaN": change_score(OTHER, value=NAN),
    "limited score missing": change_report(scores=make_good_input().report.scores[:3]),
    "over the limit": change_score(LINK, value=0.3, low=0.2, high=0.4, worst=0.3),
    "utility below the limit": change_score(UTILITY, value=0.5, low=0.4, high=0.6, worst=0.5),
    "too few records to tell": change_score(LINK, low=0.0, high=0.2),
    "the ledger was not read": replace(make_good_input(), balance=None),
    "the account is NaN": change_account(spent=NAN),
    "the account shrinks": change_account(after=5.0),
    "the account is spent": change_account(asked=5.0, after=10.1),
    "the account has no bound": change_account(
        asked=INF, after=INF, unbounded=("random_rotation",)
    ),
    "too many draws": change_account(draws_after=4),
    "unknown account": add_limit("ledger.family", 1e9),
    "measured twice, once over the limit": change_report(
        scores=(make_score(LINK, 0.3), *make_good_input().report.scores)
    ),
}
# Of those, what a reviewer decides; all others fail.
REVIEWED_INPUTS = {
    "too few records to tell",
    "limit far above the baseline",
    "no owner",
    "audience to be decided",
    "limit set by no person",
}

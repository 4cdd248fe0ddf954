"""Evidence that a gate may pass, and every way to break it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ppdm_core.audit.self_test.matrix import LEAK_SCAN, find_leaks, list_relied_on
from ppdm_core.gates import GateInput
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.self_test import NOISE, LeakTest, PolicyCheck, ReleaseTest, SelfTestResult

NAN, INF = math.nan, math.inf
BREACH, LINK, USE = "known_pairs.breach_rate", "record_linkage.rate", "knn_accuracy"
MEMBER = "membership.true_positive_rate"
OTHER = "shrinkage.relative_error"  # measured, without a limit


def score(name: str, value: float, width: float = 0.01, **changed: Any) -> Score:
    score = Score(
        name=name,
        kind="utility" if name == USE else "privacy",
        better="up" if name in (USE, OTHER) else "down",
        value=value,
        low=value - width,
        high=value + width,
        n=500,
        baseline=0.0,
        worst=value,
        sentence="Measured.",
    )
    return replace(score, **changed)


def limit(value: float, **changed: Any) -> Limit:
    return Limit(value, set_by="DPO", reason="for the test", **changed)


ACCOUNT = LedgerBalance(spent=6.0, asked=3.0, after=9.0, records=500, draws_spent=1, draws_after=2)


def with_proofs(evidence: GateInput) -> GateInput:
    """The same with a self-test that could not be better."""
    names = list_relied_on(evidence.policy)
    found = [LeakTest(name, leak, 20, 20) for name in names for leak in find_leaks(name)]
    found += [LeakTest(name, NOISE, 0, 20) for name in names]
    bad = (
        ReleaseTest("identity", ("known_pairs",)),
        ReleaseTest("slight noise", ("record_linkage",)),
    )
    result = SelfTestResult(
        code_version="c",
        policy_digest=evidence.policy.digest,
        leak_tests=tuple(found),
        policy_check=PolicyCheck(500, bad, ReleaseTest(NOISE, ())),
    )
    report = replace(evidence.report, self_test=result)
    return replace(evidence, report=report, code_version="c")


def good() -> GateInput:
    return with_proofs(untested())


def untested() -> GateInput:
    return GateInput(
        report=AuditReport(
            scores=(
                score(BREACH, 0.02),
                score(LINK, 0.02),
                score(MEMBER, 0.02),
                score(USE, 0.9),
                score(OTHER, 0.5),
            )
        ),
        guarantee=Guarantee("bounded", 1.0, 2.0, 3.0, ("One release.",)),
        method="pca_laplace",
        policy=Policy(
            required=("known_pairs", "record_linkage"),
            limits={
                "amplification.record": limit(30.0),
                BREACH: limit(0.1),
                LINK: limit(0.1),
                MEMBER: limit(0.1),
                USE: limit(0.8, absolute=True),
                "ledger.record": limit(math.exp(10.0)),
                "ledger.draws": limit(3),
            },
        ),
        account=ACCOUNT,
    )


def with_score(name: str, **changed: Any) -> GateInput:
    scores = tuple(replace(s, **changed) if s.name == name else s for s in good().report.scores)
    return with_report(scores=scores)


def with_report(**changed: Any) -> GateInput:
    evidence = good()
    return replace(evidence, report=replace(evidence.report, **changed))


def with_limit(name: str, value: float) -> GateInput:
    evidence = good()
    limits = {**evidence.policy.limits, name: limit(value)}
    return replace(evidence, policy=replace(evidence.policy, limits=limits))


def with_limits(value: float) -> GateInput:
    evidence = good()
    limits = {name: replace(old, value=value) for name, old in evidence.policy.limits.items()}
    return replace(evidence, policy=replace(evidence.policy, limits=limits))


def only(*names: str) -> GateInput:
    evidence = with_report(scores=tuple(s for s in good().report.scores if s.name in names))
    return replace(evidence, policy=replace(evidence.policy, required=()))


def with_promise(kind: str, ln_record: float) -> GateInput:
    return replace(good(), guarantee=Guarantee(kind, 1.0, 2.0, ln_record))  # type: ignore[arg-type]


def with_account(**changed: Any) -> GateInput:
    return replace(good(), account=replace(ACCOUNT, **changed))


def with_self_test(**changed: Any) -> GateInput:
    result = good().report.self_test
    assert result is not None
    return with_report(self_test=replace(result, **changed))


def with_proof(attack: str, leak: str, *changed: LeakTest) -> GateInput:
    """With these in place of the one proof."""
    result = good().report.self_test
    assert result is not None
    rest = [each for each in result.leak_tests if (each.attack, each.leak) != (attack, leak)]
    return with_self_test(leak_tests=(*rest, *changed))


def with_policy_check(**changed: Any) -> GateInput:
    result = good().report.self_test
    assert result is not None
    assert result.policy_check is not None
    return with_self_test(policy_check=replace(result.policy_check, **changed))


BROKEN: dict[str, GateInput] = {
    "no self-test": with_report(self_test=None),
    "self-test of other code": with_self_test(code_version="d"),
    "self-test of no code": replace(with_self_test(code_version=""), code_version=""),
    "self-test of another policy": with_self_test(policy_digest="0"),
    "self-test without a proof": with_self_test(leak_tests=()),
    "a leak that was not planted": with_proof("known_pairs", "rotation"),
    "a leak that was not noticed": with_proof(
        "known_pairs", "rotation", LeakTest("known_pairs", "rotation", 16, 20)
    ),
    "a leak noticed more than ever tried": with_proof(
        "known_pairs", "rotation", LeakTest("known_pairs", "rotation", 25, 20)
    ),
    "a leak noticed in few trials": with_proof(
        "known_pairs", "rotation", LeakTest("known_pairs", "rotation", 17, 17)
    ),
    "a leak proved twice": with_proof(
        "known_pairs", "rotation", *[LeakTest("known_pairs", "rotation", 20, 20)] * 2
    ),
    "noise taken for a leak": with_proof(
        "record_linkage", NOISE, LeakTest("record_linkage", NOISE, 4, 20)
    ),
    "no noise was tried": with_proof("record_linkage", NOISE),
    "an attack failed on a leak": with_self_test(failed={"record_linkage": "ValueError"}),
    "the leak scan sees nothing": with_proof(
        LEAK_SCAN, "verbatim rows", LeakTest(LEAK_SCAN, "verbatim rows", 0, 20)
    ),
    "policy not tried": with_self_test(policy_check=None, failed={"coverage": "TimeLimit"}),
    "policy tried on nothing": with_policy_check(bad=()),
    "policy tried on nobody": with_policy_check(records=0),
    "policy lets a copy pass": with_policy_check(bad=(ReleaseTest("identity", ()),)),
    "policy refuses noise": with_policy_check(noise=ReleaseTest(NOISE, ("record_linkage",))),
    "empty report": with_report(scores=()),
    "required audit failed": with_report(failed={"known_pairs": "ValueError"}),
    "required audit skipped": with_report(
        skipped={"known_pairs": Skip(Reason.MISSING_KNOWLEDGE, "It has no pairs.")}
    ),
    "required audit missing": with_report(scores=good().report.scores[1:]),
    "nobody tried to link": only(BREACH, MEMBER, USE, OTHER),
    "nobody tried to reconstruct": only(LINK, MEMBER, USE),
    "nobody asked who is in it": only(BREACH, LINK, USE),
    "no bound": with_promise("empirical", INF),
    "gamma is NaN": with_promise("bounded", NAN),
    "gamma too large": with_promise("bounded", math.log(30.0) + 1e-6),
    "unknown unit": with_limit("amplification.family", 1e9),
    "limit is NaN": with_limits(NAN),
    "value is NaN": with_score(BREACH, value=NAN),
    "low is NaN": with_score(BREACH, low=NAN),
    "high is infinite": with_score(USE, high=INF),
    "baseline is NaN": with_score(LINK, baseline=NAN),
    "worst draw is NaN": with_score(LINK, worst=NAN),
    "interval upside down": with_score(LINK, low=0.03, high=0.01),
    "value outside its interval": with_score(LINK, value=0.2),
    "no records": with_score(LINK, n=0),
    "an unlimited score is NaN": with_score(OTHER, value=NAN),
    "limited score missing": with_report(scores=good().report.scores[:3]),
    "over the limit": with_score(LINK, value=0.3, low=0.2, high=0.4, worst=0.3),
    "useless": with_score(USE, value=0.5, low=0.4, high=0.6, worst=0.5),
    "too few records to tell": with_score(LINK, low=0.0, high=0.2),
    "the ledger was not asked": replace(good(), account=None),
    "the account is NaN": with_account(spent=NAN),
    "the account shrinks": with_account(after=5.0),
    "the account is spent": with_account(asked=5.0, after=10.1),
    "the account has no bound": with_account(asked=INF, after=INF, unbounded=("random_rotation",)),
    "too many draws": with_account(draws_after=4),
    "unknown account": with_limit("ledger.family", 1e9),
    "measured twice, once over the limit": with_report(
        scores=(score(LINK, 0.3), *good().report.scores)
    ),
}
UNDECIDED = {"too few records to tell"}  # of those, what people decide; all others are refused

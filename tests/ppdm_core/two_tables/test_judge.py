"""How the audit of two tables is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ppdm_core import audit_tables, judge_tables
from ppdm_core.model.policy import Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.verdict import Finding, Outcome, worst
from ppdm_core.two_tables.judge import COMPLEMENTARY
from tests.support.audit_cases import make_policy
from tests.support.tables import make_frame

N = 60
RNG = np.random.default_rng(8)
X = RNG.gamma(2.0, 1.0, (N, 4)) * [1.0, 10.0, 100.0, 0.1]
LINK, BREACH, MEMBER = "record_linkage.rate", "known_pairs.breach_rate", "membership.auc"
INFER, PAIR = "attribute_inference.inference_rate", "linkability.pair_rate"
ALONE = {"membership": Skip(Reason.NO_CONTROL)}
UNALIGNED = {"record_linkage": Skip(Reason.NO_ALIGNMENT)}


def make_score(value: float, low: float, high: float, name: str = LINK) -> Score:
    return Score(name, "privacy", "down", value, low, high, 100, 0.01, value, sentence="Found.")


def make_report(scores: tuple[Score, ...], **given: Any) -> AuditReport:
    """Return the report of a release without a label."""
    skipped = {"label": Skip(Reason.NO_LABEL), **given.pop("skipped", {})}
    return AuditReport(scores, skipped=skipped, **given)


def make_kept_scores(*names: str) -> tuple[Score, ...]:
    return tuple(make_score(0.02, 0.01, 0.05, name) for name in names)


def limit_to(*names: str, required: tuple[str, ...] = ()) -> Policy:
    """Return a policy that limits these scores to 0.05, against an attacker who knows nothing."""
    limits = dict.fromkeys(names, 0.05)
    return make_policy(required, limits, "standard", known_records=0, sample_share=0.0)


def list_reviews(report: AuditReport, policy: Policy) -> list[str]:
    outcome, findings = judge_tables(report, policy)
    assert outcome == "REVIEW"
    return [finding.check for finding in findings if finding.outcome == "REVIEW"]


JUDGED: list[tuple[AuditReport, Outcome]] = [
    (make_report((make_score(0.02, 0.01, 0.05),)), "PASS"),
    (make_report((make_score(0.02, 0.01, 0.07),)), "REVIEW"),
    (make_report((make_score(0.20, 0.07, 0.30),)), "FAIL"),
    (make_report((), not_run=UNALIGNED), "REVIEW"),
    (make_report((), failed={"record_linkage": "TimeLimit"}), "FAIL"),
    (make_report((), skipped={"record_linkage": Skip(Reason.NOT_MEASURABLE)}), "REVIEW"),
    (make_report((make_score(0.02, 0.01, 0.05),), failed={"membership": "ValueError"}), "FAIL"),
    (make_report((make_score(0.02, 0.01, float("nan")),)), "FAIL"),
]


@pytest.mark.parametrize(("report", "outcome"), JUDGED)
def test_judge_tables_score_or_absence_gives_outcome(report: AuditReport, outcome: Outcome):
    report = replace(report, not_run={**ALONE, **report.not_run})
    found, findings = judge_tables(report, limit_to(LINK, required=("record_linkage",)))
    assert found == outcome
    assert any(finding.outcome == outcome for finding in findings)


def test_judge_tables_limit_not_measured_review_with_reason():
    skipped = {"known_pairs": Skip(Reason.MISSING_KNOWLEDGE, "It knows no record.")}
    report = make_report(make_kept_scores(LINK), skipped=skipped, not_run=ALONE)
    assert judge_tables(report, limit_to(LINK))[0] == "PASS"
    outcome, findings = judge_tables(report, limit_to(LINK, BREACH))
    assert outcome == "REVIEW"
    (open_one,) = [finding for finding in findings if finding.outcome != "PASS"]
    assert open_one.check == BREACH
    assert open_one.why == f"{BREACH} has a limit but was not measured. It knows no record."
    not_run = make_report(
        report.scores, not_run={**ALONE, "known_pairs": Skip(Reason.NOT_REQUESTED)}
    )
    assert list_reviews(not_run, limit_to(LINK, BREACH)) == [BREACH]


@pytest.mark.parametrize("why", sorted(COMPLEMENTARY, key=str))
def test_judge_tables_complementary_attack_skipped_no_gap(why: Reason):
    policy = limit_to(LINK, "known_sample_pca.breach_rate")
    report = make_report(
        make_kept_scores(LINK), skipped={"known_sample_pca": Skip(why)}, not_run=ALONE
    )
    assert judge_tables(report, policy)[0] == "PASS"
    required = replace(policy, required=("known_sample_pca",))
    assert list_reviews(report, required) == ["required.known_sample_pca"]
    # It is no substitute for another attack either.
    alone = replace(report, scores=())
    assert "covered.reconstruction or linkage" in list_reviews(
        alone, limit_to("known_sample_pca.breach_rate", "knn_accuracy")
    )


@pytest.mark.parametrize(
    ("not_run", "names", "missing"),
    [
        (ALONE, (LINK,), ()),
        (ALONE, (BREACH,), ()),
        (ALONE, ("record_linkage.partial.rate",), ("reconstruction or linkage",)),
        (ALONE, ("distance_loss",), ("reconstruction or linkage",)),
        ({}, (LINK,), ("membership",)),
        ({}, (LINK, INFER, PAIR), ("membership",)),
        ({}, (LINK, MEMBER), ()),
        ({}, (MEMBER,), ("reconstruction or linkage",)),
        (UNALIGNED, (MEMBER,), ("inference or linkability",)),
        (UNALIGNED, (MEMBER, PAIR), ()),
        (UNALIGNED, (INFER,), ("membership",)),
        ({**UNALIGNED, **ALONE}, ("distance_loss",), ("inference or linkability",)),
    ],
)
def test_judge_tables_kind_of_risk_without_limit_review(
    not_run: dict[str, Skip], names: tuple[str, ...], missing: tuple[str, ...]
):
    report, policy = make_report(make_kept_scores(*names), not_run=not_run), limit_to(*names)
    if not missing:
        assert judge_tables(report, policy)[0] == "PASS"
    else:
        assert list_reviews(report, policy) == [f"covered.{word}" for word in missing]


def test_judge_tables_doubts_review():
    report = make_report(make_kept_scores(LINK), not_run=ALONE, doubts=("Who knows.",))
    assert list_reviews(report, limit_to(LINK)) == ["doubt"]


def test_judge_tables_empty_policy_fails():
    assert judge_tables(make_report(()), limit_to())[0] == "FAIL"


def audit(released: Any, limits: tuple[str, ...], **given: Any) -> tuple[AuditReport, Policy]:
    """Audit a release of the table for an attacker who knows no record."""
    policy = replace(limit_to(*limits), effort="quick")
    return audit_tables(make_frame(X, "c"), released, policy=policy, **given), policy


def test_judge_tables_renamed_copy_fails():
    report, policy = audit(make_frame(X[:, ::-1], "z"), (LINK, BREACH))
    outcome, findings = judge_tables(report, policy)
    assert outcome == "FAIL"
    assert [finding.check for finding in findings if finding.outcome == "FAIL"] == [LINK]


def test_judge_tables_unreadable_release_review():
    """Roots of some columns preserve neither values, distributions nor distances."""
    report, policy = audit(make_frame(np.sqrt(X[:, [2, 0, 1]] + 5.0), "z"), (LINK, "distance_loss"))
    assert LINK not in {score.name for score in report.scores}
    assert {LINK, "covered.reconstruction or linkage"} <= set(list_reviews(report, policy))


def test_audit_tables_sentences_suit_two_files():
    common, _ = audit(make_frame(X**2, "c"), ("known_sample_pca.breach_rate", LINK))
    assert common.skipped["known_sample_pca"] == Skip(Reason.COLUMNS_RELEASED)
    everything = limit_to()
    strange = audit_tables(
        make_frame(X, "c"), make_frame(np.sqrt(X[:, :3]), "z"), policy=everything
    )
    assert strange.skipped["transform_inverse"] == Skip(Reason.NO_COMMON_COLUMN)
    plain = audit_tables(make_frame(X, "c"), make_frame(X + 50.0 * X**2, "c"), policy=everything)
    for report in (strange, plain):
        parts = [*report.skipped.values(), *report.scores]
        told = " ".join(part.sentence for part in parts)
        for word in ("[dataset]", "linear map", "public map", "published", "does not apply"):
            assert word not in told
    assert "takes the released values as they stand" in " ".join(s.sentence for s in plain.scores)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (("PASS", "PASS"), "PASS"),
        (("PASS", "REVIEW"), "REVIEW"),
        (("REVIEW", "FAIL", "PASS"), "FAIL"),
        (("PASS", "MAYBE"), "FAIL"),
        ((), "FAIL"),
    ],
)
def test_worst_findings_worst_outcome(outcomes: tuple[Any, ...], expected: str):
    assert worst(tuple(Finding("check", outcome, "why") for outcome in outcomes)) == expected


def test_judge_tables_fact_that_chance_explains_no_gap_other_fact_judged():
    policy = limit_to(LINK, "repeated_noise")
    for baseline, value, outcome in ((1.0, 1.0, "PASS"), (0.1, 0.1, "PASS"), (0.1, 0.4, "FAIL")):
        fact = replace(make_score(value, value, value, "repeated_noise"), baseline=baseline)
        report = make_report((*make_kept_scores(LINK), fact), not_run=ALONE)
        assert judge_tables(report, policy)[0] == outcome, (baseline, value)


def test_judge_tables_few_persons_can_fail_and_are_not_needed_for_a_pass():
    surest = "record_linkage.surest.rate"
    policy = limit_to(LINK, surest)
    wide = replace(make_score(0.05, 0.0, 0.4, surest), is_certifiable=False)
    found = replace(make_score(0.9, 0.5, 1.0, surest), is_certifiable=False)
    for score, outcome in (
        (wide, "PASS"),
        (replace(wide, is_certifiable=True), "REVIEW"),
        (found, "FAIL"),
    ):
        report = make_report((*make_kept_scores(LINK), score), not_run=ALONE)
        assert judge_tables(report, policy)[0] == outcome


def test_judge_tables_limits_that_files_cannot_show_review():
    report = make_report(make_kept_scores(LINK), not_run=ALONE)
    policy = limit_to(LINK, "amplification.record", "ledger.record")
    assert list_reviews(report, policy) == ["amplification.record", "ledger.record"]


def test_judge_tables_limit_set_by_no_person_review():
    report = make_report(make_kept_scores(LINK), not_run=ALONE)
    policy = limit_to(LINK)
    limits = {name: replace(one, set_by="") for name, one in policy.limits.items()}
    assert list_reviews(report, replace(policy, limits=limits)) == ["decisions"]

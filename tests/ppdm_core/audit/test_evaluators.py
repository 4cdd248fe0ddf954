"""Which records are scored, and against which baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core import audit_tables, judge_tables
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.certifiable import compute_smallest_limits
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.simulation import choose_half_participants
from ppdm_core.gates import decide
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Limit, Policy
from ppdm_core.model.reasons import Reason
from tests.contract import gate_inputs
from tests.support.audit_cases import AS_IS, D, make_policy, make_truth

LIMIT = Limit(0.1, "DPO", "why")


def require(*names: str) -> Policy:
    return make_policy(names, known_records=5, sample_share=0.0)


def test_auditor_group_of_zero_records_keeps_scores():
    truth = make_truth(100)
    X = truth.X.copy()
    X[:25] = 0.0
    is_zero = np.arange(100) < 25
    grouped = OriginalTable(X, truth.label, truth.schema, groups={"status = inactive": is_zero})
    one = Auditor(grouped, [ReleaseDraw(X, AS_IS)],
                  make_policy(), b"s")  # fmt: skip
    found = {score.name: score for score in one.run("transform_inverse")}
    assert found["transform_inverse.breach_rate"].value == 1.0
    assert found["transform_inverse.breach_rate"].group == "status = inactive"
    assert found["transform_inverse.relative_error"].worst_group is None


@pytest.mark.parametrize("members", [[4], [0, 1], [0, 1, 2]])
def test_choose_half_participants_few_members_outsiders_not_members(members):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        participants = choose_half_participants(
            6, 2, np.array(members), Attacker(known_records=40), rng
        )
        assert np.array_equal(participants.is_member, np.isin(participants.targets, members))
        assert not set(participants.reference) & set(members)
        assert not set(participants.reference) & set(participants.targets)


def test_attribute_inference_baseline_measured_outside_the_release():
    truth = make_truth()
    half = np.arange(0, 80, 2)
    halves = [ReleaseDraw(truth.X[half], AS_IS, half, members=half)]
    one = Auditor(truth, [ReleaseDraw(truth.X, AS_IS)], make_policy(), b"s", halves)
    (score,) = one.run("attribute_inference")
    assert score.value > 0.9 > 0.6 > score.baseline


def test_singling_out_small_control_not_applicable():
    rng = np.random.default_rng(1)
    X, C = rng.random((300, 5)), rng.random((300, 5))
    full = audit_tables(X, X, control=C, aligned=False, policy=require("singling_out"))
    (score,) = (s for s in full.scores if s.name == "singling_out.singling_rate")
    assert score.value > 0.95
    few = audit_tables(X, X, control=C[:60], aligned=False, policy=require("singling_out"))
    assert few.skipped["singling_out"].reason is Reason.NO_CONTROL


def test_membership_control_with_members_still_found():
    rng = np.random.default_rng(2)
    X, C = rng.random((300, 5)), rng.random((300, 5))
    C[:120] = X[:120]
    report = audit_tables(X, X, control=C, aligned=False, policy=require("membership"))
    found = {score.name: score for score in report.scores}
    assert found["membership.auc"].value > 0.95


def test_auditor_tiny_halves_sound_score_or_not_applicable():
    rng = np.random.default_rng(3)
    for n in (6, 9, 14):
        truth = make_truth(n)
        half = np.sort(rng.permutation(n)[: n // 2])
        public = AS_IS
        halves = [ReleaseDraw(truth.X[half], public, half, members=half)]
        report = {}
        auditor = Auditor(truth, [ReleaseDraw(truth.X, public)], make_policy(), b"s", halves)
        for name in ("membership", "attribute_inference", "linkability", "singling_out"):
            try:
                report[name] = auditor.run(name)
            except NotApplicable:
                continue
        for scores in report.values():
            for score in scores:
                assert score.low <= score.value <= score.high


def test_decide_quick_audit_without_reconstruction_fails():
    good = gate_inputs.make_good_input()
    inference = "attribute_inference.inference_rate"
    keep = ("record_linkage.rate", inference, gate_inputs.MEMBER, gate_inputs.LABEL)
    scores = tuple(gate_inputs.make_score(name, 0.02) for name in keep)
    judged = Policy(required=("record_linkage",), limits=dict.fromkeys(keep, LIMIT))
    quick = replace(good, report=replace(good.report, scores=scores), policy=judged)
    quick = gate_inputs.add_self_test(quick)
    assert decide(quick, data_digest="d", code_version="c").outcome == "FAIL"
    words = replace(quick, has_numbers=False)
    assert decide(words, data_digest="d", code_version="c").outcome == "PASS"


def test_decide_limit_on_scenario_only_fails_linkage():
    good = gate_inputs.make_good_input()
    others = ("transform_inverse.breach_rate", gate_inputs.MEMBER, gate_inputs.LABEL)
    names = ("record_linkage.partial.rate", *others)
    scores = (
        gate_inputs.make_score("record_linkage.rate", 1.0),
        *(gate_inputs.make_score(name, 0.02) for name in names),
    )
    judged = Policy(required=("record_linkage",), limits=dict.fromkeys(names, LIMIT))
    partial = replace(good, report=replace(good.report, scores=scores), policy=judged)
    partial = gate_inputs.add_self_test(partial)
    failed = {f.check for f in decide(partial, data_digest="d", code_version="c").failures}
    assert failed == {"covered.linkage"}


def test_compute_smallest_limits_singling_out_bounded_by_statements():
    judged = Policy(required=(), limits={"singling_out.singling_rate": LIMIT})
    assert compute_smallest_limits(judged, 5_000)["singling_out.singling_rate"] > 0.0073


def test_judge_tables_unread_column_review_identifier_fails():
    rng = np.random.default_rng(4)
    numbers = {f"x{j}": rng.random(200) for j in range(3)}
    noise = {f"x{j}": rng.random(200) for j in range(3)}
    mail = np.array([f"p{i}@example.org" for i in range(200)])
    words = np.array([f"word {i // 2 if i < 196 else i}" for i in range(200)])  # no categories
    easy = replace(require("record_linkage"), limits={"record_linkage.rate": Limit(0.2, "a", "b")})
    for column, outcome in ((mail, "FAIL"), (words, "REVIEW")):
        report = audit_tables({**numbers, "m": column}, {**noise, "m": column}, policy=easy)
        found, findings = judge_tables(report, easy)
        assert found == outcome
        assert "'m'" in next(f.why for f in findings if f.check == "unread.m")
    report = audit_tables({**numbers, "m": mail}, noise, policy=easy)
    assert judge_tables(report, easy)[0] == "PASS"


def test_relative_error_above_baseline_capped():
    wild = make_truth().X + np.random.default_rng(6).normal(0.0, 9.0, (80, D))
    public = AS_IS
    one = Auditor(
        make_truth(),
        [ReleaseDraw(wild, public)],
        make_policy(known_records=0, sample_share=0.0),
        b"s",
    )
    found = {score.name: score for score in one.run("transform_inverse")}
    score = found["transform_inverse.relative_error"]
    assert score.value > score.baseline == score.notes["capped"]
    assert "capped" not in found["transform_inverse.breach_rate"].notes

"""What the gate on the label refuses, and when it has nothing to judge."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.gates import decide
from ppdm_core.model.reasons import Reason, Skip
from tests.contract.gate_inputs import (
    LABEL,
    add_self_test,
    drop_limit,
    make_good_input,
    make_limit,
    make_score,
)


def test_label_identity_refused_under_any_limit():
    one = replace(make_score(LABEL, 1.0, 0.0), baseline=0.002)
    gate_input = make_good_input()
    limits = {**gate_input.policy.limits, LABEL: make_limit(1.0, absolute=True)}
    scores = (*gate_input.report.scores[:-1], one)
    gate_input = replace(
        gate_input,
        report=replace(gate_input.report, scores=scores),
        policy=replace(gate_input.policy, limits=limits),
    )
    verdict = decide(add_self_test(gate_input), data_digest="d", code_version="c")
    assert verdict.outcome == "FAIL"
    assert [f.check for f in verdict.failures if f.outcome == "FAIL"] == ["label.identity"]


def test_label_no_label_released_passes_without_limit():
    gate_input = drop_limit(LABEL)
    report = replace(
        gate_input.report,
        scores=gate_input.report.scores[:-1],
        skipped={"label": Skip(Reason.NO_LABEL)},
    )
    gate_input = add_self_test(replace(gate_input, report=report))
    verdict = decide(gate_input, data_digest="d", code_version="c")
    assert verdict.outcome == "PASS"
    assert "covered.label" in {finding.check for finding in verdict.findings}

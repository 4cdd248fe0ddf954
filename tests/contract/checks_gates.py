"""What every gate must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ppdm_core.gates import GateInput
from ppdm_core.gates._gate import Gate
from ppdm_core.gates.label import LABEL_RATE
from ppdm_core.model.policy import Limit
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Verdict, worst
from tests.contract.gate_inputs import (
    BROKEN_INPUTS,
    REVIEWED_INPUTS,
    change_report,
    make_good_input,
    make_limit,
    make_score,
)

SHARES = st.floats(0.0, 1.0)
STEPS = st.floats(0.0, 0.5)
quietly = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),  # a found bug is reported at once, not shrunk first
)


OUTCOMES = ("PASS", "REVIEW", "FAIL")  # the worse, the later


def rank_outcome(gate: Gate, gate_input: GateInput) -> int:
    return OUTCOMES.index(worst(tuple(gate.check(gate_input))))


def passes(gate: Gate, gate_input: GateInput) -> bool:
    return worst(tuple(gate.check(gate_input))) == "PASS"


def check_passes_good_input(gate: Gate) -> None:
    findings = tuple(gate.check(make_good_input()))
    assert findings, "it has no finding"
    failed = [finding.check for finding in findings if finding.outcome != "PASS"]
    assert not failed, f"it refuses a good input: {failed}"


def check_refuses(gate: Gate, broken: str) -> None:
    assert not passes(gate, BROKEN_INPUTS[broken]), f"it passes an input with: {broken}"


def check_findings_have_reasons(gate: Gate) -> None:
    for name, gate_input in {"good": make_good_input(), **BROKEN_INPUTS}.items():
        for finding in gate.check(gate_input):
            assert finding.check, f"{name}: a finding about nothing"
            assert finding.outcome in OUTCOMES, f"{name}: {finding.outcome}"
            assert finding.why.endswith("."), f"{name}: not a sentence: {finding.why!r}"


def check_worse_score_never_helps(gate: Gate) -> None:
    """Worse figures never help, and a wider interval never makes a PASS."""

    @quietly
    @given(
        value=SHARES,
        width=STEPS,
        line=SHARES,
        baseline=STEPS,
        shift=STEPS,
        wider=STEPS,
        absolute=st.booleans(),
        band=st.one_of(st.none(), STEPS),
        better=st.sampled_from(["up", "down"]),
        name=st.sampled_from([s.name for s in make_good_input().report.scores]),
    )
    def holds(value, width, line, baseline, shift, wider, absolute, band, better, name) -> None:
        better = "down" if name == LABEL_RATE else better  # what the label gives is a risk
        review = None if band is None else line - band
        drawn = make_limit(line, absolute=absolute, review=review)
        worse = value + (shift if better == "down" else -shift)

        def make_input(value: float, width: float) -> GateInput:
            return set_only_limit(
                make_score(name, value, width, baseline=baseline, better=better), drawn
            )

        before = rank_outcome(gate, make_input(value, width))
        assert rank_outcome(gate, make_input(worse, width)) >= before, "a worse score helped"
        if before:
            assert not passes(gate, make_input(value, width + wider)), "a wider interval helped"

    holds()


def set_only_limit(one: Score, line: Limit) -> GateInput:
    """Return the good input with this score, and this limit only."""
    gate_input = make_good_input()
    scores = tuple(one if s.name == one.name else s for s in gate_input.report.scores)
    return replace(
        gate_input,
        report=replace(gate_input.report, scores=scores),
        policy=replace(gate_input.policy, limits={one.name: line}),
    )


def check_weaker_guarantee_never_helps(gate: Gate) -> None:
    @quietly
    @given(ln=st.floats(0.0, 20.0), more=st.floats(0.0, 20.0), line=st.floats(0.0, 1e6))
    def holds(ln: float, more: float, line: float) -> None:
        before = rank_outcome(gate, set_guarantee("bounded", ln, line))
        larger = rank_outcome(gate, set_guarantee("bounded", ln + more, line))
        unbounded = rank_outcome(gate, set_guarantee("empirical", ln, line))
        assert larger >= before, "a larger gamma helped"
        assert unbounded >= before, "the loss of a bound helped"

    holds()


def set_guarantee(kind: str, ln_record: float, line: float) -> GateInput:
    gate_input = make_good_input()
    return replace(
        gate_input,
        guarantee=replace(gate_input.guarantee, kind=kind, ln_record=ln_record),
        policy=replace(
            gate_input.policy, limits={"amplification.record": make_limit(line, review=line / 2)}
        ),
    )


def check_fails_closed(decide: Callable[..., Verdict]) -> None:
    """All gates together pass the good input, and nothing that is broken or missing."""

    def outcome(gate_input: GateInput) -> str:
        return decide(gate_input, data_digest="d", code_version="c").outcome

    assert outcome(make_good_input()) == "PASS", "the good input is refused"
    for name, gate_input in BROKEN_INPUTS.items():
        expected = "REVIEW" if name in REVIEWED_INPUTS else "FAIL"
        assert outcome(gate_input) == expected, f"it publishes with: {name}"
    scores = make_good_input().report.scores
    for lost in scores:
        if lost.name in make_good_input().policy.limits:
            rest = tuple(one for one in scores if one is not lost)
            assert outcome(change_report(scores=rest)) == "FAIL", (
                f"it publishes without {lost.name}"
            )

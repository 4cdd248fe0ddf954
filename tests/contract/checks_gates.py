"""What every gate must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ppdm_core.gates import GateInput
from ppdm_core.gates._gate import Gate
from ppdm_core.model.policy import Limit
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Verdict, worst
from tests.contract.evidence import BROKEN, UNDECIDED, good, limit, score, with_report

SHARES = st.floats(0.0, 1.0)
STEPS = st.floats(0.0, 0.5)
quietly = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),  # a found bug is told at once, not made smaller first
)


OUTCOMES = ("PASS", "REVIEW", "FAIL")  # the worse, the later


def rank(gate: Gate, evidence: GateInput) -> int:
    return OUTCOMES.index(worst(tuple(gate.check(evidence))))


def passes(gate: Gate, evidence: GateInput) -> bool:
    return worst(tuple(gate.check(evidence))) == "PASS"


def check_passes_good_evidence(gate: Gate) -> None:
    findings = tuple(gate.check(good()))
    assert findings, "it finds nothing to say"
    failed = [finding.check for finding in findings if finding.outcome != "PASS"]
    assert not failed, f"it refuses what is good: {failed}"


def check_refuses(gate: Gate, broken: str) -> None:
    assert not passes(gate, BROKEN[broken]), f"it passes evidence with: {broken}"


def check_findings_explain_themselves(gate: Gate) -> None:
    for name, evidence in {"good": good(), **BROKEN}.items():
        for finding in gate.check(evidence):
            assert finding.check, f"{name}: a finding about nothing"
            assert finding.outcome in OUTCOMES, f"{name}: {finding.outcome}"
            assert finding.why.endswith("."), f"{name}: not a sentence: {finding.why!r}"


def check_worse_score_never_helps(gate: Gate) -> None:
    """From any evidence: worse figures never help, and a wider interval never makes a PASS."""

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
        name=st.sampled_from([s.name for s in good().report.scores]),
    )
    def holds(value, width, line, baseline, shift, wider, absolute, band, better, name) -> None:
        review = None if band is None else line - band
        drawn = limit(line, absolute=absolute, review=review)
        worse = value + (shift if better == "down" else -shift)

        def evidence(value: float, width: float) -> GateInput:
            return having(score(name, value, width, baseline=baseline, better=better), drawn)

        before = rank(gate, evidence(value, width))
        assert rank(gate, evidence(worse, width)) >= before, "a worse score helped"
        if before:
            assert not passes(gate, evidence(value, width + wider)), "a wider interval helped"

    holds()


def having(one: Score, line: Limit) -> GateInput:
    """Good evidence with this score, and no limit but this one."""
    evidence = good()
    scores = tuple(one if s.name == one.name else s for s in evidence.report.scores)
    return replace(
        evidence,
        report=replace(evidence.report, scores=scores),
        policy=replace(evidence.policy, limits={one.name: line}),
    )


def check_weaker_promise_never_helps(gate: Gate) -> None:
    @quietly
    @given(ln=st.floats(0.0, 20.0), more=st.floats(0.0, 20.0), line=st.floats(0.0, 1e6))
    def holds(ln: float, more: float, line: float) -> None:
        before = rank(gate, promising("bounded", ln, line))
        larger = rank(gate, promising("bounded", ln + more, line))
        unbounded = rank(gate, promising("empirical", ln, line))
        assert larger >= before, "a larger gamma helped"
        assert unbounded >= before, "the loss of a bound helped"

    holds()


def promising(kind: str, ln_record: float, line: float) -> GateInput:
    evidence = good()
    return replace(
        evidence,
        guarantee=replace(evidence.guarantee, kind=kind, ln_record=ln_record),
        policy=replace(
            evidence.policy, limits={"amplification.record": limit(line, review=line / 2)}
        ),
    )


def check_fails_closed(decide: Callable[..., Verdict]) -> None:
    """Over all gates together: good evidence passes, anything broken or lost does not."""

    def outcome(evidence: GateInput) -> str:
        return decide(evidence, data_digest="d", code_version="c").outcome

    assert outcome(good()) == "PASS", "good evidence is refused"
    for name, evidence in BROKEN.items():
        expected = "REVIEW" if name in UNDECIDED else "FAIL"
        assert outcome(evidence) == expected, f"it publishes with: {name}"
    scores = good().report.scores
    for lost in scores:
        if lost.name in good().policy.limits:
            rest = tuple(one for one in scores if one is not lost)
            assert outcome(with_report(scores=rest)) == "FAIL", f"it publishes without {lost.name}"

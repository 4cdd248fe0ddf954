"""The gates: one file each, one line here. All of them always run."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.gates.amplification import Amplification
from ppdm_core.gates.decisions import Decisions
from ppdm_core.gates.label import Label
from ppdm_core.gates.ledger import Ledger
from ppdm_core.gates.required_audits import RequiredAudits
from ppdm_core.gates.score_limits import ScoreLimits
from ppdm_core.gates.self_test import SelfTest
from ppdm_core.model.verdict import Finding, Verdict, worst

GATES: dict[str, Gate] = {
    "decisions": Decisions(),
    "required_audits": RequiredAudits(),
    "label": Label(),
    "amplification": Amplification(),
    "score_limits": ScoreLimits(),
    "ledger": Ledger(),
    "self_test": SelfTest(),
}

__all__ = ["GATES", "GateInput", "decide", "judge_settings"]


def decide(gate_input: GateInput, *, data_digest: str, code_version: str) -> Verdict:
    """Return the verdict: the worst of all findings."""
    gate_input = replace(gate_input, code_version=code_version)
    findings = tuple(finding for gate in GATES.values() for finding in gate.check(gate_input))
    return Verdict(
        outcome=worst(findings),
        findings=findings,
        policy_digest=gate_input.policy.digest,
        data_digest=data_digest,
        code_version=code_version,
    )


def judge_settings(gate_input: GateInput) -> tuple[Finding, ...]:
    """Return the findings that another method or parameter could change."""
    gates = (gate for gate in GATES.values() if gate.judges_settings)
    return tuple(finding for gate in gates for finding in gate.check(gate_input))

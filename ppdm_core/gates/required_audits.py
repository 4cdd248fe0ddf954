from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.attacks import ATTACKS
from ppdm_core.gates._gate import Evidence
from ppdm_core.types import AuditReport
from ppdm_core.verdict import Finding, Outcome

GOALS = {"reconstruct": "reconstruction", "link": "linkage"}


@dataclass(frozen=True)
class RequiredAudits:
    """Every required audit ran to its end, and each kind of attack was tried at least once."""

    name: ClassVar[str] = "required_audits"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        report = evidence.report
        scored = {score.name.split(".")[0] for score in report.scores}
        for audit in evidence.policy.required:
            why = absent(report, audit, scored)
            outcome: Outcome = "FAIL" if why else "PASS"
            yield Finding(f"required.{audit}", outcome, why or "It ran to its end.")
        for goal, word in GOALS.items():
            tried = any(attack.goal == goal for name, attack in ATTACKS.items() if name in scored)
            yield Finding(
                f"covered.{word}",
                "PASS" if tried else "FAIL",
                f"At least one {word} attack was measured."
                if tried
                else f"No {word} attack was measured, so nothing is known of that risk.",
            )


def absent(report: AuditReport, audit: str, scored: set[str]) -> str | None:
    if audit in report.failed:
        return f"The required audit {audit} failed ({report.failed[audit]})."
    if audit in report.skipped:
        return f"The required audit {audit} does not apply: {report.skipped[audit]}"
    if audit not in scored:
        return f"The required audit {audit} was not run."
    return None

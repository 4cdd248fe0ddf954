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
    """Every required audit ran to its end, none failed, and each kind of attack has a limit.

    An attack that was measured but that no limit judges supports nothing.
    """

    name: ClassVar[str] = "required_audits"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        report = evidence.report
        scored = {score.name.split(".")[0] for score in report.scores}
        for audit in evidence.policy.required:
            why = absent(report, audit, scored)
            outcome: Outcome = "FAIL" if why else "PASS"
            yield Finding(f"required.{audit}", outcome, why or "It ran to its end.")
        for audit, kind in report.failed.items():
            if audit not in evidence.policy.required:
                yield Finding(f"failed.{audit}", "FAIL", f"The audit {audit} failed ({kind}).")
        judged = {score.name for score in report.scores} & set(evidence.policy.limits)
        for goal, word in GOALS.items():
            yield covered(goal, word, {name.split(".")[0] for name in judged})


def covered(goal: str, word: str, judged: set[str]) -> Finding:
    names = [name for name, attack in ATTACKS.items() if attack.goal == goal]
    if judged & set(names):
        return Finding(f"covered.{word}", "PASS", f"At least one {word} attack has a limit.")
    return Finding(
        f"covered.{word}",
        "FAIL",
        f"No measured {word} attack has a limit, so nothing judges that risk. "
        f"Set one on a score of {' or '.join(names)}.",
    )


def absent(report: AuditReport, audit: str, scored: set[str]) -> str | None:
    if audit in report.failed:
        return f"The required audit {audit} failed ({report.failed[audit]})."
    if audit in report.skipped:
        return f"The required audit {audit} does not apply: {report.skipped[audit]}"
    if audit not in scored:
        return f"The required audit {audit} was not run."
    return None

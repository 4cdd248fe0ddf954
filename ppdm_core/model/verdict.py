"""The verdict on a release: the worst of all findings.

A PASS is published. A REVIEW is published when reviewers who did not make the release approve it.
A FAIL is never published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ppdm_core.model.shown_text import show_line

Outcome = Literal["PASS", "REVIEW", "FAIL"]  # REVIEW: the measurements leave the decision open


DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class Review:
    """What a REVIEW needs to be published."""

    approvals: int = 1  # by different persons, none of them the author
    lapses_after: float = 14 * DAY  # seconds after which an approval no longer counts
    decide_within: float | None = None  # seconds after the verdict; None: no deadline


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    outcome: Outcome
    why: str  # one sentence that a steward understands, on one line
    observed: str = ""
    limit: str = ""
    remedy: str = ""  # what would change the outcome: the needed figure, and what helps

    def __post_init__(self) -> None:
        for name in ("why", "remedy"):  # they quote the release file
            object.__setattr__(self, name, show_line(getattr(self, name)))

    @property
    def text(self) -> str:
        """Why, and what would change it; for the steward, because it has measured figures."""
        return f"{self.why} {self.remedy}".rstrip()


@dataclass(frozen=True)
class Verdict:
    """The outcome of all findings, for exactly these data, this policy and this code."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    policy_digest: str
    data_digest: str  # of the candidate that this verdict is about
    code_version: str

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Findings that are not a PASS, the worst first."""
        return tuple(
            finding
            for outcome in ("FAIL", "REVIEW")
            for finding in self.findings
            if finding.outcome == outcome
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Verdict:
        findings = tuple(Finding(**finding) for finding in data["findings"])
        return Verdict(**{**data, "findings": findings})


def worst(findings: tuple[Finding, ...]) -> Outcome:
    """Return the worst outcome; no finding at all is a FAIL."""
    outcomes = {finding.outcome for finding in findings}
    if outcomes == {"PASS"}:
        return "PASS"
    return "REVIEW" if outcomes and outcomes <= {"PASS", "REVIEW"} else "FAIL"

"""The gate on the label, which is released as it is."""

from __future__ import annotations

from collections.abc import Iterator

from ppdm_core.audit.label_risk import LABEL_RATE
from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.model.policy import LABEL, Policy
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding

COVERED, IDENTITY = "covered.label", "label.identity"  # names of checks
MAX_RATE = 0.5  # from here on the label identifies persons, and no limit allows that


class Label(Gate):
    """What the label alone gives was measured, has a limit, and does not identify persons.

    A label is released unchanged. The score label.rate is the share of persons whose row is found
    by an attacker who knows the label, and nothing else of the release, and picks one of the rows
    with it: the number of classes over the number of records. Its baseline is a random row. A
    label by which every second row is found is refused, whatever the limit.

    Linkage and inference are compared with an attacker who knows the label and ignores all other
    values. If a class has fewer than 50 records, they are compared with one who ignores the label
    as well, so that what it gives counts against their limits.
    """

    name = "label"
    judges_settings = True

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        yield judge_coverage(gate_input.report, gate_input.policy)
        yield from judge_identity(gate_input.report)


def judge_coverage(report: AuditReport, policy: Policy) -> Finding:
    """Return whether a limit judges what the label alone gives."""
    skip = report.skipped.get(LABEL)
    if not list_rates(report):
        if skip is not None and skip.reason is Reason.NO_LABEL:
            return Finding(COVERED, "PASS", skip.sentence)
        return Finding(COVERED, "FAIL", "What the label alone gives was not measured.")
    if LABEL_RATE not in policy.limits:
        why = f"No limit is on {LABEL_RATE}, so nothing judges what the label alone gives. Set one."
        return Finding(COVERED, "FAIL", why)
    return Finding(COVERED, "PASS", "What the label alone gives has a limit.")


def judge_identity(report: AuditReport) -> Iterator[Finding]:
    """Yield a FAIL if the label finds every second person."""
    for rate in list_rates(report):
        if not rate < MAX_RATE:  # NaN is not below it
            why = (
                f"The label identifies persons: it alone finds the rows of {rate:.0%} of them. No "
                "limit allows that: release no label, or one with larger classes."
            )
            yield Finding(IDENTITY, "FAIL", why)


def list_rates(report: AuditReport) -> list[float]:
    """Return what was measured of the label."""
    return [score.value for score in report.scores if score.name == LABEL_RATE]

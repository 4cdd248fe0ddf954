"""What the manifest of a release tells; the door adds the files and signs."""

from __future__ import annotations

import hashlib
import hmac
import sys
from pathlib import Path
from typing import Any

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.disclosure_rounding import banded_report, observed
from ppdm_core.gates.amplification import PREFIX
from ppdm_core.model.rows import BLOCK
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding
from ppdm_core.numerics.noise import SCHEME
from tasks.context import Plan
from tasks.keys import dataset_noise
from tasks.release_summary import Summary
from warehouse.database import Store


def manifest_body(plan: Plan, store: Store, summary: Summary) -> dict[str, Any]:
    facts, run, verdict, report = summary.sanitized, summary.run, summary.verdict, summary.report
    assert facts is not None and verdict is not None and report is not None
    secret = dataset_noise(store, plan.dataset).subkey("input")
    return {
        "format": 2,
        "dataset": plan.dataset,
        "release_id": run.release_id,
        "version": f"{run.number:04d}",
        "released": run.started.date().isoformat(),
        "owner": plan.owner,
        "audience": plan.audience,
        "rows": facts["released"],
        "label": plan.label.name if plan.label else None,
        "method": plan.method,
        "parameters": plan.parameters,
        "public": facts["public"],
        "features": [
            column["name"]
            for kind in ("numeric", "categorical")
            for column in facts["schema"][kind]
        ],
        "scaling": facts["scaling"],
        "guarantee": facts["guarantee"],
        "noise": {"scheme": SCHEME.decode(), "block": BLOCK},
        "verdict": {
            "outcome": verdict.outcome,
            "policy_digest": verdict.policy_digest,
            "findings": told_findings(plan, report, verdict.findings),
        },
        "code_version": run.code_version,
        "attacks": attack_versions(report),
        "input_hmac": hmac.new(secret, run.source_digest.encode(), "sha256").hexdigest(),
        **slots(summary),
    }


def slots(summary: Summary) -> dict[str, Any]:
    """What other steps leave for outsiders, where there is such a thing."""
    found = {name: getattr(summary, name, None) for name in ("self_test", "ledger", "approvals")}
    return {name: value for name, value in found.items() if value is not None}


def told_findings(
    plan: Plan, report: AuditReport, findings: tuple[Finding, ...]
) -> list[dict[str, str]]:
    """Scores in bands; a promise is no measurement and stays exact; of the rest the outcome."""
    scores = banded_report(report, plan.policy.attacker.epsilon).scores
    words = {score.name: observed(score) for score in scores}
    words |= {each.check: each.observed for each in findings if each.check.startswith(PREFIX)}
    return [
        {
            "check": each.check,
            "outcome": each.outcome,
            "observed": words.get(each.check, ""),
            "limit": each.limit,
        }
        for each in findings
    ]


def attack_versions(report: AuditReport) -> dict[str, str]:
    """Of each attack that was played, the digest of its own file; ``code_version`` is of all."""
    played = {score.name.split(".")[0] for score in report.scores} & set(ATTACKS)
    return {name: source_digest(type(ATTACKS[name])) for name in sorted(played)}


def source_digest(kind: type) -> str:
    source = Path(str(sys.modules[kind.__module__].__file__))
    return hashlib.sha256(source.read_bytes()).hexdigest()[:16]

"""The content of a manifest; publishing adds the files and signs it."""

from __future__ import annotations

import hashlib
import hmac
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.disclosure_rounding import format_bound, round_report
from ppdm_core.model.policy import AMPLIFICATION
from ppdm_core.model.release import Guarantee
from ppdm_core.model.rows import BLOCK
from ppdm_core.model.schema import Schema
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding
from ppdm_core.numerics.noise import SCHEME, Noise
from ppdm_core.numerics.scaling import Scaling
from tasks.context import ReleaseContext
from tasks.release_summary import Summary
from warehouse.json_codec import to_json

FORMAT = 2


def build_manifest(context: ReleaseContext, summary: Summary, noise: Noise) -> dict[str, Any]:
    """Return everything that the manifest says of a release, except its files.

    ``noise`` is that of the dataset: its key hides the digest of the source.
    """
    run, judged = summary.run, summary.judged
    facts, verdict, report = judged.sanitized, judged.verdict, judged.report
    secret = noise.subkey("input")
    return {
        "format": FORMAT,
        "dataset": context.dataset,
        "release_id": run.release_id,
        "version": f"{run.number:04d}",
        "released": run.started.date().isoformat(),
        "owner": context.owner,
        "audience": context.audience,
        "rows": facts.released,
        "label": context.label.name if context.label else None,
        "method": context.method,
        "parameters": context.parameters,
        "public": to_json(facts.public),
        "features": [*facts.schema.names, *(column.name for column in facts.schema.categorical)],
        "scaling": describe_scaling(facts.scaling, judged.validated.schema),
        "guarantee": format_guarantee(facts.guarantee),
        "noise": {"scheme": SCHEME.decode(), "block": BLOCK},
        "verdict": {
            "outcome": verdict.outcome,
            "policy_digest": verdict.policy_digest,
            "without_limit": list(context.policy.unlimited),
            "findings": format_findings(context, report, verdict.findings),
        },
        "code_version": run.code_version,
        "attacks": list_attack_versions(report),
        "input_hmac": hmac.new(secret, run.source_digest.encode(), "sha256").hexdigest(),
        **select_public_parts(summary),
    }


def select_public_parts(summary: Summary) -> dict[str, Any]:
    """Return self-test, ledger and approvals for outsiders, where there are any."""
    found = {
        "self_test": summary.self_test,
        "ledger": summary.ledger,
        "approvals": summary.approvals,
    }
    return {name: value for name, value in found.items() if value is not None}


def describe_scaling(scaling: Scaling, schema: Schema) -> dict[str, Any]:
    """Return the scaling of the numeric columns, with their bounds in original units.

    Recipients move their own values to these bounds, as the method does. With min-max scaling,
    offset and unit are the bounds already.
    """
    found: dict[str, Any] = to_json(scaling)
    if scaling.kind == "minmax":
        return found
    return {**found, "low": schema.lows.tolist(), "high": schema.highs.tolist()}


def format_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """Return the guarantee with all figures as text, because JSON has no infinity."""
    data = asdict(guarantee)
    return {
        name: repr(value) if isinstance(value, float) else value for name, value in data.items()
    }


def format_findings(
    context: ReleaseContext, report: AuditReport, findings: tuple[Finding, ...]
) -> list[dict[str, str]]:
    """Return every finding; measured scores are rounded, guarantees are exact.

    Of all other checks only the outcome is published.
    """
    scores = round_report(report, context.policy.attacker.epsilon).scores
    words = {score.name: format_bound(score) for score in scores}
    words |= {
        each.check: each.observed for each in findings if each.check.startswith(AMPLIFICATION)
    }
    return [
        {
            "check": each.check,
            "outcome": each.outcome,
            "observed": words.get(each.check, ""),
            "limit": each.limit,
        }
        for each in findings
    ]


def list_attack_versions(report: AuditReport) -> dict[str, str]:
    """Return the digest of the file of each attack that was run; ``code_version`` is of all."""
    names = {score.name.split(".")[0] for score in report.scores} & set(ATTACKS)
    return {name: digest_source(type(ATTACKS[name])) for name in sorted(names)}


def digest_source(kind: type) -> str:
    """Return the digest of the file that defines a class."""
    source = Path(str(sys.modules[kind.__module__].__file__))
    return hashlib.sha256(source.read_bytes()).hexdigest()[:16]

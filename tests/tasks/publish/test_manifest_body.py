"""What a manifest says of a release."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.verdict import Finding, Verdict
from ppdm_core.numerics.noise import Noise
from tasks.publish.manifest_body import build_manifest
from tasks.release_summary import Summary
from tests.support.contexts import make_context
from tests.support.facts import make_sanitized_facts, make_validated_facts
from warehouse.database import Run
from warehouse.stages import Stage

SOURCE = "5f" * 32  # digest of the source file
RUN = Run(
    "t-0001", "t", 1, SOURCE, "f", "c", Stage.APPROVED, 1, None, datetime(2026, 3, 2, tzinfo=UTC)
)
RISK = Score("record_linkage.rate", "privacy", "down", 0.0312, 0.0213, 0.0413, 100, 0.0101, 0.0312)
FINDINGS = (
    Finding(RISK.name, "PASS", "why", observed="0.0312", limit="0.1"),
    Finding("amplification.record", "PASS", "why", observed="e^2.5", limit="3"),
    Finding("covered.membership", "PASS", "why", observed="37 records"),
)


def build(folder: Path, noise: Noise) -> dict[str, object]:
    verdict = Verdict("PASS", FINDINGS, "p", "d", "c")
    summary = Summary(
        folder,
        RUN,
        validated=make_validated_facts(),
        sanitized=make_sanitized_facts(),
        report=AuditReport((RISK,)),
        verdict=verdict,
    )
    return build_manifest(make_context(folder), summary, noise)


@pytest.fixture
def manifest(tmp_path: Path) -> dict[str, object]:
    return build(tmp_path, Noise(bytes(32)))


def test_build_manifest_measured_figures_only_in_bands(manifest: dict[str, object]) -> None:
    verdict = manifest["verdict"]
    assert isinstance(verdict, dict)
    found = {each["check"]: each["observed"] for each in verdict["findings"]}
    assert "0.05" in found[RISK.name] or "5 %" in found[RISK.name]
    assert found["amplification.record"] == "e^2.5"  # a guarantee is exact
    assert found["covered.membership"] == ""
    for figure in ("3.1", "0.031", "2.1", "0.021", "4.1", "0.041", "37"):
        assert figure not in str(verdict), figure


def test_build_manifest_source_digest_hidden_by_key(
    manifest: dict[str, object], tmp_path: Path
) -> None:
    """A recipient who has the source file must not be able to confirm it."""
    other = build(tmp_path, Noise(bytes([1]) * 32))
    assert manifest["input_hmac"] != other["input_hmac"]
    for text in (SOURCE, hashlib.sha256(SOURCE.encode()).hexdigest()):
        assert text not in str(manifest)
    assert build(tmp_path, Noise(bytes(32)))["input_hmac"] == manifest["input_hmac"]

from __future__ import annotations

from inspect import signature
from typing import Any
from unittest.mock import MagicMock

import pytest

import tasks.judge.task
from ppdm_core.model.verdict import Finding, Verdict
from tasks.judge.task import reach_verdict

CHECKS = ("judge_earlier_refusals", "judge_record_ids", "judge_tunes")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("outcome", ["REVIEW", "FAIL"])
def test_reach_verdict_finding_of_earlier_tables_no_pass(
    outcome: Any, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = Verdict("PASS", (Finding("a", "PASS", "Fine."),), "p", "d", "c")
    found = Finding(check, outcome, "It did not pass before.")
    monkeypatch.setattr(tasks.judge.task, "decide", lambda *given, **named: passed)
    for name in CHECKS:
        findings = (found,) if name == check else ()
        monkeypatch.setattr(tasks.judge.task, name, lambda *given, f=findings: f)
    verdict = reach_verdict(*[MagicMock() for _ in signature(reach_verdict).parameters])
    assert (verdict.outcome, verdict.findings[-1]) == (outcome, found)

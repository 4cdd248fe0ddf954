"""What Prefect shows as Markdown: descriptions and cells of tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.shown_text import show_line
from ppdm_core.model.verdict import Finding, Verdict
from tasks.notify import prefect_artifacts
from tasks.notify.prefect_artifacts import (
    describe_verdict,
    list_findings,
    show_rejection,
    show_verdict,
)
from tasks.release_summary import Summary
from tests.support.hostile_text import HOSTILE, is_safe_line, list_structure, read_text
from warehouse.database import Run
from warehouse.stages import Stage

RUN: Any = Run("t-0001", "t", 1, "s", "f", "c", Stage.REFUSED, 1, None, None)  # type: ignore[arg-type]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The tables that Prefect would receive; no server is asked."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr("prefect.artifacts.create_table_artifact", lambda **a: found.append(a))
    for name in ("name_run", "emit"):
        monkeypatch.setattr(prefect_artifacts, name, lambda *given: None)
    return found


def check_cell(cell: str, text: str) -> None:
    assert is_safe_line(cell)
    assert list_structure(f"x {cell}") == list_structure("x y")
    assert " ".join(show_line(text).split()) in read_text(f"x {cell}")


def make_findings(text: str) -> Summary:
    findings = (
        Finding("required.x", "PASS", "It ran."),
        Finding("knn_accuracy", "FAIL", f"Too low (DPO: {text}).", text, text),
    )
    return Summary(Path("home"), RUN, verdict=Verdict("FAIL", findings, "p", "d", "c"))


@pytest.mark.parametrize("what", HOSTILE)
def test_show_verdict_hostile_reason_shown_as_text(what: str, shown: list[dict[str, Any]]) -> None:
    text = HOSTILE[what]
    summary = make_findings(text)
    show_verdict("t", list_findings(summary), describe_verdict(summary))
    ((table),) = shown
    first, second = table["table"]
    assert (first["outcome"], first["check"]) == ("FAIL", "knn_accuracy")  # failures first
    assert second["outcome"] == "PASS"
    for cell in ("observed", "limit"):
        check_cell(first[cell], text)
    plain = make_findings("plain")
    description = table["description"]
    assert list_structure(description) == list_structure(describe_verdict(plain))
    assert all(map(is_safe_line, description.split("\n")))
    assert " ".join(show_line(text).split()) in read_text(description)


def test_describe_verdict_waiting_names_command_and_report() -> None:
    run = replace(RUN, stage=Stage.AWAITING_REVIEW)
    text = describe_verdict(replace(make_findings("x"), run=run))
    assert "ppdm decide t-0001" in text and "`ppdm report t-0001 --open`" in text


@pytest.mark.parametrize("what", HOSTILE)
def test_show_rejection_hostile_column_shown_as_text(
    what: str, shown: list[dict[str, Any]]
) -> None:
    show_rejection("t", "m", BadInput(f"Column '{HOSTILE[what]}' is missing.", remedy="Add it."))
    ((table),) = shown
    assert table["table"] == [{"outcome": "FAIL", "check": "input"}]
    assert list_structure(table["description"]) == list_structure("x `latest` x")
    assert " ".join(show_line(HOSTILE[what]).split()) in read_text(table["description"])

"""What Prefect shows as Markdown: descriptions and cells of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.shown_text import show_line
from ppdm_core.model.verdict import Finding, Verdict
from tasks.notify import prefect_artifacts
from tasks.notify.prefect_artifacts import list_findings, show_rejection, show_verdict
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


@pytest.mark.parametrize("what", HOSTILE)
def test_show_verdict_hostile_reason_shown_as_text(what: str, shown: list[dict[str, Any]]) -> None:
    text = HOSTILE[what]
    finding = Finding("knn_accuracy", "FAIL", f"Too low (DPO: {text}).", text, text)
    verdict = Verdict("FAIL", (finding,), "p", "d", "c")
    summary = Summary(Path("home"), RUN, verdict=verdict)
    show_verdict("t", list_findings(summary), summary.format_outcome_sentence())
    ((table),) = shown
    (row,) = table["table"]
    assert (row["check"], row["outcome"]) == ("knn_accuracy", "FAIL")
    for cell in ("observed", "limit", "why"):
        check_cell(row[cell], text)
    check_cell(table["description"], text)


@pytest.mark.parametrize("what", HOSTILE)
def test_show_rejection_hostile_column_shown_as_text(
    what: str, shown: list[dict[str, Any]]
) -> None:
    show_rejection("t", "m", BadInput(f"Column '{HOSTILE[what]}' is missing.", remedy="Add it."))
    ((table),) = shown
    check_cell(table["table"][0]["why"], HOSTILE[what])
    assert list_structure(table["description"]) == list_structure("x `latest` x")

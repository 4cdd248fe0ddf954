from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest

from ppdm_core.model.errors import Defect, MachineTrouble
from tasks.ingest import judge_process
from tasks.ingest.checks import Check
from tasks.ingest.expectations import judge, validate_figures
from tasks.ingest.judge_process import validate_apart

FIGURES = {"rows": 7, "naïve 'x'": 0.5, "above": 3.0}
LIMITS = [("rows", 1.0, math.inf), ("naïve 'x'", -math.inf, 0.25), ("above", 3.0, 3.0)]


@pytest.fixture(autouse=True)
def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Great Expectations were not imported here."""
    monkeypatch.setattr(judge_process, "LIBRARY", "not imported")


def test_validate_apart_same_as_here() -> None:
    found = validate_apart(FIGURES, LIMITS)
    assert dict(found) == {"rows": True, "naïve 'x'": False, "above": True}
    assert found == validate_figures(FIGURES, LIMITS)


def write_program(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_validate_apart_killed_is_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, f"kill -{int(signal.SIGKILL)} $$")
    monkeypatch.setattr(judge_process.sys, "executable", program)
    with pytest.raises(MachineTrouble, match="signal 9"):
        validate_apart(FIGURES, LIMITS)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 1", "could not be asked"),
        ("echo '[]'", "judged 0 of 1"),
        ("""echo '[["a", 1]]'""", "no verdict"),
        ("""echo '[[null, null]]'""", "failed on the profile"),
        ("""echo '[["b", true]]'""", "judged 1 of 1"),
    ],
)
def test_judge_apart_wrong_answer_is_a_defect(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_process.sys, "executable", write_program(tmp_path, script))
    with pytest.raises(Defect, match=words):
        judge({"a": 1.0}, [Check("a", "", "", low=0.0, high=2.0)], validate_apart)

"""`ppdm init --ask` on a terminal."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from ppdm.cli.init import draft_file
from ppdm.cli.questions import ask_text
from ppdm.cli.release_files import read_release_file
from ppdm_core.model.errors import BadInput
from tests.support.drafts import NOISE, write_table
from tests.support.pseudo_terminal import PPDM, TerminalCommand


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_table(
        tmp_path,
        {
            "key": lambda i: f"k{i}",
            "code": lambda i: f"c{i * 7}",
            "other": lambda i: NOISE[-i - 1],
            "class": lambda i: "ab"[i % 2],
            "kind": lambda i: "xyz"[i % 3],
        },
    )


def start(source: Path, *options: str) -> TerminalCommand:
    out = source.with_name("draft.toml")
    return TerminalCommand([*PPDM, "init", str(source), "--out", str(out), "--ask", *options])


def answer(command: TerminalCommand, question: str, text: str) -> None:
    command.wait_for(question, timeout=60)
    os.write(command.main, f"{text}\n".encode())


@pytest.mark.extended
def test_init_ask_answers_written(source: Path) -> None:
    command = start(source)
    answer(command, "author [decide later]: ", "registry")
    answer(command, "receive it [decide later]: ", "partners")
    answer(command, "limits [decide later]: ", "DPO")
    answer(command, "(- for none) [class]: ", "clas")
    command.wait_for("Unknown column 'clas'. Did you mean 'class'?")
    os.write(command.main, b"kind\n")
    answer(command, "(- for none) [key]: ", "code")
    answer(command, "[pipeline]: ", "")
    assert command.wait() == 0, command.text
    file, _ = read_release_file(source.with_name("draft.toml"))
    assert (file.dataset.owner, file.dataset.audience) == ("registry", "partners")
    assert {limit.set_by for limit in file.limits.values()} == {"DPO"}
    assert (file.columns["kind"].role, file.dataset.record_id) == ("label", "code")
    assert "Drafted" in command.text and "Traceback" not in command.text


@pytest.mark.slow
def test_init_ask_enter_takes_what_is_shown(source: Path) -> None:
    command = start(source, "--owner", "registry", "--label", "class", "--json")
    for question in ("receive it [decide later]: ", "limits [decide later]: "):
        answer(command, question, "")
    answer(command, "(- for none) [key]: ", "-")
    answer(command, "[pipeline]: ", "")
    assert command.wait() == 0, command.text
    assert "author" not in command.text and "class, released" not in command.text
    file, _ = read_release_file(source.with_name("draft.toml"))
    assert (file.dataset.owner, file.dataset.audience) == ("registry", "")
    assert file.dataset.record_id is None
    reply = json.loads(next(line for line in command.text.splitlines() if line.startswith("{")))
    assert reply["ok"]


def test_ask_text_end_of_input_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(BadInput, match="The input ended") as caught:
        ask_text("Who", "decide later", "")
    assert caught.value.exit_code == 2


def test_init_ask_without_a_terminal_bad_input(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    out = source.with_name("draft.toml")
    with pytest.raises(BadInput, match="--ask needs a terminal") as caught:
        draft_file(source, out, None, ask=True)
    assert caught.value.exit_code == 2 and not out.exists()

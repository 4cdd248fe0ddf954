"""What commands print: to a file without cuts, to a terminal within its width."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import RenderableType
from rich.text import Text

from ppdm.cli.console import (
    WIDTH,
    format_lines,
    make_grid,
    make_panel,
    render_text,
    wrap_item,
    wrap_text,
)
from ppdm.cli.ledger import render_entries
from ppdm.cli.result import CommandResult, format_error, run_command
from ppdm_core.model.errors import BadInput
from tests.support.hostile_text import HOSTILE, is_safe_line
from tests.support.ledger_rows import make_entries
from tests.support.pseudo_terminal import ESCAPE, run_on_terminal

ROOT = Path(__file__).resolve().parents[3]
PROGRESS = """
import time
from ppdm.cli.progress import AUDIT_STEPS, show_progress
from tasks.progress import Step, log_progress, start_step
with show_progress(AUDIT_STEPS):
    start_step(Step.READ)
    time.sleep(0.2)
    start_step(Step.ATTACK)
    for step, share in (("attack 1 of 2: a", 0.0), ("attack 2 of 2: b", 0.5)):
        log_progress(step, share)
        time.sleep(0.3)
"""
LEDGER = """
from ppdm.cli.console import print_view
from ppdm.cli.ledger import render_entries
from tests.support.ledger_rows import make_entries
print_view(render_entries(make_entries()))
"""


def format_grid(rows: list[tuple[RenderableType, ...]], *titles: str) -> str:
    return render_text(make_grid(rows, titles, right=[1] if titles else []))


def test_make_grid_file_one_complete_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows: list[tuple[RenderableType, ...]]
    rows = [("a", "1", "x" * 300), ("bbb", "1,000", "[bold]not markup[/bold] :smile:")]
    assert format_grid(rows, "name", "count", "text").splitlines() == [
        "name  count  text",
        "a         1  " + "x" * 300,
        "bbb   1,000  [bold]not markup[/bold] :smile:",
    ]


def test_make_grid_cell_of_two_lines_second_is_indented() -> None:
    assert format_grid([("ok", "fine"), ("LOOK", Text("bad\nremedy"))]).splitlines() == [
        "ok    fine",
        "LOOK  bad",
        "      remedy",
    ]


def test_wrap_text_long_text_within_width_and_complete() -> None:
    text = " ".join(["pseudo-terminal"] * 40)
    lines = wrap_text(text, "  - ")
    assert len(lines) > 1 and max(map(len, lines)) <= WIDTH
    assert all(line.startswith("    ") for line in lines[1:])
    assert " ".join(lines).split() == ["-", *text.split()]


def test_render_entries_bar_is_full_at_the_limit() -> None:
    _, half, full = render_text(render_entries(make_entries())).splitlines()
    assert full.count("━") == 24 and 11 <= half.count("━") <= 12
    assert "a_rather_long_name-0002  2026-03-02  pca_laplace" in full


@pytest.mark.extended
@pytest.mark.parametrize("columns", [90, 120])
def test_render_entries_terminal_only_bar_shrinks(columns: int) -> None:
    _, *lines = ESCAPE.sub("", run_on_terminal(LEDGER, columns=columns)).splitlines()
    assert len(lines) == 2 and max(map(len, lines)) <= columns
    assert all("a_rather_long_name-000" in line and "charged" in line for line in lines)
    assert 1 <= lines[1].count("━") <= 24


def test_show_progress_terminal_one_live_line_that_vanishes() -> None:
    written = run_on_terminal(PROGRESS)
    for words in ("1/2 read the source", "2/2 attack the copies", "attack 2 of 2: b", "━", "left"):
        assert words in ESCAPE.sub("", written)
    assert written.rstrip().endswith("\x1b[2K")  # the line is erased


def test_show_progress_file_one_line_each_step() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRESS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    lines = [line.partition(" s  ")[2] for line in done.stderr.splitlines()]
    assert lines[:2] == ["1/2 read the source", "2/2 attack the copies"]
    for line, words in zip(lines[2:], ("attack 1 of 2: a", "attack 2 of 2: b"), strict=True):
        assert re.fullmatch(rf"2/2 {words} \(about \d+ s left\)", line)


@pytest.mark.parametrize("what", HOSTILE)
def test_console_hostile_name_adds_no_line_and_moves_no_cursor(what: str) -> None:
    name = HOSTILE[what]
    assert len(format_grid([("a", name), ("b", "c")]).splitlines()) == 2
    panel = render_text(make_panel([name, make_grid([(name, name)])], name, name, "red"))
    assert all(map(is_safe_line, panel.splitlines()))
    assert len(format_lines([f"  1 values of '{name}' filled", "end"]).splitlines()) == 2
    lines = [*wrap_item(f"FAIL: {name}"), *format_grid([(name, name)]).splitlines()]
    lines.append(format_error(BadInput(f"No '{name}'.", file=name, column=name, remedy=name)))
    assert all(map(is_safe_line, lines))
    assert all(line.startswith("    ") for line in wrap_item(f"FAIL: {name}")[1:])


@pytest.mark.parametrize("what", HOSTILE)
def test_run_command_hostile_text_printed_safely(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_command("x", lambda: CommandResult(f"first\n{HOSTILE[what]}"))
    assert all(map(is_safe_line, capsys.readouterr().out.split("\n")))


def test_show_progress_terminal_markup_in_a_step_is_text() -> None:
    code = PROGRESS.replace("attack 1 of 2: a", r"reading [red]x[/red] \x1b]0;y\x07")
    written = run_on_terminal(code, columns=120)
    assert r"[red]x[/red] \x1b]0;y\x07" in written and "\x1b]0" not in written


PANEL = """
from ppdm.cli.console import make_grid, make_panel, print_view
rows = [("a long name of some column that is wrapped", "1.0 %", "x")]
print_view(make_panel(["One sentence. " * 20, make_grid(rows, wrap=(0,))], "REFUSED", "x-1", "red"))
"""


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_panel_terminal_fits_and_is_coloured(columns: int) -> None:
    written = run_on_terminal(PANEL, columns=columns)
    lines = ESCAPE.sub("", written).splitlines()
    assert {len(line) for line in lines} == {min(columns, WIDTH)}
    assert "\x1b[31m" in written and " REFUSED " in lines[0]


def test_panel_no_color_terminal_without_colours() -> None:
    written = run_on_terminal(PANEL, env={"NO_COLOR": "1"})
    assert "\x1b[31m" not in written and " REFUSED " in ESCAPE.sub("", written)


def test_panel_file_without_colours() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PANEL], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= WIDTH

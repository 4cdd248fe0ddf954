"""Links, commands and code of the pages work, and the reference covers everything registered."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ppdm.cli.app import app
from ppdm_core.attacks import ATTACKS
from ppdm_core.metrics import METRICS
from ppdm_core.sanitizers import SANITIZERS
from studies import write_reference_pages as reference

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?ppdm ([a-z][^#\n]*)", re.MULTILINE)
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of a page."""
    return [
        link
        for link in LINK.findall(page.read_text())
        if not link.startswith("http") and not has_target(page, link)
    ]


def has_target(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in list_anchors(target))


def list_anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = FENCE.sub("", page.read_text())
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_links_lead_somewhere(page: Path) -> None:
    assert find_broken_links(page) == []


def test_find_broken_links_missing_file_and_heading_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](#a-title) [b](#b) [c](other.md) [d](page.md#a-title)")
    assert find_broken_links(page) == ["#b", "other.md"]


def list_commands(page: Path) -> list[str]:
    return [
        command for block in FENCE.findall(page.read_text()) for command in COMMAND.findall(block)
    ]


def parse_command(command: str) -> None:
    """Parse a command line of ``ppdm`` without running it."""
    found: Any = typer.main.get_command(app)
    words = shlex.split(re.sub(r"\[.*?\]", "", command))  # without [--optional NAME]
    while hasattr(found, "commands"):
        name, *words = words
        assert name in found.commands, f"ppdm has no command {name}"
        found = found.commands[name]
    found.make_context(name, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_shown_commands_accepted(page: Path) -> None:
    for command in list_commands(page):
        parse_command(command)


def test_list_commands_readme_has_many() -> None:
    assert len(list_commands(ROOT / "README.md")) > 10


@pytest.mark.parametrize("command", ["frobnicate", "status --colour blue", "key forget x"])
def test_parse_command_unknown_refused(command: str) -> None:
    with pytest.raises((AssertionError, typer.BadParameter.__base__)):
        parse_command(command)


def test_pages_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"\bmake (\w+)`", page.read_text())}
    assert named and named <= targets


def test_reference_every_registered_name_described(tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    reference.write_pages(tmp_path / "reference")
    for page in ("attacks.md", "choosing_a_method.md"):
        (tmp_path / page).write_text("")
    for name, registry in (
        ("methods.md", SANITIZERS),
        ("attacks.md", ATTACKS),
        ("metrics.md", METRICS),
    ):
        page = tmp_path / "reference" / name
        assert set(registry) <= list_anchors(page)
        assert find_broken_links(page) == []


NAMED_TEST = re.compile(r"(?:`(test_\w+)` in )?`(tests/[\w/]+\.py)`")


def find_missing_tests(text: str) -> list[str]:
    """Return the tests that a page names and that do not exist."""
    return [
        f"{name} in {path}"
        for name, path in NAMED_TEST.findall(text)
        if not (ROOT / path).is_file() or f"def {name}" not in (ROOT / path).read_text()
    ]


def test_ways_round_the_gate_every_line_names_a_test_that_exists() -> None:
    text = (ROOT / "docs" / "ways_round_the_gate.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    tried = [line for line in lines if not line.startswith(("| what was tried", "| ---"))]
    assert len(tried) > 30
    assert [line for line in tried if not NAMED_TEST.search(line)] == []
    assert find_missing_tests(text) == []
    assert find_missing_tests("`test_x` in `tests/test_docs.py` `tests/no.py`") == [
        "test_x in tests/test_docs.py",
        " in tests/no.py",
    ]


@pytest.mark.slow
def test_self_test_page_shown_command_prints_shown_lines() -> None:
    (block,) = FENCE.findall((ROOT / "docs" / "self_test.md").read_text())[:1]
    (command,) = COMMAND.findall(block)
    done = subprocess.run(
        [sys.executable, "-m", "ppdm.cli.app", *shlex.split(command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    shown = block.partition("\n")[2]
    assert re.sub(r"\d+", "", done.stdout) == re.sub(r"\d+", "", shown)  # counts follow the code


@pytest.mark.slow
@pytest.mark.parametrize("name", reference.PAGES)
def test_reference_stored_page_current(name: str, tmp_path: Path) -> None:
    reference.write_pages(tmp_path)
    stored = (reference.FOLDER / name).read_text()
    assert stored == (tmp_path / name).read_text(), "run `make docs`"

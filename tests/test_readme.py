"""Files and commands that README, CONTRIBUTING and docs name exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_local_links_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    local = [link for link in links if not link.startswith("http")]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert missing == []


def test_pages_named_commands_exist() -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    named = set(re.findall(r"(?:^|`)ppdm ([a-z][a-z-]*)", pages, re.MULTILINE))
    help_text = subprocess.run(
        [sys.executable, "-m", "ppdm.cli.app", "--help"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    known = set(re.findall(r"^  ([\w-]+) ", help_text, re.MULTILINE))
    assert named
    assert named <= known


def test_pages_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`?\bmake (\w+)`?", page.read_text()))
        assert named <= targets

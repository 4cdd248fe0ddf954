"""Hooks of a home: a real release and a withdrawal run them, and they learn nothing private."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.entries import KEY
from tests.support.history import TOKEN, first_rows
from tests.support.small_release import FEATURES, Small

Maker = Callable[..., Small]
DUMP = """
import json, os, sys
seen = {"stdin": sys.stdin.read(), "argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(seen) + chr(10))
"""


def write_hooks(release: Small, *commands: list[str], mode: int = 0o600) -> None:
    release.home.mkdir(exist_ok=True)
    path = release.home / "hooks.toml"
    path.write_text("".join(f"[[hook]]\ncommand = {json.dumps(each)}\n" for each in commands))
    path.chmod(mode)


def list_failures(release: Small) -> list[str]:
    events: list[dict[str, Any]] = json.loads(release.ask("history", "--json").stdout)["events"]
    return [each["release_id"] for each in events if each["kind"] == "hook failed"]


@pytest.mark.slow
def test_hooks_release_and_withdrawal_three_facts_no_private_value(
    small: Maker, tmp_path: Path
) -> None:
    release, seen = small("hooked", first_rows()).write(), tmp_path / "seen"
    write_hooks(release, [sys.executable, "-I", "-c", DUMP, str(seen)], ["/bin/sh", "-c", "exit 3"])
    result = release.run()
    assert result.exit_code == 0, result.stderr
    assert release.ask("withdraw", "hooked-0001", "--reason", "A test.").exit_code == 0
    text = seen.read_text()
    payloads = [json.loads(json.loads(line)["stdin"]) for line in text.splitlines()]
    about = {"id": "hooked-0001", "dataset": "hooked"}
    assert payloads == [{**about, "outcome": "published"}, {**about, "outcome": "withdrawn"}]
    needles = [TOKEN, KEY.hex(), *(row[name] for row in release.rows[:25] for name in FEATURES)]
    assert [needle for needle in needles if needle in text] == []
    assert list_failures(release) == ["hooked-0001", "hooked-0001"]  # of the second hook
    assert release.ask("history", "--verify").exit_code == 0


@pytest.mark.extended
def test_release_hooks_of_other_mode_refused_before_it_begins(small: Maker, tmp_path: Path) -> None:
    release, touched = small("hooked").write(), tmp_path / "touched"
    write_hooks(release, ["/usr/bin/touch", str(touched)], mode=0o644)
    result = release.run("release", "--json")
    error = json.loads(result.stdout)["error"]
    assert result.exit_code == 2
    assert error["message"] == "hooks.toml of the home has mode 644, not 600."
    assert error["remedy"].startswith("Run: chmod 600 ")
    assert not touched.exists() and release.versions() == []
    shown = release.ask("doctor", "--json")
    hooks = [each for each in json.loads(shown.stdout)["remarks"] if each["about"] == "hooks"]
    assert [each["text"] for each in hooks] == [error["message"]]


@pytest.mark.extended
@pytest.mark.parametrize("section", ["hook", "hooks", "notify"])
def test_release_file_with_a_command_refused(small: Maker, section: str) -> None:
    release = small("hooked")
    release.content[section] = [{"command": ["/usr/bin/true"]}]
    result = release.write().run("check")
    assert result.exit_code == 2 and f"'{section}'" in result.stderr

"""A release killed between verdict and publication, before random lines or before every line with
a side effect, is published completely or not at all, and is charged once."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.test_ledger import charges
from tests.support.forkserver import ROOT, Command, start_cli
from tests.support.kills import check_published, check_same_bytes, orphans
from tests.support.small_release import Small
from tests.support.strike import NEVER
from warehouse.publishing.manifest import verify

Maker = Callable[..., Small]
AT_ONCE = 2
# What changes something outside the process.
SIDE_EFFECTS = (
    ".execute(",
    ".rename(",
    ".mkdir(",
    ".unlink(",
    "rmtree(",
    "write_bytes(",
    "write_text(",
)


@dataclass(frozen=True)
class Ready:
    audited: Small  # everything is ready for the verdict; to be copied
    whole: Small  # the same, published without being killed
    lines: list[str]  # of our own code, in the order in which they are met


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Ready:
    audited = release_in(tmp_path_factory.mktemp("audited"))
    result = audited.write().run("attack shadows", entry="prepared")
    assert result.exit_code == 0, result.stderr
    whole = audited.copied_to(tmp_path_factory.mktemp("whole") / "copy")
    result = strike(whole, NEVER).wait()
    assert result.exit_code == 0, result.stderr
    return Ready(audited, whole, result.stdout.split())


def strike(release: Small, line: object) -> Command:
    args = [str(line), str(release.file)]
    return start_cli(args, env=release.env, entry="tests.support.strike:struck")


def check_struck(ready: Ready, numbers: Iterable[int], folder: Path) -> None:
    left = list(numbers)
    while left:
        some, left = left[:AT_ONCE], left[AT_ONCE:]
        copies = {number: ready.audited.copied_to(folder / str(number)) for number in some}
        commands = {number: strike(copy, number) for number, copy in copies.items()}
        for number, command in commands.items():
            assert command.wait().exit_code == -9, ready.lines[number - 1]
            check_published(copies[number])
        again = {number: copy.start("", entry="prepared") for number, copy in copies.items()}
        for number, command in again.items():
            result, copy = command.wait(), copies[number]
            assert result.exit_code == 0, (ready.lines[number - 1], result.stderr)
            print(ready.lines[number - 1])  # shown if what follows fails
            check_same_bytes(copy, ready.whole)
            assert orphans(copy) == []
            assert charges(copy.home) == charges(ready.whole.home), ready.lines[number - 1]
            shutil.rmtree(copy.folder)


def list_side_effects(ready: Ready) -> list[int]:
    """Numbers of the lines that change something outside the process."""
    found = []
    for number, line in enumerate(ready.lines, 1):
        file, _, place = line.rpartition(":")
        if not file.endswith(".py"):  # a template, whose lines are numbered otherwise
            continue
        text = (ROOT / file).read_text().splitlines()[int(place) - 1]
        if any(call in text for call in SIDE_EFFECTS):
            found.append(number)
    return found


@pytest.mark.slow
def test_strike_lines_cover_publish_and_ledger(ready: Ready) -> None:
    verify(ready.whole.published / "latest")
    assert set(charges(ready.whole.home).values()) == {1}
    files = {line.partition(":")[0] for line in ready.lines}
    assert {
        "warehouse/publishing/publish.py",
        "warehouse/ledger/entries.py",
        "tasks/judge/task.py",
    } <= files
    assert len(ready.lines) > 400 and len(list_side_effects(ready)) > 30


@pytest.mark.slow
def test_release_killed_before_every_side_effect_charged_once(ready: Ready, tmp_path: Path) -> None:
    check_struck(ready, list_side_effects(ready), tmp_path)


@pytest.mark.exhaustive
def test_release_killed_before_many_lines_charged_once(ready: Ready, tmp_path: Path) -> None:
    rng = random.Random(200)
    check_struck(ready, rng.sample(range(1, len(ready.lines) + 1), 200), tmp_path)

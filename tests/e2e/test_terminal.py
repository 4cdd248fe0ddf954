"""One release on a terminal, as a person sees it: steps, Ctrl-C, continuation, panel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import Maker
from tests.support.pseudo_terminal import INTERRUPTED, PPDM, TerminalCommand
from tests.support.small_release import Small

pytestmark = pytest.mark.slow


@dataclass
class Session:
    """A release that was interrupted, continued and shown."""

    release: Small
    interrupted: TerminalCommand
    continued: TerminalCommand
    codes: tuple[int, int]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Session:
    release = release_in(tmp_path_factory.mktemp("terminal")).write()
    command = [*PPDM, "release", release.file.name]
    first = TerminalCommand(command, env=release.env, cwd=release.folder)
    first.wait_for("7/11 attack the copies")
    first.press_ctrl_c()
    code = first.wait()
    second = TerminalCommand(command, env=release.env, cwd=release.folder)
    return Session(release, first, second, (code, second.wait()))


def test_interrupted_release_one_line_says_what_is_kept(session: Session) -> None:
    line = session.interrupted.text.rpartition("ppdm: ")[2]
    assert session.codes[0] in INTERRUPTED and "Traceback" not in session.interrupted.text
    words = " ".join(line.split())
    assert words == (
        "Interrupted: small-0001 is kept at its stage 'sanitized', and nothing was published. "
        "To continue, to the same bytes: ppdm release small.toml"
    )


def test_continued_release_same_run_is_published(session: Session) -> None:
    assert session.codes[1] == 0
    assert session.release.versions() == ["0001"]


def test_progress_every_step_with_number_and_times(session: Session) -> None:
    text = session.interrupted.text
    for number, label in (
        (1, "start the libraries and servers"),
        (2, "read the source"),
        (3, "validate the table"),
        (4, "perturb the table"),
        (7, "attack the copies"),
    ):
        assert f"{number}/11 {label}" in text
    for number, label in ((8, "test the policy"), (9, "judge"), (10, "publish"), (11, "log to")):
        assert f"{number}/11 {label}" in session.continued.text
    assert re.search(r"import Prefect \(1 of 3\)", text)
    assert re.search(r"\d:\d\d in all, (about \d+ (s|min) left|almost done)", text)
    assert re.search(r"attack \d+ of \d+: \w+", text + session.continued.text)


def test_panel_last_on_screen_and_coloured(session: Session) -> None:
    panel = session.continued.text[session.continued.text.rindex("╭") :].splitlines()
    assert "PUBLISHED" in panel[0] and "small-0001" in panel[0]
    assert {len(line) for line in panel if line} == {80}
    assert "\x1b[32m" in session.continued.written


@pytest.mark.parametrize("arguments", [("show", "latest"), ("status",), ("history",), ("doctor",)])
def test_commands_on_the_home_fit_80_columns(
    session: Session, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    env = {**session.release.env, "PPDM_HOME": str(session.release.home)}
    command = TerminalCommand([*PPDM, *arguments], env=env, cwd=tmp_path)
    assert command.wait() == 0
    assert max(map(len, command.text.splitlines())) <= 80

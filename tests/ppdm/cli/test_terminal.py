"""What a person sees of a command on a terminal: a sign of life at once, one line after Ctrl-C."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.pseudo_terminal import INTERRUPTED, PPDM, TerminalCommand
from tests.support.small_release import Small

ATTEMPTS = 3  # the machine may be busy
PREFECT_LOGGING = """
import time
from ppdm.cli.progress import RELEASE_STEPS, show_progress
from tasks.progress import Step, log_progress, start_step
with show_progress(RELEASE_STEPS):
    start_step(Step.START)
    import logging.config
    logging.config.dictConfig({"version": 1})  # as Prefect does when it is imported
    start_step(Step.ATTACK)
    log_progress("attack 3 of 44: shrinkage", 0.05)
    time.sleep(0.3)
"""


def test_release_terminal_sign_of_life_within_a_second_then_ctrl_c(tmp_path: Path) -> None:
    release = Small(tmp_path, "small", {}).write()
    seconds = []
    for _ in range(ATTEMPTS):
        command = TerminalCommand([*PPDM, "release", str(release.file)])
        command.wait_for("1/11 start the libraries and servers")
        command.press_ctrl_c()
        code = command.wait()
        assert command.first_output is not None
        seconds.append(command.first_output)
        last = command.text.rstrip().splitlines()[-1]
        words = " ".join(command.text.split())
        assert code in INTERRUPTED and "Traceback" not in command.text, command.text
        assert "ppdm: Interrupted" in command.text and "was kept" in words, last
        if min(seconds) < 1:
            break
    queue = os.getloadavg()[0] / (os.cpu_count() or 1)  # of processes, for each core
    assert min(seconds) < max(1.0, queue)
    assert not (release.home / "published" / "small").exists()


def test_progress_logging_configured_again_display_goes_on() -> None:
    command = TerminalCommand([sys.executable, "-c", PREFECT_LOGGING])
    assert command.wait() == 0
    assert "attack 3 of 44: shrinkage" in command.text and "7/11" in command.text


def test_release_terminal_bad_input_one_line(tmp_path: Path) -> None:
    release = Small(tmp_path, "small", {}).write()
    release.file.write_text(release.file.read_text().replace("pca_laplace", "pca_laplce"))
    command = TerminalCommand([*PPDM, "release", str(release.file)])
    assert command.wait() == 2
    message = command.written.rpartition("\x1b")[2].partition("ppdm: ")[2]
    assert "pca_laplce" in message and "Traceback" not in command.text
    assert not release.home.exists()


WRAPPED = """
import os, signal
from ppdm.cli.result import run_command
from ppdm_core.model.errors import Defect
from tasks.progress import log_progress

def command():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        HANDLE
    log_progress("the command goes on")

run_command("check", command)
"""
DELETED = """
import os, signal
from ppdm.cli.result import run_command
from tasks.progress import log_progress

class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

def command():
    Deleted()
    log_progress("the command goes on")

run_command("check", command)
"""


@pytest.mark.parametrize(
    "script",
    [
        WRAPPED.replace("HANDLE", "raise Defect('a library made this of it')"),
        WRAPPED.replace("HANDLE", "pass"),
        DELETED,
    ],
    ids=["changed", "lost", "while an object is deleted"],
)
def test_ctrl_c_changed_or_lost_by_a_library_still_interrupts(script: str) -> None:
    command = TerminalCommand([sys.executable, "-c", script])
    assert command.wait() in INTERRUPTED
    assert command.text.strip() == (
        "ppdm: Interrupted; nothing was kept. To start again, run the same command."
    )


def test_reviewer_key_terminal_passphrase_not_shown(tmp_path: Path) -> None:
    env = {"PPDM_KEY_PASSPHRASE": None}
    command = TerminalCommand([*PPDM, "reviewer", "key", "rita.pem"], env=env, cwd=tmp_path)
    for question in ("Passphrase for rita.pem: ", "The same again: "):
        command.wait_for(question)
        command.enter("a hidden passphrase")
    assert command.wait() == 0, command.text
    assert "is in rita.pem" in command.text and "hidden" not in command.written
    assert (tmp_path / "rita.pub").is_file()
    add = ("reviewer", "add", "rita", "--public", "rita.pub", "--signed-by", "rita.pem")
    again = TerminalCommand([*PPDM, *add, "--home", "home"], env=env, cwd=tmp_path)
    again.wait_for("Passphrase of rita.pem: ")
    again.enter("another")
    assert again.wait() == 2
    assert "The passphrase is not that of the key" in " ".join(again.text.split())
    assert "another" not in again.written

"""Commands on a pseudo-terminal, as a person runs them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CTRL_C = b"\x03"
# Python itself ends by the signal if it hits an `exec` of a library; a shell shows 130 for both.
INTERRUPTED = (130, -signal.SIGINT)
PPDM = (sys.executable, "-m", "ppdm.cli.app")


def listen_to_ctrl_c() -> None:
    """Take the terminal; a shell that runs tests in the background may have Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class TerminalCommand:
    """A command with a terminal of its own; ``written`` is what it has written so far."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 80,
        env: Mapping[str, str | None] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        hidden = dict.fromkeys(("COLUMNS", "NO_COLOR", "FORCE_COLOR"))  # of the developer
        given = {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **(env or {})}
        changed = {**os.environ, **hidden, **given}
        self.started = time.monotonic()
        self.first_output: float | None = None  # seconds after the start
        self.written = ""
        self.process = subprocess.Popen(
            command,
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=cwd,
            env={name: value for name, value in changed.items() if value is not None},
            start_new_session=True,
            preexec_fn=listen_to_ctrl_c,
        )
        os.close(side)

    @property
    def text(self) -> str:
        """What it has written, without colours and movements of the cursor."""
        return ESCAPE.sub("", self.written)

    def read(self, timeout: float) -> bool:
        """Read what is there; return False at the end of the output."""
        if not select.select([self.main], [], [], timeout)[0]:
            return True
        try:
            some = os.read(self.main, 65536)
        except OSError:  # Linux raises when the last writer has closed the terminal
            return False
        if some and self.first_output is None:
            self.first_output = time.monotonic() - self.started
        self.written += some.decode(errors="replace")
        return bool(some)

    def wait_for(self, words: str, timeout: float = 300) -> None:
        """Read until it has written the words."""
        deadline = time.monotonic() + timeout
        while words not in self.text:
            is_open = self.read(0.1)
            if not is_open or time.monotonic() > deadline:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"{words!r} was not written: {self.text[-2000:]}")

    def enter(self, text: str) -> None:
        """Type a line."""
        os.write(self.main, f"{text}\n".encode())

    def press_ctrl_c(self) -> None:
        os.write(self.main, CTRL_C)

    def wait(self, timeout: float = 300) -> int:
        """Read to the end, and return the exit code."""
        deadline = time.monotonic() + timeout
        while self.read(0.2):
            if time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"It did not end: {self.text[-2000:]}")
        code = self.process.wait(30)
        os.close(self.main)
        return code


def run_on_terminal(
    code: str, *, columns: int = 80, env: Mapping[str, str | None] | None = None
) -> str:
    """Return what a script writes to a terminal of this width."""
    command = TerminalCommand([sys.executable, "-c", code], columns=columns, env=env)
    assert command.wait() == 0, command.written
    return command.written

"""``ppdm --help`` against an empty Python program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Comparison, Side

PYTHON_PATH = Path(sys.executable)


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare the start of the command line with the start of Python."""
    yield [
        Comparison(
            "ppdm --help",
            Side(
                "the installed command",
                lambda: run_command(PYTHON_PATH.with_name("ppdm"), "--help"),
            ),
            Side("python -c pass", lambda: run_command(PYTHON_PATH, "-c", "pass")),
        )
    ]


def run_command(*command: str | Path) -> None:
    """Run a process to its end."""
    # Without cached bytecode both sides would measure the compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)

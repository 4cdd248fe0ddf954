"""``ppdm --help`` against a Python that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Comparison, Side

PYTHON = Path(sys.executable)


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    yield [
        Comparison(
            "ppdm --help",
            Side("the installed command", lambda: run(PYTHON.with_name("ppdm"), "--help")),
            Side("python -c pass", lambda: run(PYTHON, "-c", "pass")),
        )
    ]


def run(*command: str | Path) -> None:
    # Without cached bytecode both would measure the compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)

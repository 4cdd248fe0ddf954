"""A short process for Great Expectations, whose import takes 200 MB that are free again after it.

`ppdm check` holds the table meanwhile. It sends figures and limits, and gets which of them pass.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from ppdm_core.model.errors import Defect, MachineTrouble
from tasks.ingest.expectations import Judged, Limits, Profile, validate_figures

LIBRARY = "great_expectations"


def validate_apart(figures: Profile, limits: Sequence[Limits]) -> list[Judged]:
    """Return what Great Expectations says of each figure, in another process.

    If this process has it already, nothing is saved.
    """
    if LIBRARY in sys.modules:
        return validate_figures(figures, limits)
    done = subprocess.run(
        [sys.executable, "-m", "tasks.ingest.judge_process"],
        cwd=Path(__file__).resolve().parents[2],  # not where a user's modules are
        input=json.dumps([dict(figures), list(limits)]).encode(),
        capture_output=True,
    )
    if done.returncode < 0:
        raise MachineTrouble(
            f"The process that validates the table was ended (signal {-done.returncode}).",
            remedy="Check the free memory, then try again.",
        )
    if done.returncode:
        raise Defect("Great Expectations could not be asked.")
    return [(key, success) for key, success in json.loads(done.stdout)]


def answer() -> None:
    """Judge the figures in the standard input."""
    figures, limits = json.load(sys.stdin.buffer)
    with redirect_stdout(sys.stderr):
        judged = validate_figures(figures, limits)
    sys.stdout.write(json.dumps(judged))


if __name__ == "__main__":
    answer()

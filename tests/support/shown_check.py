"""The check of a release that docs/proof.md shows, run as a recipient without ppdm runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proof.md"


def run_shown_check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run it in a folder that contains `small/0001` and `steward.pem`."""
    (block,) = re.findall(r"```python\n(.+?)```", PAGE.read_text(), re.DOTALL)
    command = [sys.executable, "-I", "-c", block]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

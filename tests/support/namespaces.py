"""Commands inside user namespaces, as a user would start them to look like another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DISGUISE = ("unshare", "-U", "--map-user=12345")  # whoever runs it looks like this user
PRINT_UID = """
from ppdm_core.model.errors import Refused
from warehouse.process_user import read_process_uid
try:
    print(read_process_uid())
except Refused as error:
    print("refused:", error)
"""


@cache
def explain_no_namespaces() -> str:
    """Return why no user namespace can be made here; nothing if it can."""
    if shutil.which("unshare") is None:
        return "there is no command unshare"
    made = subprocess.run([*DISGUISE, "true"], capture_output=True, check=False)
    return "" if made.returncode == 0 else "this system makes no user namespaces"


def skip_without_namespaces() -> None:
    if reason := explain_no_namespaces():
        pytest.skip(reason)


def run_python(
    prefix: Sequence[str], code: str, env: Mapping[str, str] | None = None, *, exit_code: int = 0
) -> str:
    """Return what a program prints; ``prefix`` is the command that starts it."""
    result = subprocess.run(
        [*prefix, sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == exit_code, result
    return result.stdout.strip()

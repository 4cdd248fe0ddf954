"""The command `withdraw` needs no Prefect, which reports usage unless it is set up first."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.extended
def test_withdraw_module_imports_no_server_library() -> None:
    code = "import sys, ppdm.cli.withdraw; print({'prefect', 'mlflow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

"""No command imports a server library before its environment is set.

Prefect reports usage and writes to the user's own folder unless it is set up first.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import ppdm

SCRIPT = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    found = {"prefect", "mlflow", "great_expectations"} & set(sys.modules)
    assert not found, (name, found)
"""


def test_modules_of_commands_import_no_server_library() -> None:
    names = [each.name for each in pkgutil.walk_packages(ppdm.__path__, "ppdm.")]
    assert {"ppdm.cli.sites", "ppdm.cli.decide", "ppdm.cli.withdraw"} <= set(names)
    done = subprocess.run([sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

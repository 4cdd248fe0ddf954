"""Leak tests of the attacks that most tests rely on, run once in a test run, not in every home.

The children of the fork server get the results that they would find, with the code as it is now.
"""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.shared_files import make_once

ATTACKS = ("transform_inverse", "shrinkage", "known_pairs", "record_linkage", "membership")

EVERY_HOME = ""


class SharedLeakTests(dict[Any, Any]):
    """Leak tests that count as found in every home."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key) or super().get((EVERY_HOME, *key[1:]), default)


@cache
def run_shared_leak_tests() -> dict[tuple[str, str, str], tuple[object, ...]]:
    """Return the leak tests by home, version and attack, as the self-test caches them."""
    from tasks.audit.self_test import name_version
    from warehouse.code_version import compute_code_version

    version = name_version(compute_code_version())
    path = make_once(f"leak tests {version}", write_leak_tests)
    found = pickle.loads(path.read_bytes())
    return {(EVERY_HOME, version, name): tests for name, tests in found.items()}


def write_leak_tests(path: Path) -> None:
    from ppdm_core.audit.self_test.known_answers import run_leak_tests
    from tasks.audit.leak_scan_check import LEAK_SCAN, check_leak_scan

    found = {name: tuple(run_leak_tests(name)) for name in ATTACKS}
    found[LEAK_SCAN] = check_leak_scan()
    path.write_bytes(pickle.dumps(found))

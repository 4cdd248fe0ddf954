"""Leak tests of the attacks that most tests rely on, run once in a test run, not in every home.

The children of the fork server get the results that they would find, with the code as it is now.
"""

from __future__ import annotations

from functools import cache
from typing import Any

ATTACKS = ("transform_inverse", "shrinkage", "known_pairs", "record_linkage", "membership")

EVERY_HOME = ""


class SharedLeakTests(dict[Any, Any]):
    """Leak tests that count as found in every home."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key) or super().get((EVERY_HOME, *key[1:]), default)


@cache
def run_shared_leak_tests() -> dict[tuple[str, str, str], tuple[object, ...]]:
    """Return the leak tests by home, version and attack, as the self-test caches them."""
    from ppdm_core.audit.self_test.known_answers import run_leak_tests
    from tasks.audit import self_test
    from tasks.audit.leak_scan_check import LEAK_SCAN, check_leak_scan
    from tasks.code_version import compute_code_version

    version = self_test.name_version(compute_code_version())
    found = {name: tuple(run_leak_tests(name)) for name in ATTACKS}
    found[LEAK_SCAN] = check_leak_scan()
    return {(EVERY_HOME, version, name): tests for name, tests in found.items()}

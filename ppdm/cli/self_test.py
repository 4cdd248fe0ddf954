"""`ppdm self-test`: run the attacks on planted leaks, and on noise without a leak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ppdm.cli.console import format_table
from ppdm.cli.result import CommandResult
from ppdm_core.audit.self_test.matrix import MAX_ALARMS, list_tested
from ppdm_core.gates.self_test import explain_unproven
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.self_test import NOISE, LeakTest, SelfTestResult
from ppdm_core.settings.errors import suggest_name


def run_self_test(names: Sequence[str]) -> CommandResult:
    """Run the named checks, or all; an attack that misses its leak or alarms on noise fails."""
    from tasks.audit.self_test import check_attacks

    known = list_tested()
    for name in names:
        if name not in known:
            raise BadInput(f"No leak is planted for '{name}'.", remedy=suggest_name(name, known))
    found, failed = check_attacks(names or known)
    tests = tuple(test for each in found.values() for test in each)
    result = SelfTestResult("", "", tests, failed=failed)
    complaints = [why for name in names or known if (why := explain_unproven(result, name))]
    payload = {
        "proofs": [leak_test_as_dict(test) for test in tests],
        "failed": dict(failed),
        "complaints": complaints,
    }
    text = "\n".join([format_tests(tests, failed), *complaints])
    if not complaints:
        return CommandResult(text, payload)
    error = Refused("The self-test failed.", remedy="No release passes with these attacks.")
    return CommandResult(text, payload, exit_code=error.exit_code, error=error)


def leak_test_as_dict(test: LeakTest) -> dict[str, Any]:
    """Return a test as the JSON object that `--json` prints."""
    return {
        "attack": test.attack,
        "plant": test.leak,
        "noticed": test.noticed,
        "repetitions": test.repetitions,
    }


def format_tests(tests: Sequence[LeakTest], failed: Mapping[str, str]) -> str:
    """Return one line for each check of each leak, and for each failure."""
    rows = [(test.attack, test.leak, format_noticed(test)) for test in tests]
    rows += [(name, "failed", kind) for name, kind in failed.items()]
    return format_table(rows, ("check", "planted", "noticed"))


def format_noticed(test: LeakTest) -> str:
    """Return how often a leak was noticed; noise may be noticed a few times."""
    allowed = f"  (at most {MAX_ALARMS})" if test.leak == NOISE else ""
    return f"{test.noticed:>2} of {test.repetitions}{allowed}"

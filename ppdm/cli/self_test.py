"""`ppdm self-test`: run the attacks on planted leaks, and on noise without a leak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group

from ppdm.cli.console import make_grid, make_text
from ppdm.cli.replies.others import LeakTestBody, SelfTestReply
from ppdm.cli.result import CommandResult
from ppdm_core.audit.self_test.matrix import MAX_ALARMS, list_tested
from ppdm_core.gates.self_test import explain_unproven
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.self_test import NOISE, LeakTest, SelfTestResult
from ppdm_core.settings.errors import suggest_name

if TYPE_CHECKING:
    from rich.table import Table


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
    reply = SelfTestReply(
        proofs=[describe_test(test) for test in tests], failed=dict(failed), complaints=complaints
    )
    payload = reply.as_payload()
    view = Group(*map(make_text, complaints), render_tests(tests, failed))
    if not complaints:
        return CommandResult(view, payload)
    error = Refused("The self-test failed.", remedy="No release passes with these attacks.")
    return CommandResult(view, payload, exit_code=error.exit_code, error=error)


def describe_test(test: LeakTest) -> LeakTestBody:
    """Return a test as the JSON object that `--json` prints."""
    return LeakTestBody(
        attack=test.attack,
        plant=test.leak,
        noticed=test.noticed,
        repetitions=test.repetitions,
    )


def render_tests(tests: Sequence[LeakTest], failed: Mapping[str, str]) -> Table:
    """Return one line for each check of each leak, and for each failure."""
    rows = [(test.attack, test.leak, format_noticed(test)) for test in tests]
    rows += [(name, "failed", kind) for name, kind in failed.items()]
    return make_grid(rows, ("check", "planted", "noticed"))


def format_noticed(test: LeakTest) -> str:
    """Return how often a leak was noticed; noise may be noticed a few times."""
    allowed = f"  (at most {MAX_ALARMS})" if test.leak == NOISE else ""
    return f"{test.noticed:>2} of {test.repetitions}{allowed}"

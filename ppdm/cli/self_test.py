"""`ppdm self-test`: run the attacks on planted leaks, and on noise without a leak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ppdm_core.audit.self_test.must_catch import MOST_ALARMS, proven_names

from flows.config.errors import nearest
from ppdm.cli.progress import show_progress
from ppdm.cli.result import CommandResult
from ppdm_core.gates.self_test import explain_unproven
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.self_test import NOISE, Proof, SelfTestResult


def run_self_test(names: Sequence[str]) -> CommandResult:
    """Run the named checks, or all; an attack that misses its leak or alarms on noise fails."""
    from tasks.audit.self_test import try_attacks

    known = proven_names()
    for name in names:
        if name not in known:
            raise BadInput(f"No leak is planted for '{name}'.", remedy=nearest(name, known))
    with show_progress():
        found, failed = try_attacks(names or known)
    proofs = tuple(proof for each in found.values() for proof in each)
    result = SelfTestResult("", "", proofs, failed=failed)
    complaints = [why for name in names or known if (why := explain_unproven(result, name))]
    payload = {
        "proofs": [asdict(proof) for proof in proofs],
        "failed": dict(failed),
        "complaints": complaints,
    }
    text = "\n".join([*format_table(proofs, failed), *complaints])
    if not complaints:
        return CommandResult(text, payload)
    error = Refused("The self-test failed.", remedy="No release passes with these attacks.")
    return CommandResult(text, payload, exit_code=error.exit_code, error=error)


def format_table(proofs: Sequence[Proof], failed: Mapping[str, str]) -> list[str]:
    """Return one line for each check of each leak, and for each failure."""
    width = max(len(name) for name in [*(proof.attack for proof in proofs), *failed])
    lines = [f"{'check':<{width}}  {'planted':<17} noticed"]
    for proof in proofs:
        allowed = f"  (at most {MOST_ALARMS})" if proof.plant == NOISE else ""
        counted = f"{proof.noticed:>2} of {proof.repetitions}{allowed}"
        lines.append(f"{proof.attack:<{width}}  {proof.plant:<17} {counted}")
    return lines + [f"{name:<{width}}  failed: {kind}" for name, kind in failed.items()]

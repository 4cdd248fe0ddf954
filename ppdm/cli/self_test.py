"""`ppdm self-test`: what the attacks notice of the leaks that are planted for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from flows.config.errors import nearest
from ppdm.cli.progress import shown_progress
from ppdm.cli.result import Answer
from ppdm_core.audit.self_test.must_catch import MOST_ALARMS, proven_names
from ppdm_core.gates.self_test import unproven
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.self_test import NOISE, Proof, SelfTestResult


def try_all(names: Sequence[str]) -> Answer:
    from tasks.audit.self_test import try_attacks

    known = proven_names()
    for name in names:
        if name not in known:
            raise BadInput(f"No leak is planted for '{name}'.", remedy=nearest(name, known))
    with shown_progress():
        found, failed = try_attacks(names or known)
    proofs = tuple(proof for each in found.values() for proof in each)
    result = SelfTestResult("", "", proofs, failed=failed)
    complaints = [why for name in names or known if (why := unproven(result, name))]
    payload = {
        "proofs": [asdict(proof) for proof in proofs],
        "failed": dict(failed),
        "complaints": complaints,
    }
    text = "\n".join([*table(proofs, failed), *complaints])
    if not complaints:
        return Answer(text, payload)
    error = Refused("The self-test failed.", remedy="No release passes with these attacks.")
    return Answer(text, payload, exit_code=error.exit_code, error=error)


def table(proofs: Sequence[Proof], failed: Mapping[str, str]) -> list[str]:
    """One line for each check, each leak and each failure."""
    width = max(len(name) for name in [*(proof.attack for proof in proofs), *failed])
    lines = [f"{'check':<{width}}  {'planted':<17} noticed"]
    for proof in proofs:
        allowed = f"  (at most {MOST_ALARMS})" if proof.plant == NOISE else ""
        counted = f"{proof.noticed:>2} of {proof.repetitions}{allowed}"
        lines.append(f"{proof.attack:<{width}}  {proof.plant:<17} {counted}")
    return lines + [f"{name:<{width}}  failed: {kind}" for name, kind in failed.items()]

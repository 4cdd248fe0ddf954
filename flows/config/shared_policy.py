"""A policy file that several release files share.

A release file names it: ``policy = "hospital.toml"``. What the policy demands holds for the
release. The release file may add to it, or be stricter.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ppdm_core.model.errors import BadInput, ErrorList, join_errors
from ppdm_core.model.policy import AMPLIFICATION, LEDGER, Limit
from ppdm_core.settings.policy_text import POLICY_FILE, PolicyFile, parse_policy_file
from ppdm_core.settings.sections import LimitSpec, build_limits

EFFORTS = ("quick", "standard", "thorough")
REMEDY = "Remove it from the release file, or be stricter than the policy."


def apply_shared_policy(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a release file with what its policy demands.

    Raise BadInput where the release file is weaker. Applying a policy again changes nothing.
    """
    name = content["policy"]
    if not isinstance(name, str):
        raise BadInput("The 'policy' key must be the path of a policy file.", remedy="Correct it.")
    text = read_policy(Path(os.path.join(content.get("base", "."), name)), name)
    try:
        shared = parse_policy_file(text)
    except BadInput as error:
        parts = [
            BadInput(f"In the {POLICY_FILE} {name}: {each.message}", remedy=each.remedy)
            for each in error.list_all()
        ]
        raise join_errors(parts) from None
    merged = {**content, "policy_digest": hashlib.sha256(text).hexdigest()}
    errors = ErrorList()
    for key, merge in MERGES.items():
        with errors.collect():
            merged[key] = merge(_get_table(content, key), shared, name)
    errors.raise_all()
    return merged


def read_policy(path: Path, name: str) -> bytes:
    """Return the bytes of a policy file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"The {POLICY_FILE} {name} cannot be read ({type(error).__name__}).",
            remedy="Check the path, which starts in the folder of the release file.",
        ) from None


def _get_table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a section; one of the wrong type is left to the checks of the release file."""
    found = content.get(key, {})
    return dict(found) if isinstance(found, Mapping) else {}


def merge_limits(own: dict[str, Any], shared: PolicyFile, policy: str) -> dict[str, Any]:
    """Return the limits of both; a limit of the release file must not be weaker."""
    errors = ErrorList()
    for name, spec in shared.limits.items():
        if name not in own:
            own[name] = spec.model_dump()
            continue
        try:
            given = LimitSpec.model_validate(own[name])
        except ValidationError:  # the checks of the release file say what is wrong
            continue
        ours, theirs = build_limits({"ours": given, "theirs": spec}).values()
        if not is_as_strict(name, ours, theirs):
            why = (
                f"The limit '{name}' is weaker than in the policy {policy}: it is "
                f"{format_line(ours)}, and the policy has {format_line(theirs)}."
            )
            errors.add(BadInput(why, remedy=REMEDY))
    errors.raise_all()
    return own


def is_as_strict(name: str, own: Limit, shared: Limit) -> bool:
    """Return whether a limit lets nothing pass that the limit of the policy does not."""
    if own.absolute != shared.absolute or not set(own.waive) <= set(shared.waive):
        return False
    lines = [
        (own.value, shared.value),
        tuple(each.value if each.review is None else each.review for each in (own, shared)),
    ]
    return all(_orient(name, own, a) <= _orient(name, shared, b) for a, b in lines)


def _orient(name: str, limit: Limit, value: float) -> float:
    """Return a limit such that less is stricter."""
    from ppdm_core.gates.score_limits import orient_limit
    from ppdm_core.metrics import METRICS

    metric = METRICS.get(name.rpartition(".")[2])
    if name.startswith((AMPLIFICATION, LEDGER)) or metric is None:
        return value
    return orient_limit(metric, limit, value)


def format_line(limit: Limit) -> str:
    """Return a limit in a few words."""
    parts = [f"{limit.value:g}"]
    parts += [f"with review from {limit.review:g}"] if limit.review is not None else []
    parts += ["absolute"] if limit.absolute else []
    parts += [f"waived for {', '.join(limit.waive)}"] if limit.waive else []
    return " ".join(parts)


def merge_audit(own: dict[str, Any], shared: PolicyFile, policy: str) -> dict[str, Any]:
    """Return the audit with all attacks that either requires, and at least as much effort."""
    required = own.get("required", [])
    more = [name for name in shared.audit.required if name not in required]
    merged = {**own, "required": [*required, *more]} if isinstance(required, list) else own
    demanded = {
        "effort": shared.audit.effort,
        "shadow_draws": shared.audit.shadow_draws,
        "splits": shared.audit.splits,
    }
    errors = ErrorList()
    for key, least in demanded.items():
        if least is None:
            continue
        given = merged.setdefault(key, least)
        ranks = [EFFORTS.index(each) if each in EFFORTS else each for each in (given, least)]
        with errors.collect():
            _check_at_least("audit", key, ranks[0], ranks[1], f"{least}", policy)
    if not shared.audit.tuning:
        given = merged.setdefault("tuning", False)
        with errors.collect():
            _check_at_least("audit", "tuning", not given, True, "false", policy)
    errors.raise_all()
    return merged


def merge_attacker(own: dict[str, Any], shared: PolicyFile, policy: str) -> dict[str, Any]:
    """Return an attacker who knows at least as much as that of the policy."""
    errors = ErrorList()
    for key, least in shared.attacker.model_dump().items():
        given = own.setdefault(key, least)
        with errors.collect():
            _check_at_least("attacker", key, given, least, f"{least:g}", policy)
    errors.raise_all()
    return own


def _check_at_least(
    section: str, key: str, given: Any, least: Any, words: str, policy: str
) -> None:
    if isinstance(given, int | float) and given < least:
        raise BadInput(
            f"The '{key}' key of [{section}] is weaker than in the policy {policy}, which has "
            f"{words}.",
            remedy=REMEDY,
        )


MERGES = {"limits": merge_limits, "audit": merge_audit, "attacker": merge_attacker}

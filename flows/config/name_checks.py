"""Checks that every method, attack, metric and limit that a release file names exists."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flows.config.sections import AuditSpec, SanitizerSpec
from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.model.policy import LABEL
from ppdm_core.settings.errors import check_known
from ppdm_core.settings.limits import AMPLIFICATION_LIMITS, LEDGER_LIMITS, check_limit_name
from ppdm_core.settings.sections import LimitSpec

if TYPE_CHECKING:
    from flows.config.release_file import ReleaseFile


@dataclass(frozen=True)
class KnownNames:
    """The names that a release file may use."""

    methods: Collection[str]
    attacks: Collection[str]
    metrics: Collection[str]
    composites: Collection[str] = ()  # methods that run other methods


def read_registered_names() -> KnownNames:
    """Return the names of everything that is registered."""
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.metrics import METRICS
    from ppdm_core.sanitizers import SANITIZERS

    composites = [name for name, method in SANITIZERS.items() if method.is_composite]
    return KnownNames(SANITIZERS, ATTACKS, METRICS, composites)


def check_limit_names(limits: Mapping[str, LimitSpec]) -> None:
    """Raise BadInput with every limit that has a malformed name, or a waiver without sense."""
    errors = ErrorList()
    for name, limit in limits.items():
        with errors.collect():
            check_limit_name(name, limit.waive)
    errors.raise_all()


def check_required(audit: AuditSpec) -> None:
    """Raise BadInput with every attack that is required twice."""
    errors = ErrorList()
    for name in audit.required:
        if audit.required.count(name) > 1:
            why = f"The audit requires '{name}' twice."
            errors.add(BadInput(why, remedy="Remove one of them."))
    errors.raise_all()


def check_names(file: ReleaseFile, known: KnownNames) -> None:
    """Raise BadInput with every method, attack and metric of the file that does not exist."""
    errors = ErrorList()
    with errors.collect():
        check_section_names(file.sanitizer, file.audit, known)
    for name, limit in file.limits.items():
        with errors.collect():
            check_waivers(name, limit, known)
            check_limited(name, file.audit, known)
    errors.raise_all()


def check_section_names(
    sanitizer: SanitizerSpec | None, audit: AuditSpec | None, known: KnownNames
) -> None:
    """Raise BadInput with every unknown name in two sections; None: one that is not valid."""
    errors = ErrorList()
    if sanitizer is not None:
        with errors.collect():
            check_known("method", sanitizer.method, known.methods)
    for attack in audit.required if audit else ():
        with errors.collect():
            check_known("attack", attack, known.attacks)
    errors.raise_all()


def check_waivers(name: str, limit: LimitSpec, known: KnownNames) -> None:
    """Raise BadInput if a waiver names no method, or a composite, which may run any method."""
    for method in limit.waive:
        check_known("method", method, known.methods)
        if method in known.composites:
            raise BadInput(
                f"'waive' of limit '{name}' names '{method}', which may run any other method.",
                remedy=f"Name the method without a bound that the {method} uses.",
            )


def check_limited(name: str, audit: AuditSpec | None, known: KnownNames) -> None:
    """Raise BadInput if a limit is on an unknown score, or on an attack that is not required."""
    if name in (*AMPLIFICATION_LIMITS, *LEDGER_LIMITS):
        return
    place, _, metric = name.rpartition(".")
    check_known("metric", metric, known.metrics)
    attack = place.partition(".")[0]  # the rest is a scenario of the attack
    # The release itself and its label are always measured.
    if not attack or attack in known.metrics or place == LABEL:
        return
    check_known("attack", attack, known.attacks)
    if audit is not None and attack not in audit.required:
        raise BadInput(
            f"The limit '{name}' is on an attack that the audit does not require.",
            remedy=f"Add '{attack}' to 'required' in [audit].",
        )

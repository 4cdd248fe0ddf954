"""The stages of a release and the only ways between them.

    created -> raw -> validated -> sanitized -> audited -> approved -> published
                                                        `-> refused `-> unchanged, rehearsed

A run whose input is bad ends as `rejected`; one that nobody will continue as `abandoned`.
"""

from __future__ import annotations

from ppdm_core.errors import Defect

ALLOWED: dict[str, frozenset[str]] = {
    "created": frozenset({"raw", "rejected", "abandoned"}),
    "raw": frozenset({"validated", "rejected", "abandoned"}),
    "validated": frozenset({"sanitized", "rejected", "abandoned"}),
    "sanitized": frozenset({"audited", "abandoned"}),
    "audited": frozenset({"approved", "refused", "abandoned"}),
    "approved": frozenset({"published", "unchanged", "rehearsed", "refused", "abandoned"}),
    "published": frozenset(),
    "unchanged": frozenset(),
    "rehearsed": frozenset(),
    "refused": frozenset(),
    "rejected": frozenset(),
    "abandoned": frozenset(),
}
FINISHED = frozenset(stage for stage, onward in ALLOWED.items() if not onward)
ORDER = ("created", "raw", "validated", "sanitized", "audited", "approved")


def check_step(before: str, after: str) -> None:
    if after not in ALLOWED[before]:
        raise Defect(f"A release cannot go from stage '{before}' to '{after}'.")


def is_past(stage: str, done: str) -> bool:
    """Whether a run at ``stage`` has already left the work of ``done`` behind."""
    return stage in FINISHED or ORDER.index(stage) >= ORDER.index(done)

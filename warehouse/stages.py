"""The stages of a release and the only ways between them.

    created -> raw -> validated -> sanitized -> audited -> approved -> published
                                                       |-> waiting -> published
                                                       `-> refused

A PASS is `approved`; a REVIEW is `waiting`, not in a process but here, until people approve or
reject it. From both the release may also end as `unchanged` (the same bytes as the latest) or be
`refused` at the door. A dry run ends as `rehearsed`, bad input as `rejected`, and a run that nobody
will continue, because data, policy or code changed, as `abandoned`.
"""

from __future__ import annotations

from ppdm_core.model.errors import Defect

WAITING = "waiting"
ALLOWED: dict[str, frozenset[str]] = {
    "created": frozenset({"raw", "rejected", "abandoned"}),
    "raw": frozenset({"validated", "rejected", "abandoned"}),
    "validated": frozenset({"sanitized", "rejected", "abandoned"}),
    "sanitized": frozenset({"audited", "abandoned"}),
    "audited": frozenset({"approved", WAITING, "rehearsed", "refused", "abandoned"}),
    WAITING: frozenset({"published", "unchanged", "refused", "abandoned"}),
    "approved": frozenset({"published", "unchanged", "rehearsed", "refused", "abandoned"}),
    "published": frozenset(),
    "unchanged": frozenset(),
    "rehearsed": frozenset(),
    "refused": frozenset(),
    "rejected": frozenset(),
    "abandoned": frozenset(),
}
FINISHED = frozenset(stage for stage, onward in ALLOWED.items() if not onward)
ORDER = ("created", "raw", "validated", "sanitized", "audited", WAITING, "approved")


def check_step(before: str, after: str) -> None:
    if after not in ALLOWED[before]:
        raise Defect(f"A release cannot go from stage '{before}' to '{after}'.")


def is_past(stage: str, done: str) -> bool:
    """Whether a run at ``stage`` has already left the work of ``done`` behind."""
    return stage in FINISHED or ORDER.index(stage) >= ORDER.index(done)

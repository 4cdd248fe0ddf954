"""The stages of a release and the only steps between them.

    created -> raw -> validated -> sanitized -> audited -> approved -> published -> withdrawn
                                                       |-> awaiting_review -> published
                                                       `-> refused

A PASS leads to `approved`. A REVIEW leads to `awaiting_review`: the release stays in the warehouse,
without a process, until it is approved or rejected. From both stages the release may also end as
`no_change` (the same bytes as the latest version) or as `refused` by the checks before publishing.
A dry run ends as `dry_run_passed`, a part whose sums with others the centre of a common release
publishes as `part_judged`, bad input as `rejected`, and a run that cannot be continued,
because data, policy or code changed, as `abandoned`. A published release ends there unless a person
withdraws it.
"""

from __future__ import annotations

from enum import StrEnum

from ppdm_core.model.errors import Defect

RELEASE_AGAIN = "Release the same file again: it continues, to the same bytes."
SHOW_CHECKS = "See every check: ppdm show {release_id} --all"
DECIDE = "To decide: ppdm decide {release_id} --approve --note WHY (or --reject)"
NOT_FINISHED = "NOT FINISHED"
EVENTS = "ppdm.release."


class Stage(StrEnum):
    """A stage of a release; the value is stored, logged and printed as JSON."""

    label: str  # what a screen shows
    event: str | None  # name of the Prefect event at the end of a release; None: no event
    prefect_state: str  # name of a Prefect StateType
    next_step: str  # what a person can do next

    def __new__(
        cls,
        value: str,
        label: str = "",
        next_step: str = "",
        event: str | None = None,
        prefect_state: str = "RUNNING",
    ) -> Stage:
        stage = str.__new__(cls, value)
        stage._value_ = value
        stage.label, stage.next_step = label, next_step
        stage.event = None if event is None else EVENTS + event
        stage.prefect_state = prefect_state
        return stage

    CREATED = "created", NOT_FINISHED, RELEASE_AGAIN
    RAW = "raw", NOT_FINISHED, RELEASE_AGAIN
    VALIDATED = "validated", NOT_FINISHED, RELEASE_AGAIN
    SANITIZED = "sanitized", NOT_FINISHED, RELEASE_AGAIN
    AUDITED = "audited", NOT_FINISHED, RELEASE_AGAIN
    APPROVED = "approved", NOT_FINISHED, RELEASE_AGAIN
    AWAITING_REVIEW = (
        "awaiting_review",
        "WAITS FOR REVIEW",
        DECIDE,
        "awaiting_review",
        "COMPLETED",  # Prefect's button to resume a paused run would show it as running for ever
    )
    PUBLISHED = (
        "published",
        "PUBLISHED",
        "See what was published: ppdm show {release_id}",
        "approved",
        "COMPLETED",
    )
    WITHDRAWN = (
        "withdrawn",
        "WITHDRAWN",
        "Ask recipients to delete their copies. The notice: ppdm verify {release_id}",
        None,
        "COMPLETED",
    )
    NO_CHANGE = (
        "no_change",
        "NO CHANGE",
        "Release again when the source has changed.",
        "no_change",
        "COMPLETED",
    )
    DRY_RUN_PASSED = (
        "dry_run_passed",
        "DRY RUN PASSED",
        "Release the same file without --dry-run.",
        None,
        "COMPLETED",
    )
    PART_JUDGED = (
        "part_judged",
        "PART OF A COMMON RELEASE",
        "Hand over nothing: the centre publishes. The state: ppdm site status FILE",
        None,
        "COMPLETED",
    )
    REFUSED = "refused", "REFUSED", SHOW_CHECKS, "refused", "FAILED"
    REJECTED = (
        "rejected",
        "INPUT REJECTED",
        "Correct the release file or the source, and release again.",
        "refused",
        "FAILED",
    )
    ABANDONED = (
        "abandoned",
        "ABANDONED",
        "See the later runs of the dataset: ppdm status",
        None,
        "CANCELLED",
    )


_ENDED_BEFORE_AUDIT = frozenset({Stage.REJECTED, Stage.ABANDONED})
ALLOWED: dict[Stage, frozenset[Stage]] = {
    Stage.CREATED: frozenset({Stage.RAW}) | _ENDED_BEFORE_AUDIT,
    Stage.RAW: frozenset({Stage.VALIDATED}) | _ENDED_BEFORE_AUDIT,
    Stage.VALIDATED: frozenset({Stage.SANITIZED}) | _ENDED_BEFORE_AUDIT,
    Stage.SANITIZED: frozenset({Stage.AUDITED}) | _ENDED_BEFORE_AUDIT,
    Stage.AUDITED: frozenset(
        {
            Stage.APPROVED,
            Stage.AWAITING_REVIEW,
            Stage.DRY_RUN_PASSED,
            Stage.PART_JUDGED,
            Stage.REFUSED,
            Stage.ABANDONED,
        }
    ),
    Stage.AWAITING_REVIEW: frozenset(
        {Stage.PUBLISHED, Stage.NO_CHANGE, Stage.REFUSED, Stage.ABANDONED}
    ),
    Stage.APPROVED: frozenset(
        {
            Stage.PUBLISHED,
            Stage.NO_CHANGE,
            Stage.DRY_RUN_PASSED,
            Stage.REFUSED,
            Stage.ABANDONED,
        }
    ),
    Stage.PUBLISHED: frozenset({Stage.WITHDRAWN}),
    Stage.WITHDRAWN: frozenset(),
    Stage.NO_CHANGE: frozenset(),
    Stage.DRY_RUN_PASSED: frozenset(),
    Stage.PART_JUDGED: frozenset(),
    Stage.REFUSED: frozenset(),
    Stage.REJECTED: frozenset(),
    Stage.ABANDONED: frozenset(),
}
# No process continues these; only a person can take a published release further.
FINISHED = frozenset(stage for stage, onward in ALLOWED.items() if onward <= {Stage.WITHDRAWN})
ORDER = (
    Stage.CREATED,
    Stage.RAW,
    Stage.VALIDATED,
    Stage.SANITIZED,
    Stage.AUDITED,
    Stage.AWAITING_REVIEW,
    Stage.APPROVED,
)


def check_step(before: Stage, after: Stage) -> None:
    """Raise Defect unless a release may go from one stage to the other."""
    if after not in ALLOWED[before]:
        raise Defect(f"A release cannot go from stage '{before}' to '{after}'.")


def is_past(stage: Stage, done: Stage) -> bool:
    """Return whether a run at ``stage`` has completed the work that leads to ``done``."""
    return stage in FINISHED or ORDER.index(stage) >= ORDER.index(done)

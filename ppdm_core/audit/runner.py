"""Run audits by name, and collect what they found in one report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ppdm_core.attacks import ATTACKS
from ppdm_core.metrics import METRICS
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import LABEL, Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.score import AuditReport, Score, is_sound

T = TypeVar("T")


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """What some work ended in: a value, a reason why it does not apply, or the type of an error."""

    value: T | None = None
    skip: Skip | None = None
    error: str | None = None


def attempt(work: Callable[[], T]) -> Attempt[T]:
    """Do some work; an error becomes a recorded failure, which the gate turns into FAIL.

    The error's message is dropped, because it may quote a value.
    """
    try:
        return Attempt(work())
    except NotApplicable as why:
        return Attempt(skip=why.skip)
    except Exception as error:  # noqa: BLE001
        return Attempt(error=type(error).__name__)


AuditResult = Attempt[tuple[Score, ...]]
RunOne = Callable[[str], AuditResult]
OnProgress = Callable[[int, str], None]  # the number of finished audits, and the name of the next


def run_audit(
    run_one: RunOne, names: Sequence[str], on_progress: OnProgress = lambda done, name: None
) -> AuditReport:
    """Run the audits by name, and collect what each ended in.

    ``run_one`` is ``Auditor.run_one`` in this process, or asks a child process for the same.
    """
    scores: list[Score] = []
    skipped: dict[str, Skip] = {}
    failed: dict[str, str] = {}
    for done, name in enumerate(names):
        on_progress(done, name)
        result = run_one(name)
        if result.skip is not None:
            skipped[name] = result.skip
        elif result.error is not None:
            failed[name] = result.error
        elif not result.value:
            failed[name] = "NoScore"
        elif not all(map(is_sound, result.value)):
            failed[name] = "NotANumber"
        else:
            scores.extend(result.value)
    not_run = {name: Skip(Reason.NOT_REQUESTED) for name in list_audits() if name not in names}
    return AuditReport(tuple(scores), skipped, failed, not_run)


def choose_audits(policy: Policy) -> tuple[str, ...]:
    """Return the audits to run: all, or in a quick audit what the policy names."""
    if policy.effort != "quick":
        return list_audits()
    named = {*policy.required, *(limit.split(".")[0] for limit in policy.limits)}
    return tuple(name for name in list_audits() if name in named or is_quick(name))


def is_quick(name: str) -> bool:
    """Return whether a quick audit measures this without being asked."""
    return name == LABEL or (name in METRICS and METRICS[name].in_quick_audit)


def list_audits() -> tuple[str, ...]:
    """Return all audits: attacks first, because linkage builds on reconstructions."""
    of_release = tuple(name for name, metric in METRICS.items() if metric.goal == "release")
    return (*ATTACKS, LABEL, *of_release)

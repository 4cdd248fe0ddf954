"""Run the release that a file describes in another process."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdm_core.model.errors import (
    BadInput,
    Defect,
    Interrupted,
    MachineTrouble,
    PpdmError,
    Refused,
    Undecided,
)
from ppdm_core.model.verdict import Outcome

ERRORS: dict[str, type[PpdmError]] = {
    kind.kind: kind for kind in (BadInput, Refused, Undecided, MachineTrouble, Interrupted)
}


@dataclass(frozen=True)
class JudgedCheck:
    """The result of one check; the figures are None if it judges none, or an infinite one."""

    check: str
    outcome: Outcome
    why: str
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    limit: float | None = None  # as a value of the figure
    remedy: str | None = None  # what a PASS needs, and what helps


@dataclass(frozen=True)
class ReleaseResult:
    """How a release ended."""

    release_id: str
    dataset: str
    stage: str  # "published", "no_change", "dry_run_passed", "awaiting_review" or "refused"
    method: str
    verdict: Outcome | None
    findings: tuple[JudgedCheck, ...]
    guarantee: str | None  # "bounded", "bounded_given_basis" or "empirical"
    ln_gammas: Mapping[str, float]  # of a component, an attribute and a record
    folder: Path | None  # of the published version; None: nothing was published
    approvals_missing: int  # before a release in review can be published
    reason: str | None  # why it was refused or awaits review

    @property
    def is_published(self) -> bool:
        """Whether a new version was published."""
        return self.folder is not None


def release(
    file: str | Path, *, dry_run: bool = False, show_progress: bool = False
) -> ReleaseResult:
    """Make, attack and judge the release that a file describes; publish it if it passes.

    The pipeline runs in another process, as `ppdm release FILE` does. A release that is refused or
    awaits review is a result, with its findings. Raises ``BadInput`` if the file or the data must
    change, ``MachineTrouble`` if a lock, disk or server failed, ``Defect`` for a bug.

    >>> result = ppdm.release("patients.toml")
    >>> result.release_id, result.stage, result.verdict
    ('patients-0001', 'published', 'PASS')
    >>> release = ppdm.load(result.folder)
    """
    # -P: modules in the working folder are not imported in place of those of the pipeline.
    command = [sys.executable, "-P", "-m", "ppdm.cli.app", "release", str(file), "--json"]
    done = subprocess.run(
        [*command, *(["--dry-run"] if dry_run else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if show_progress else subprocess.DEVNULL,
        check=False,
    )
    try:
        reply: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise Defect(
            f"The release ended with exit code {done.returncode} and without a result.",
            file=str(file),
            remedy=f"Run it on the command line: ppdm release {file}",
        ) from None
    if "release" not in reply:
        raise build_error(reply["error"])
    return build_result(reply["release"], reply["error"])


def build_result(found: Mapping[str, Any], error: Mapping[str, Any] | None) -> ReleaseResult:
    """Return the result that `--json` describes."""
    return ReleaseResult(
        release_id=found["release_id"],
        dataset=found["dataset"],
        stage=found["stage"],
        method=found["method"],
        verdict=found["verdict"],
        findings=tuple(JudgedCheck(**finding) for finding in found["findings"]),
        guarantee=found["guarantee"],
        ln_gammas={
            unit: math.inf if value is None else value for unit, value in found["ln_gammas"].items()
        },
        folder=Path(found["published"]) if found["published"] else None,
        approvals_missing=found["approvals_missing"],
        reason=None if error is None else error["message"],
    )


def build_error(error: Mapping[str, Any]) -> PpdmError:
    """Return the error that `--json` describes, with all others of the same input."""
    kind = ERRORS.get(error["kind"] or "", Defect)
    first, *others = (
        kind(each["message"], file=each["file"], column=each["column"], remedy=each["remedy"])
        for each in (error, *error["others"])
    )
    first.others = tuple(others)
    return first

"""`ppdm reproduce`: run the flow that measures claims, and print which of them hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm.cli.console import make_grid, make_panel, make_text, shorten_path
from ppdm.cli.flow_runs import run_to_end
from ppdm.cli.replies.reproductions import ClaimBody, ReproduceReply, StatementBody
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput, Interrupted, PpdmError, Refused
from tasks.environment import choose_home
from tasks.progress import log_progress
from tasks.reproduce.plan import Reproduction, check_checkout, keep_measured, make_plan

if TYPE_CHECKING:
    from prefect import State
    from rich.console import RenderableType

    from studies.reproduction.decision import Finding

MARKS = {
    "holds": ("✓", "green"),
    "in part": ("~", "yellow"),
    "does not hold": ("✗", "red"),
    "cannot be decided": ("?", "blue"),
}


@dataclass(frozen=True)
class ReproduceRequest:
    """The options of the command."""

    paper: str | None
    claim: str | None
    full: bool
    check: bool
    measured: bool
    processes: int | None


def reproduce_claims(home: Path | None, request: ReproduceRequest) -> CommandResult:
    """Measure claims; fail with exit code 3 if a check finds another verdict."""
    check_checkout()
    if request.processes is not None and request.processes < 1:
        raise BadInput("'--processes' must be at least 1.", remedy="Leave it out for all cores.")
    if request.check and request.measured:
        raise BadInput("'--check' measures again.", remedy="Leave out '--measured'.")
    root = choose_home(home)
    plan = make_plan(root, request.paper, request.claim, full=request.full, check=request.check)
    if request.measured:
        keep_measured(plan)
    found = run_reproduction(root, request)
    reply = build_reply(found)
    error: PpdmError | None = None
    if found.changed:
        names = ", ".join(found.changed)
        error = Refused(
            f"The verdict of {names} is not the committed one.",
            remedy="Compare with docs/reproduction.md; run times depend on the machine.",
        )
    return CommandResult(
        render_findings(found, request),
        reply.as_payload(),
        exit_code=0 if error is None else error.exit_code,
        error=error,
    )


def run_reproduction(home: Path, request: ReproduceRequest) -> Reproduction:
    """Run the flow against a Prefect server, and return what it found."""

    def run() -> State[Any]:
        from flows.reproduce import reproduce

        return reproduce(
            home,
            paper=request.paper,
            claim=request.claim,
            full=request.full,
            check=request.check,
            measured=request.measured,
            processes=request.processes,
            return_state=True,
        )

    interrupted = Interrupted(
        "The reproduction was interrupted; finished measurements are kept.",
        remedy="To continue, run the same command.",
    )
    state = run_to_end(home, run, interrupted, meanwhile=preload_flow)
    found = state.result()
    assert isinstance(found, Reproduction)
    return found


def preload_flow() -> None:
    """Import the flow while the Prefect server starts."""
    log_progress("import Prefect and MLflow", 0.1)
    import flows.reproduce
    from tasks.notify import mlflow_log

    mlflow_log.preload()
    assert flows.reproduce


def render_findings(found: Reproduction, request: ReproduceRequest) -> RenderableType:
    """Return the count, then one row for each claim that does not simply hold."""
    from studies.reproduction.page import describe_counts
    from studies.reproduction.page_cells import explain

    parts: list[RenderableType] = [make_text(describe_counts(found.findings), "bold"), ""]
    shown = found.findings
    if request.claim is None:
        shown = tuple(each for each in shown if str(each.verdict) != "holds")
    rows = []
    for each in shown:
        mark, style = MARKS[str(each.verdict)]
        rows.append((make_text(mark, style), each.claim.id, each.claim.claim, explain(each)))
    if rows:
        parts += [make_grid(rows, ("", "claim", "", "why"), wrap=(2, 3)), ""]
    parts.append(make_text(f"All claims, with pictures: {shorten_path(found.page)}"))
    subtitle = f"measured: {found.measured}, kept from earlier runs: {found.kept}"
    return make_panel(parts, "REPRODUCED", subtitle, "red" if found.changed else "green")


def build_reply(found: Reproduction) -> ReproduceReply:
    """Return the result as `--json` prints it."""
    counted = [str(each.verdict) for each in found.findings if not each.claim.variant_of]
    return ReproduceReply(
        holds=counted.count("holds"),
        in_part=counted.count("in part"),
        does_not_hold=counted.count("does not hold"),
        cannot_be_decided=counted.count("cannot be decided"),
        measured=found.measured,
        kept=found.kept,
        cpu_seconds=found.cpu_seconds,
        seconds=found.seconds,
        changed=list(found.changed),
        page=str(found.page.absolute()),
        claims=[build_claim(each) for each in found.findings],
    )


def build_claim(finding: Finding) -> ClaimBody:
    """Return one claim as `--json` prints it."""
    from studies.reproduction.page_cells import explain

    claim = finding.claim
    return ClaimBody(
        id=claim.id,
        place=claim.place,
        claim=claim.claim,
        figure=claim.figure,
        kind=claim.kind,
        variant_of=claim.variant_of,
        verdict=str(finding.verdict),
        why=explain(finding),
        erratum=list(claim.erratum),
        statements=[
            StatementBody(
                quantity=each.quantity,
                value=each.value,
                low=each.low,
                high=each.high,
                draws=each.draws,
                claimed_low=give_finite(each.claimed[0]),
                claimed_high=give_finite(each.claimed[1]),
                is_true=each.is_true,
            )
            for each in finding.decided
        ],
    )


def give_finite(value: float) -> float | None:
    """Return a number, or None for an infinite one."""
    return value if math.isfinite(value) else None

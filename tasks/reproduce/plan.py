"""What a reproduction measures: claims, their measurements, and where results are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from tasks.reproduce.run_time import RunTime

if TYPE_CHECKING:
    from studies.reproduction.decision import Finding
    from studies.reproduction.measurement import Measurement
    from studies.reproduction.registry import Claim
    from studies.reproduction.results import Result


@dataclass(frozen=True)
class Plan:
    """The claims of one run, and the measurements that decide them, the longest first."""

    claims: tuple[Claim, ...]
    jobs: tuple[Measurement, ...]
    folder: Path  # of results
    out: Path  # folder of the pages
    is_full: bool
    is_whole: bool  # all claims of all papers
    unmeasured: int = 0  # claims that were left out, because they are not measured yet


@dataclass(frozen=True)
class Reproduction:
    """What a run found."""

    findings: tuple[Finding, ...]
    results: Mapping[Measurement, Result]
    page: Path
    measured: int  # measurements of this run; the others were kept from an earlier one
    kept: int
    seconds: float
    time: RunTime | None = None  # of all runs that made the results, if it is known
    changed: tuple[str, ...] = ()  # claims whose verdict is not the committed one

    @property
    def cpu_seconds(self) -> float:
        """Processor time of all measurements, also of those that were kept."""
        return sum(result.seconds for result in self.results.values())


def check_checkout() -> Path:
    """Return the folder of the project's source; raise BadInput if only the wheel is there."""
    try:
        from studies.reproduction.registry import FOLDER
    except ModuleNotFoundError:
        raise BadInput(
            "`ppdm reproduce` needs a checkout of the project: claims and experiments are in its "
            "folder 'studies', which the installed package does not contain.",
            remedy="Clone the project and run the command there.",
        ) from None
    return FOLDER.parents[1]


def keep_measured(plan: Plan) -> Plan:
    """Return the plan without claims that were measured neither here nor in the committed run."""
    from studies.reproduction.results import find_known
    from studies.reproduction.sampling import read_committed_statements
    from studies.reproduction.tables import is_large

    large = frozenset(table for each in plan.claims for table in each.data if is_large(table))
    jobs_of = {
        claim.id: list(claim.list_measurements(large, full=plan.is_full)) for claim in plan.claims
    }
    done = find_known(plan.folder, plan.jobs).keys()
    before = read_committed_statements()
    claims = tuple(
        each
        for each in plan.claims
        if done >= set(jobs_of[each.id]) or (each.id in before and not plan.is_full)
    )
    if not claims:
        raise BadInput("None of these claims is measured yet.", remedy="Leave out '--measured'.")
    needed = {job for claim in claims for job in jobs_of[claim.id]}
    counts = [sum(not each.variant_of for each in some) for some in (plan.claims, claims)]
    return replace(
        plan,
        claims=claims,
        jobs=tuple(job for job in plan.jobs if job in needed and job in done),
        unmeasured=counts[0] - counts[1],
    )


def make_plan(home: Path, paper: str | None, claim: str | None, *, full: bool, check: bool) -> Plan:
    """Return what to measure; raise BadInput for an unknown claim or missing data."""
    root = check_checkout()
    from studies.reproduction.registry import select_claims
    from studies.reproduction.sampling import choose_tenth
    from studies.reproduction.tables import check_data, is_large

    claims = select_claims(paper, claim)
    is_whole = paper is None and claim is None and not check
    if check:
        claims = choose_tenth(claims)
    names = sorted({table for each in claims for table in each.data})
    check_data(names)
    large = frozenset(name for name in names if is_large(name))
    minutes: dict[Measurement, float] = {}
    for each in claims:
        jobs = list(each.list_measurements(large, full=full))
        for job in jobs:
            weight = 5.0 if job.table in large else 1.0
            minutes[job] = max(minutes.get(job, 0.0), weight * each.minutes / len(jobs))
    folder = home / "views" / "reproduction"
    return Plan(
        claims=claims,
        jobs=tuple(sorted(minutes, key=lambda job: -minutes[job])),
        folder=folder / "results",
        out=root / "docs" if is_whole and not full else folder,
        is_full=full,
        is_whole=is_whole,
    )


def judge_claims(plan: Plan, results: Mapping[Measurement, Result]) -> tuple[Finding, ...]:
    """Return the verdicts on all claims of a plan.

    A claim without all results is judged by the intervals of the committed run.
    """
    from studies.reproduction.decision import decide_again, decide_claim
    from studies.reproduction.results import name_quantities
    from studies.reproduction.sampling import read_committed_statements
    from studies.reproduction.tables import is_large

    large = frozenset(table for each in plan.claims for table in each.data if is_large(table))
    findings, before = [], read_committed_statements()
    for claim in plan.claims:
        jobs = list(claim.list_measurements(large, full=plan.is_full))
        if not results.keys() >= set(jobs):
            findings.append(decide_again(claim, before[claim.id]))
            continue
        quantities: dict[str, Sequence[float]] = {}
        for job in jobs:
            quantities |= name_quantities(job, results[job].quantities)
        findings.append(decide_claim(claim, quantities))
    return tuple(findings)

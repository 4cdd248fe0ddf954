"""What a report shows, as plain values: texts that are final, and numbers that are drawn.

The steward's edition holds everything, exactly. The recipients' edition is built from rounded
scores only, so no figure, table or sentence of it can hold an exact one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ppdm_core.model.column_risks import ColumnRisk
from ppdm_core.model.verdict import Outcome
from warehouse.publishing.released_profile import ReleasedProfile

Edition = Literal["steward", "recipients"]
Tone = Literal["pass", "review", "fail", "neutral"]


@dataclass(frozen=True)
class Head:
    """The outcome of a release at a glance."""

    outcome: str  # "PUBLISHED"
    tone: Tone
    subject: str  # the release id
    sentence: str
    facts: tuple[tuple[str, str], ...]  # name, value: date, method, records, ...


@dataclass(frozen=True)
class Tile:
    """One of the figures that matter most, with what it is compared with."""

    title: str
    figure: str
    notes: tuple[str, ...]
    outcome: Outcome | None  # of its limit; None: no limit judges it


@dataclass(frozen=True)
class Step:
    """Something that a person can do now."""

    text: str
    command: str = ""


@dataclass(frozen=True)
class RiskLine:
    """What one attacker gains; all numbers are shares of the persons, records or values tried."""

    name: str  # of the score
    goal: str
    title: str
    value: float
    low: float
    high: float
    baseline: float
    limit: float | None  # None: no limit judges it
    outcome: Outcome | None
    sentence: str
    isolated_tenth: float | None = None
    surest_tenth: float | None = None
    worst_group: float | None = None
    group: str | None = None

    @property
    def gain(self) -> float:
        return self.value - self.baseline

    @property
    def exposures(self) -> tuple[float | None, ...]:
        """The risk of all, of the isolated and the surest tenth, and of the worst group."""
        return self.value, self.isolated_tenth, self.surest_tenth, self.worst_group


@dataclass(frozen=True)
class RiskGroup:
    """Attackers who want the same, the largest gain first."""

    title: str
    lines: tuple[RiskLine, ...]


@dataclass(frozen=True)
class ColumnExposure:
    """What an attacker finds without each column; no line: it was not measured."""

    lines: tuple[ColumnRisk, ...]  # the largest difference first
    rate: float  # share of the persons that are found with all columns
    sentence: str
    unmeasured: str = ""  # the release that it can be asked for


@dataclass(frozen=True)
class UtilityLine:
    """What a recipient can still do; 1 is perfect."""

    name: str
    title: str
    value: float
    low: float
    high: float
    baseline: float
    original: float
    limit: float | None
    outcome: Outcome | None


@dataclass(frozen=True)
class ReleaseLine:
    """A release of the same dataset, with its risk and use where both were measured."""

    release_id: str
    day: str
    method: str
    outcome: str
    tone: Tone
    is_this: bool
    risk: float | None
    utility: float | None


@dataclass(frozen=True)
class LedgerStep:
    """What all releases so far add up to, after one of them; None: there is no bound."""

    release_id: str
    day: str
    ln_total: float | None
    is_charged: bool


@dataclass(frozen=True)
class LedgerPlan:
    """The ledger over all releases, its limit, and how many further releases fit."""

    steps: tuple[LedgerStep, ...]
    ln_limit: float | None
    ln_next: float | None  # what a release like the last one adds
    room: int | None  # releases; None: no limit or no bound


@dataclass(frozen=True)
class DatasetHistory:
    """All releases of a dataset."""

    releases: tuple[ReleaseLine, ...]
    risk_title: str
    utility_title: str
    risk_limit: float | None
    utility_limit: float | None
    ledger: LedgerPlan | None


@dataclass(frozen=True)
class LimitLine:
    """One check of the verdict."""

    check: str
    title: str
    outcome: Outcome
    observed: str
    limit: str
    set_by: str
    reason: str
    sentence: str


@dataclass(frozen=True)
class CountLine:
    """How many records or cells one step concerns."""

    what: str
    count: int
    shown: str
    why: str = ""


@dataclass(frozen=True)
class DataAccount:
    """What happened to the records and cells that were given."""

    records: tuple[CountLine, ...]  # given, dropped, set aside, released
    notes: tuple[CountLine, ...]  # for example repeated rows
    columns: tuple[tuple[str, str, str, str], ...]  # column, cells moved, filled, made "other"
    unchanged: int  # columns without such cells


@dataclass(frozen=True)
class Gap:
    """Audits that did not run, and why."""

    names: tuple[str, ...]
    why: str


DensityLine = tuple[str, str, str, str]  # class, plug-in, held-out, mixture


@dataclass(frozen=True)
class SiteLine:
    """One site of a common release, for the centre."""

    name: str
    rows: str
    outcome: Outcome
    broken: str  # checks that did not pass
    figures: tuple[tuple[str, str, str], ...]  # score, with the pool, without it
    errors: tuple[tuple[str, str], ...]  # number of sites, error of a classifier of their rows
    densities: tuple[DensityLine, ...]


@dataclass(frozen=True)
class SitesSection:
    """The sites of a common release."""

    count: int
    lines: tuple[SiteLine, ...]  # none for recipients
    errors: tuple[tuple[str, str], ...]  # number of sites, mean error of a classifier of their rows
    densities: tuple[DensityLine, ...] = ()  # means over all sites
    # Of sites with other columns of the same persons: whose energy, and the share that is lost.
    losses: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Where a release comes from, and how to check it."""

    events: tuple[tuple[str, str], ...]  # time, what
    approvals: tuple[str, ...]
    self_test: tuple[str, ...]
    digests: tuple[tuple[str, str], ...]
    verify: str  # the command; "" if there is nothing to verify
    release_file: str  # "" for recipients


@dataclass(frozen=True)
class ReportView:
    """Everything that a report shows; empty parts are left out."""

    edition: Edition
    head: Head
    tiles: tuple[Tile, ...] = ()
    steps: tuple[Step, ...] = ()
    risks: tuple[RiskGroup, ...] = ()
    column_exposure: ColumnExposure | None = None
    history: DatasetHistory | None = None
    utility: tuple[UtilityLine, ...] = ()
    other_utility: tuple[tuple[str, str, str], ...] = ()  # title, value, without the release
    limits: tuple[LimitLine, ...] = ()
    data: DataAccount | None = None
    released: ReleasedProfile | None = None
    columns: tuple[str, ...] = ()  # released ones, without the label
    label: str | None = None
    record_notes: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    sites: SitesSection | None = None
    provenance: Provenance | None = None

    @property
    def is_rounded(self) -> bool:
        return self.edition == "recipients"

    @property
    def risk_lines(self) -> tuple[RiskLine, ...]:
        return tuple(line for group in self.risks for line in group.lines)

    @property
    def failures(self) -> list[LimitLine]:
        """Checks that are not a PASS, the worst first."""
        order = ("FAIL", "REVIEW")
        return [x for outcome in order for x in self.limits if x.outcome == outcome]

    @property
    def passes(self) -> list[LimitLine]:
        return [line for line in self.limits if line.outcome == "PASS"]

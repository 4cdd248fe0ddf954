"""How a release ended, as typed figures for the panel and for `--json`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ppdm.cli.ledger import Entry, compute_account, entry_as_dict, find_latest
from ppdm_core.attacks import ATTACKS
from ppdm_core.gates.score_limits import find_metric
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import AMPLIFICATION, LABEL, LEDGER_DRAWS, LEDGER_RECORD
from ppdm_core.model.score import Score, is_sound
from ppdm_core.model.verdict import Finding, Outcome
from tasks.publish.report.facts import build_judgement
from tasks.publish.report.outcome import lower_first
from tasks.publish.report.scores import SEVERITY, Judgement, find_title
from tasks.release_summary import Summary, summarize_run
from warehouse.ledger.entries import read_entries
from warehouse.stage_facts import EndingFacts
from warehouse.stages import Stage

if TYPE_CHECKING:
    from warehouse.database import Run
    from warehouse.transaction import Transaction

Tone = Literal["good", "bad", "open", "neutral"]
MAX_RISKS = 8
TONES: dict[Stage, Tone] = {
    Stage.PUBLISHED: "good",
    Stage.NO_CHANGE: "good",
    Stage.DRY_RUN_PASSED: "good",
    Stage.PART_JUDGED: "good",
    Stage.AWAITING_REVIEW: "open",
    Stage.REFUSED: "bad",
    Stage.REJECTED: "bad",
}
GOALS = {  # what an attacker can do
    "link": "find a person",
    "source": "find the person behind a row",
    "pair": "join two files about a person",
    "single_out": "single out a person",
    "reconstruct": "recover a record",
    "norms": "recover the length of a record",
    "member": "know who is in it",
    "infer": "learn a value",
}


@dataclass(frozen=True)
class Line:
    """One measured figure with what it is without the release, and its limit."""

    name: str  # of the score
    what: str  # in plain words
    value: float
    low: float
    high: float
    without: float  # the baseline: an attacker or recipient who ignores the release
    original: float | None  # utility: the same on the original table
    limit: float | None  # as a value of the score
    better: Literal["up", "down"]
    outcome: Outcome | None  # None: no limit judges it
    is_share: bool


@dataclass(frozen=True)
class Bound:
    """The worst-case bound of one release for a complete record."""

    ln_gamma: float | None  # None: there is no bound
    is_conditional: bool  # it depends on private data: a weaker promise
    limit: float | None  # on gamma
    outcome: Outcome | None


@dataclass(frozen=True)
class ReleaseOutcome:
    """Everything that the panel of a release shows."""

    summary: Summary
    headline: str
    tone: Tone
    risks: tuple[Line, ...]
    utility: tuple[Line, ...]
    bound: Bound | None
    account: Entry | None  # of the ledger, after all releases
    ledger_outcome: Outcome | None
    reasons: tuple[Finding, ...]  # findings against it; of those that a line shows, the remedy


def read_outcome(db: Transaction, run: Run) -> ReleaseOutcome:
    """Return how a run ended, from the warehouse alone."""
    summary = summarize_run(db, run)
    judgement = build_judgement(summary)
    scores = summary.report.scores if summary.report else ()
    risks, utility = build_lines(scores, judgement)
    shown = {line.name for line in (*risks, *utility) if line.outcome == "FAIL"}
    ledger = map(judgement.find_outcome, (LEDGER_RECORD, LEDGER_DRAWS))
    headline, tone = choose_headline(summary)
    return ReleaseOutcome(
        summary=summary,
        headline=headline,
        tone=tone,
        risks=risks,
        utility=utility,
        bound=build_bound(summary, judgement),
        account=find_account(db, summary),
        ledger_outcome=min(ledger, key=lambda outcome: SEVERITY[outcome]),
        reasons=tuple(
            replace(one, why="") if one.check in shown else one for one in list_open(summary)
        ),
    )


def list_open(summary: Summary) -> tuple[Finding, ...]:
    """Return the findings against a release; what ended it after its verdict is in the sentence."""
    return summary.refusals if summary.ending == EndingFacts() else ()


def build_lines(
    scores: Iterable[Score], judgement: Judgement
) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """Return the risks and the utility that a panel shows."""
    sound = [score for score in scores if is_sound(score)]
    lines = [build_line(score, judgement) for score in sound]
    risks = choose_risks([line for line in lines if is_privacy(line)])
    return risks, tuple(line for line in lines if not is_privacy(line) and is_shown(line))


def choose_headline(summary: Summary) -> tuple[str, Tone]:
    """Return the outcome in capitals, and its tone."""
    stage = summary.run.stage
    if summary.is_undecided and stage == Stage.DRY_RUN_PASSED:
        return "DRY RUN: A REVIEWER WOULD DECIDE", "open"
    return stage.label, "open" if summary.is_undecided else TONES.get(stage, "neutral")


def build_line(score: Score, judgement: Judgement) -> Line:
    """Return the line of one score."""
    return Line(
        name=score.name,
        what=describe_score(score),
        value=score.value,
        low=score.low,
        high=score.high,
        without=score.baseline,
        original=score.original,
        limit=judgement.find_limit(score),
        better=score.better,
        outcome=judgement.find_outcome(score.name),
        is_share=find_metric(score).bounds == (0.0, 1.0),
    )


def describe_score(score: Score) -> str:
    """Return what a score measures: "find a person (knows a person's full record)"."""
    first, title = score.name.split(".")[0], find_title(score.name)
    if first in METRICS:
        return title
    goal = GOALS["link" if first == LABEL else ATTACKS[first].goal]
    if score.better == "up":
        goal = f"error when attackers {goal}"
    return f"{goal} ({lower_first(title)})"


def is_privacy(line: Line) -> bool:
    """Return whether a line states a risk."""
    return find_kind(line.name) == "privacy"


def find_kind(name: str) -> str:
    """Return the kind of the metric that a score is named by."""
    return METRICS[name.split(".")[-1]].kind


def is_shown(line: Line) -> bool:
    """Return whether a utility score belongs in the panel: it is judged, or in every summary."""
    return line.outcome is not None or (line.name in METRICS and METRICS[line.name].in_summary)


def choose_risks(lines: list[Line]) -> tuple[Line, ...]:
    """Return the judged risks, the worst first; without any, the largest gains."""
    judged = [line for line in lines if line.outcome is not None]
    shares = [line for line in lines if line.is_share and line.better == "down"]
    chosen = judged or sorted(shares, key=lambda line: line.without - line.value)
    return tuple(sorted(chosen, key=lambda line: SEVERITY[line.outcome])[:MAX_RISKS])


def build_bound(summary: Summary, judgement: Judgement) -> Bound | None:
    """Return the bound for a record; None before the table was perturbed."""
    guarantee = summary.guarantee
    if guarantee is None:
        return None
    key = f"{AMPLIFICATION}record"
    limit = judgement.limits.get(key)
    return Bound(
        ln_gamma=guarantee.ln_record if math.isfinite(guarantee.ln_record) else None,
        is_conditional=guarantee.kind == "bounded_given_basis",
        limit=limit.value if limit else None,
        outcome=judgement.find_outcome(key),
    )


def find_account(db: Transaction, summary: Summary) -> Entry | None:
    """Return the account of the ledger that a release belongs to.

    None without any entry, and at the centre of a common release: each site has its own ledger.
    """
    if summary.sites:
        return None
    entries = [entry_as_dict(entry) for entry in read_entries(db, summary.run.dataset)]
    accounts = [compute_account(db, entry) for entry in find_latest(entries)]
    audience = summary.settings.audience if summary.settings else None
    own = [each for each in accounts if each["audience"] in (None, audience)]
    return own[-1] if own else None

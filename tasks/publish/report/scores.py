"""Lines of a report from the scores of an audit: what attackers gain, what recipients keep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.auditor import PART_TITLES, SCENARIO_TITLES
from ppdm_core.gates.score_limits import compute_limit
from ppdm_core.metrics import METRICS, Metric
from ppdm_core.model.attacker import Goal
from ppdm_core.model.policy import LABEL, Limit
from ppdm_core.model.score import AuditReport, Score, is_sound
from ppdm_core.model.verdict import Finding, Outcome
from tasks.publish.report.view import RiskGroup, RiskLine, UtilityLine
from tasks.publish.report.words import choose_base, format_share

FIND, RECOVER, MEMBER, LEARN = (
    "Find a person",
    "Recover a record",
    "Know who is in the release",
    "Learn a value",
)
TRACES = "Traces in the released file"
GROUPS: dict[Goal, str] = {
    "link": FIND,
    "source": FIND,
    "pair": FIND,
    "single_out": FIND,
    "reconstruct": RECOVER,
    "norms": RECOVER,
    "member": MEMBER,
    "infer": LEARN,
}
NOUNS: dict[str, str] = {  # "5 in 100 ..."
    "link": "persons were found",
    "source": "rows were traced to their person",
    "pair": "persons were joined across two files",
    "single_out": "statements described exactly one person",
    "reconstruct": "records were recovered",
    "norms": "lengths of records were recovered",
    "member": "members were recognised",
    "infer": "values were inferred",
    "release": "rows or records showed it",
}
UNIT = (0.0, 1.0)
SEVERITY: dict[Outcome | None, int] = {"FAIL": 0, "REVIEW": 1, "PASS": 2, None: 3}


@dataclass(frozen=True)
class Judgement:
    """The limits of a policy and the findings of a verdict, by the names of scores."""

    limits: Mapping[str, Limit]
    findings: Mapping[str, Finding]
    by_sites: Mapping[str, Outcome] = field(default_factory=dict)  # of a common release

    @classmethod
    def of(cls, limits: Mapping[str, Limit], findings: Iterable[Finding]) -> Judgement:
        return cls(limits, {finding.check: finding for finding in findings})

    def find_outcome(self, name: str) -> Outcome | None:
        found = self.findings.get(name)
        return found.outcome if found else self.by_sites.get(name)

    def find_limit(self, score: Score) -> float | None:
        """Return the limit as a value of the score."""
        limit = self.limits.get(score.name)
        return None if limit is None else compute_limit(score, limit)


def find_metric(score: Score) -> Metric | None:
    """Return the metric of a score."""
    return METRICS.get(score.name.split(".")[-1])


def find_goal(score: Score) -> str:
    """Return what the attacker wants; "release" for a metric of the release itself."""
    first = score.name.split(".")[0]
    if first == LABEL:
        return "link"
    return ATTACKS[first].goal if first in ATTACKS else "release"


def find_title(name: str) -> str:
    """Return the title of an attack, a metric or a score."""
    first, *rest = name.split(".")
    if first == LABEL:
        return "Knows only the label"
    if first in ATTACKS:
        scenario = rest[0] if len(rest) > 1 else ""
        title = SCENARIO_TITLES.get(scenario) or ATTACKS[first].title or first.replace("_", " ")
        part = f", {PART_TITLES[scenario]}" if scenario in PART_TITLES else ""
        return f"{title[0].upper()}{title[1:]}{part}"
    if first in METRICS:
        title = METRICS[first].title or METRICS[first].describe
        more = ", further errors" if rest else ""
        return f"{title[0].upper()}{title[1:]}{more}"
    return name.replace("_", " ")


def name_part(name: str) -> str:
    """Return which part of the persons a score counts; "": all."""
    return next((PART_TITLES[each] for each in name.split(".")[1:-1] if each in PART_TITLES), "")


def is_risk_share(score: Score) -> bool:
    """Return whether a score can be drawn as a share of persons, records or values."""
    metric = find_metric(score)
    is_share = metric is not None and metric.bounds == UNIT and score.better == "down"
    return score.kind == "privacy" and is_share and is_sound(score)


def build_risks(report: AuditReport, judgement: Judgement) -> tuple[RiskGroup, ...]:
    """Return one line for each attack and scenario: the judged score, or else the main one."""
    chosen: dict[tuple[str, ...], Score] = {}
    for score in sorted(
        filter(is_risk_share, report.scores),
        key=lambda score: (
            score.name not in judgement.limits,
            not getattr(find_metric(score), "is_headline", False),
        ),
    ):
        *place, metric = score.name.split(".")
        chosen.setdefault(tuple(place) or (metric,), score)
    lines = [build_risk(score, judgement) for score in chosen.values()]
    titles = dict.fromkeys((*GROUPS.values(), TRACES))
    by_title = {
        title: tuple(
            sorted(
                (line for line in lines if name_group(line.goal) == title),
                key=lambda line: (-line.gain, line.name),
            )
        )
        for title in titles
    }
    return tuple(RiskGroup(title, found) for title, found in by_title.items() if found)


def name_group(goal: str) -> str:
    """Return the title of the group of attackers with a goal."""
    return {str(name): title for name, title in GROUPS.items()}.get(goal, TRACES)


def build_risk(score: Score, judgement: Judgement) -> RiskLine:
    """Return the line of one score."""
    return RiskLine(
        name=score.name,
        goal=find_goal(score),
        title=find_title(score.name),
        value=score.value,
        low=score.low,
        high=score.high,
        baseline=score.baseline,
        limit=judgement.find_limit(score),
        outcome=judgement.find_outcome(score.name),
        sentence=score.sentence,
        isolated_tenth=score.worst_decile,
        surest_tenth=score.victims,
        worst_group=score.worst_group,
        group=score.group,
    )


def build_utility(report: AuditReport, judgement: Judgement) -> tuple[UtilityLine, ...]:
    """Return one line for each utility score between 0 and 1 where more is better."""
    return tuple(
        UtilityLine(
            name=score.name,
            title=find_title(score.name),
            value=score.value,
            low=score.low,
            high=score.high,
            baseline=score.baseline,
            original=score.original,
            limit=judgement.find_limit(score),
            outcome=judgement.find_outcome(score.name),
        )
        for score in list_utility(report)
        if is_utility_share(score) and score.original is not None
    )


def list_utility(report: AuditReport) -> list[Score]:
    """Return the utility scores of the release itself, those of a short summary first."""
    found = [score for score in report.scores if score.kind == "utility" and score.name in METRICS]
    return sorted(found, key=lambda score: not METRICS[score.name].in_summary)


def is_utility_share(score: Score) -> bool:
    """Return whether a utility score can be drawn between 0 and 1."""
    is_share = METRICS[score.name].bounds[1] == 1.0 and score.better == "up"
    return is_share and is_sound(score) and math.isfinite(score.original or 0.0)


def list_other_utility(report: AuditReport) -> tuple[tuple[str, str, str], ...]:
    """Return the utility scores that are errors: title, value, value without the release."""
    return tuple(
        (find_title(score.name), f"{score.value:.3g}", f"{score.baseline:.3g}")
        for score in list_utility(report)
        if not is_utility_share(score) and is_sound(score)
    )


def choose_worst(lines: Iterable[RiskLine]) -> RiskLine | None:
    """Return the line that decides: the worst outcome, then the largest gain."""
    return min(lines, key=lambda line: (SEVERITY[line.outcome], -line.gain), default=None)


def format_risk(line: RiskLine, *, is_rounded: bool) -> str:
    """Return a line as one plain sentence."""
    base = choose_base(line.value, line.baseline, line.limit)
    value = format_share(line.value, base, is_rounded=is_rounded)
    parts = [f"{format_share(line.baseline, base)} without the release"]
    if line.limit is not None:
        parts.append(f"limit {format_share(line.limit, base)}")
    least = "At most " if is_rounded else ""
    part = name_part(line.name)
    noun = f"of the {part} of the {NOUNS[line.goal]}" if part else NOUNS[line.goal]
    text = f"{least}{value} {noun} ({', '.join(parts)})."
    is_unsure = line.outcome == "REVIEW" and line.limit is not None and line.high > line.limit
    if is_unsure:
        text += f" Too few records to be sure: up to {format_share(line.high, base)} is possible."
    return f"{text[0].upper()}{text[1:]}"

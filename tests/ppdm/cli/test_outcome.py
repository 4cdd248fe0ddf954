"""The figures of a panel: limits as values, plain words, and which risks are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ppdm.cli.outcome import (
    MAX_RISKS,
    ReleaseOutcome,
    build_lines,
    choose_headline,
    describe_score,
)
from ppdm.cli.panels import format_figure, format_sentence, list_next_steps
from ppdm_core.gates.score_limits import compute_limit
from ppdm_core.model.policy import Limit
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Finding, Outcome
from tasks.publish.report.outcome import list_steps
from tasks.publish.report.scores import Judgement
from tasks.release_summary import Summary
from tests.support.report_facts import make_summary, make_verdict
from warehouse.stages import Stage

LINKED = Score("record_linkage.rate", "privacy", "down", 0.02, 0.01, 0.04, 400, 0.01, 0.02)
ERROR = Score("known_pairs.interval_privacy", "privacy", "up", 0.4, 0.3, 0.5, 400, 0.5, 0.4)
CORRECT = Score("best_accuracy", "utility", "up", 0.9, 0.8, 1.0, 400, 0.6, 0.9, original=0.95)


def make_limit(value: float, *, absolute: bool = False) -> Limit:
    return Limit(value, "DPO", "why", absolute)


@pytest.mark.parametrize(
    ("score", "limit", "expected"),
    [
        (LINKED, make_limit(0.05), 0.06),  # above the baseline
        (LINKED, make_limit(0.05, absolute=True), 0.05),
        (ERROR, make_limit(0.1), 0.4),  # a shortfall below the baseline
        (ERROR, make_limit(0.3, absolute=True), 0.3),
        (CORRECT, make_limit(0.1), 0.7),  # to reach above the baseline
        (CORRECT, make_limit(0.75, absolute=True), 0.75),
    ],
)
def test_compute_limit_as_a_value_of_the_score(score: Score, limit: Limit, expected: float) -> None:
    assert compute_limit(score, limit) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("record_linkage.rate", "find a person (knows a person's full record)"),
        ("record_linkage.partial.rate", "find a person (knows half of the columns)"),
        (
            "record_linkage.surest.rate",
            "find a person (knows a person's full record, surest tenth)",
        ),
        ("label.rate", "find a person (knows only the label)"),
        ("best_accuracy", "The best classifier is right"),
    ],
)
def test_describe_score_plain_words(name: str, words: str) -> None:
    assert describe_score(replace(LINKED, name=name)) == words


def test_describe_score_every_attack_and_metric_has_words() -> None:
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.metrics import METRICS

    for name, attack in ATTACKS.items():
        for metric in (each for each in METRICS.values() if each.goal == attack.goal):
            score = replace(LINKED, name=f"{name}.{metric.name}", better=metric.better)
            assert "_" not in describe_score(score)


def judge(outcomes: dict[str, Outcome]) -> dict[str, Finding]:
    return {name: Finding(name, outcome, "why") for name, outcome in outcomes.items()}


def test_build_lines_judged_risks_worst_first() -> None:
    other = replace(LINKED, name="label.rate")
    unjudged = replace(LINKED, name="membership.auc")
    findings = judge({"record_linkage.rate": "PASS", "label.rate": "FAIL"})
    risks, utility = build_lines((LINKED, other, unjudged, CORRECT), Judgement({}, findings))
    assert [line.name for line in risks] == ["label.rate", "record_linkage.rate"]
    assert [line.name for line in utility] == ["best_accuracy"]
    assert [format_figure(risks[0], value) for value in (0.0123, 1.0)] == ["1.2 %", "100.0 %"]


def test_build_lines_many_or_unsound_scores_at_most_eight_sound() -> None:
    many = [replace(LINKED, name=f"label.case{i}.rate") for i in range(12)]
    risks, _ = build_lines(many, Judgement({}, judge({score.name: "PASS" for score in many})))
    assert len(risks) == MAX_RISKS
    assert build_lines([replace(LINKED, n=0)], Judgement({}, {})) == ((), ())


def make_outcome(summary: Summary) -> ReleaseOutcome:
    headline, tone = choose_headline(summary)
    return ReleaseOutcome(summary, headline, tone, (), (), None, None, None, ())


@pytest.mark.parametrize(
    ("outcome", "tone", "words"),
    [
        ("PASS", "good", "The centre publishes if all parties allow it."),
        ("REVIEW", "open", "Reviewers of this site decide about 1 of"),
    ],
)
def test_panel_of_a_part_names_the_centre(outcome: Outcome, tone: str, words: str) -> None:
    """A part that leaves as masked sums ends like a dry run, and is none."""
    verdict = make_verdict((), Finding("record_linkage.rate", outcome, "It may find many."))
    found = make_outcome(make_summary(Stage.PART_JUDGED, is_part=True, verdict=verdict))
    assert (found.headline, found.tone) == ("PART OF A COMMON RELEASE", tone)
    assert words in format_sentence(found)
    steps = " ".join(list_next_steps(found))
    assert "Hand over nothing: the centre publishes." in steps and "dry-run" not in steps
    assert ("To decide: ppdm decide" in steps) == (outcome == "REVIEW")
    assert "the part of this site in a common release" in found.summary.format_outcome_sentence()
    printed = [each.command or each.text for each in list_steps(found.summary, ())]
    assert "Hand over nothing" in printed[-1] and "dry-run" not in " ".join(printed)
    assert any("ppdm decide" in each for each in printed) == (outcome == "REVIEW")


def test_panel_of_a_published_part_hands_over_nothing() -> None:
    found = make_outcome(make_summary(is_part=True, folder=Path("home/published/wine/0001")))
    assert "Hand over nothing" in list_next_steps(found)[0]
    alone = make_outcome(make_summary(folder=Path("home/published/wine/0001")))
    assert "Hand over home/published/wine/0001" in list_next_steps(alone)[0]

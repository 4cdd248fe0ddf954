"""Limits on utility scores, and the scores on the card."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ppdm_core.metrics import METRICS, SentenceValues
from ppdm_core.metrics._metric import Better
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.score import AuditReport, Score
from tasks.publish.card import format_scores
from tasks.settings_check import check_limit, needs_label

ABSOLUTE = Limit(0.5, "who", "why", absolute=True)


@pytest.mark.parametrize("name", ["best_accuracy", "knn_accuracy.deterioration", "stress"])
def test_check_limit_utility_score_accepted(name: str) -> None:
    check_limit(name, ABSOLUTE)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("deterioration", "Use knn_accuracy.deterioration or "),
        ("stress.deterioration", "Use stress."),
        ("best_accuracy.deterioration", "Use best_accuracy."),
        ("knn_accuracy.stress", "Use knn_accuracy."),
    ],
)
def test_check_limit_unknown_score_refused(name: str, remedy: str) -> None:
    with pytest.raises(BadInput, match="can never be judged") as caught:
        check_limit(name, ABSOLUTE)
    assert caught.value.remedy is not None and caught.value.remedy.startswith(remedy)


def test_check_limit_relative_loss_refused() -> None:
    with pytest.raises(BadInput, match="no baseline that it could exceed"):
        check_limit("knn_accuracy.deterioration", replace(ABSOLUTE, absolute=False))


def test_needs_label_only_class_scores_true() -> None:
    names = ("best_accuracy", "knn_accuracy.deterioration", "class_compactness")
    assert all(map(needs_label, names))
    assert not any(map(needs_label, ("stress", "record_linkage.rate", "amplification.record")))


def sentence(name: str, value: float, original: float | None = None) -> str:
    return METRICS[name].sentence(
        SentenceValues(value, 0.6, "", Policy((), {}).attacker.epsilon, original)
    )


def score(name: str, value: float, better: Better = "up", **given) -> Score:
    kind = given.pop("kind", "utility")
    return Score(name, kind, better, value, value - 0.02, value + 0.02, 100, 0.6, value, **given)


REPORT = AuditReport(
    (
        score("record_linkage.rate", 0.03, "down", kind="privacy", sentence=sentence("rate", 0.03)),
        score("knn_accuracy", 0.85, original=0.97, sentence=sentence("knn_accuracy", 0.85, 0.97)),
        score("knn_accuracy.deterioration", 0.125, "down", sentence="Some is lost."),
        score(
            "best_accuracy",
            0.9,
            original=0.98,
            candidate="knn_accuracy",
            sentence=sentence("best_accuracy", 0.9, 0.98),
        ),
        score("column_distance", 0.1, notes={"worst_column": 0.25}),
    ),
    skipped={
        "stress": Skip(Reason.TOO_FEW_RECORDS, "It needs rows."),
        "known_pairs": Skip(Reason.TOO_FEW_RECORDS, "Nobody is known."),
    },
    not_run=dict.fromkeys(("adjusted_rand", "membership"), Skip(Reason.NOT_REQUESTED)),
)


def test_format_scores_privacy_and_utility_separate() -> None:
    verdict = SimpleNamespace(findings=[SimpleNamespace(check="best_accuracy")])
    judged = SimpleNamespace(report=REPORT, verdict=verdict)
    context = SimpleNamespace(policy=Policy(required=(), limits={}))
    text = "\n".join(format_scores(context, SimpleNamespace(judged=judged)))
    attackers, recipients = text.split("## What recipients get")
    for words in (
        "record_linkage.rate",
        sentence("rate", 0.05),
        "known_pairs",
        "`membership` was not",
    ):
        assert words in attackers and words not in recipients
    for words in ("knn_accuracy", "`stress` does not apply", "`adjusted_rand` was not run"):
        assert words in recipients and words not in attackers
    (row,) = [line for line in recipients.splitlines() if line.startswith("| knn_accuracy |")]
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    # In bands, and its deterioration has no line of its own.
    assert cells[2:] == ["higher", "0.85", "0.8 to 0.9", "1", "0.15 (0.1 to 0.15)", "0.6"]
    assert "deterioration" not in recipients
    assert f"- {sentence('best_accuracy', 0.9, 1.0)}" in recipients  # judged
    assert sentence("knn_accuracy", 0.85, 1.0) not in recipients  # a line of the table is enough
    assert "`best_accuracy`: that of `knn_accuracy`." in recipients
    assert "`column_distance`: worst column 0.25." in recipients

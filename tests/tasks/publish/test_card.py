"""The card of a release, and the scores on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import jinja2
import pytest

from ppdm_core.metrics import METRICS, SentenceValues
from ppdm_core.metrics._metric import Better
from ppdm_core.model.policy import Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.release import Guarantee, PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.shown_text import show_line
from ppdm_core.model.verdict import Finding, Verdict
from tasks.context import ReleaseContext
from tasks.publish import card
from tasks.publish.card import find_card, format_card
from tasks.release_summary import Summary
from tests.support.contexts import make_context
from tests.support.facts import make_sanitized_facts, make_validated_facts
from tests.support.hostile_text import HOSTILE, is_safe_line, list_structure, read_text
from warehouse.approvals import Decision, Person
from warehouse.columns import Column
from warehouse.database import Run
from warehouse.stages import Stage

NOW = datetime(2026, 3, 2, tzinfo=UTC)
RUN = Run("table-0001", "table", 1, "s", "f", "c", Stage.PUBLISHED, 1, None, NOW)
LABEL = Column("group", "label", "categorical", categories=("a", "b"))


def sentence(name: str, value: float, original: float | None = None) -> str:
    return METRICS[name].sentence(
        SentenceValues(value, 0.6, "", Policy((), {}).attacker.epsilon, original)
    )


def score(name: str, value: float, better: Better = "up", **given: Any) -> Score:
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
        "known_pairs": Skip(Reason.TOO_FEW_RECORDS, "The attacker knows no record."),
    },
    not_run=dict.fromkeys(("adjusted_rand", "membership"), Skip(Reason.NOT_REQUESTED)),
)
DETAILED = replace(
    REPORT,
    scores=(
        score(
            *("known_pairs.breach_rate", 0.3, "down"),
            kind="privacy",
            worst_decile=0.4,
            worst_group=0.5,
            group="north | south",
            expected=0.2,
            victims=0.9,
            notes={"rows_used": 12.0},
        ),
        *REPORT.scores,
    ),
    failed={"shrinkage": "ValueError"},
)
VERDICT = Verdict("PASS", (Finding("best_accuracy", "PASS", "why"),), "p", "d", "c")


def make_summary(**changes: Any) -> Summary:
    facts = {
        "validated": make_validated_facts(),
        "sanitized": make_sanitized_facts(released=12345),
        "report": REPORT,
        "verdict": VERDICT,
    }
    return Summary(Path("home"), RUN, **{**facts, **changes})


@pytest.fixture
def context(tmp_path: Path) -> ReleaseContext:
    return make_context(tmp_path)


def make_cases(context: ReleaseContext) -> dict[str, tuple[ReleaseContext, Summary]]:
    labelled = replace(context, columns=(*context.columns, LABEL), audience="a & b <*>\n`x`")
    response = Response(Categorical("colour", ("r", "g")), 3.0)
    sanitized = make_sanitized_facts(
        public=PublicParameters("additive_noise", "original", ("x",), responses=(response,)),
        guarantee=Guarantee("bounded", 0.5, 1.0, 2.5, ("Bounds are declared.", "Once & only.")),
        counts={"clipped scores": 4},
        set_aside=3,
        released=1000,
    )
    undecided = Verdict("REVIEW", (Finding("knn_accuracy", "REVIEW", "secret"),), "p", "d", "c")
    approvals = tuple(
        Decision(Person(number, f"user{number}"), "approve", "secret", NOW, ("d", "p", "c"), shown)
        for number, shown in ((1, None), (2, "Dr. Other"))
    )
    waived = {"gamma_so_far": "1.5e+04", "draws": 1200, "collusion_waiver": "w"}
    return {
        "empirical": (context, make_summary()),
        "review": (
            labelled,
            make_summary(
                sanitized=sanitized,
                report=DETAILED,
                verdict=undecided,
                counted=approvals,
                ledger=waived,
            ),
        ),
        "nothing measured": (
            context,
            make_summary(
                report=AuditReport(()),
                verdict=undecided,
                ledger={"gamma_added": "2", "gamma_so_far": "2"},
            ),
        ),
    }


@pytest.mark.parametrize("case", ["empirical", "review", "nothing measured"])
def test_format_card_text_equals_stored_one(context: ReleaseContext, case: str) -> None:
    expected = Path(__file__).with_name("cards") / f"{case.replace(' ', '_')}.md"
    text = format_card(*make_cases(context)[case])
    assert text == expected.read_text()
    assert "secret" not in text  # notes of reviewers and reasons of findings


def make_hostile(context: ReleaseContext, text: str) -> tuple[ReleaseContext, Summary]:
    """Return the case "review" with a text wherever one of somebody else can be."""
    labelled, summary = make_cases(context)["review"]
    response = Response(Categorical(text, ("r", "g")), 3.0)
    sanitized = replace(
        summary.judged.sanitized,
        public=PublicParameters("additive_noise", "original", (text,), responses=(response,)),
        guarantee=Guarantee("bounded", 0.5, 1.0, 2.5, (text, "Once & only.")),
    )
    first, *others = DETAILED.scores
    report = replace(
        DETAILED,
        scores=(replace(first, group=text, sentence=text), *others),
        skipped={**DETAILED.skipped, "known_pairs": Skip(Reason.TOO_FEW_RECORDS, text)},
        failed={"shrinkage": text},
    )
    decisions = tuple(replace(one, shown=text) for one in summary.counted)
    hostile = replace(
        labelled,
        owner=text,
        audience=text,
        columns=(*context.columns, replace(LABEL, name=text)),
    )
    return hostile, replace(summary, sanitized=sanitized, report=report, counted=decisions)


@pytest.mark.parametrize("what", HOSTILE)
def test_format_card_hostile_text_adds_no_structure(context: ReleaseContext, what: str) -> None:
    text = format_card(*make_hostile(context, HOSTILE[what]))
    control = format_card(*make_hostile(context, "plain"))
    assert list_structure(text) == list_structure(control)
    assert all(map(is_safe_line, text.split("\n")))
    assert text.count("\n") == control.count("\n")
    assert "secret" not in text
    if what != "indented":  # Markdown shows only one of several spaces
        shown = " ".join(show_line(HOSTILE[what]).split())
        assert read_text(text).count(shown) >= 7


def test_format_card_scores_privacy_and_utility_separate(context: ReleaseContext) -> None:
    text = format_card(context, make_summary()).partition("## What attackers got")[2]
    attackers, recipients = text.partition("## What is not")[0].split("## What recipients get")
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


def test_format_card_unknown_name_in_template_raises(
    context: ReleaseContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "card.md.j2"
    template.write_text("{{ summary.run.relase_id }}")
    monkeypatch.setattr(card, "TEMPLATE", template)
    with pytest.raises(jinja2.UndefinedError, match="relase_id"):
        format_card(context, make_summary())


def test_find_card_published_text_is_read(context: ReleaseContext, tmp_path: Path) -> None:
    assert find_card(context, make_summary()) == format_card(context, make_summary())
    assert find_card(context, make_summary(folder=tmp_path)) == format_card(context, make_summary())
    (tmp_path / "card.md").write_text("# As published\n")
    assert find_card(context, make_summary(folder=tmp_path)) == "# As published\n"


@pytest.mark.parametrize("kind", ["bounded", "bounded_given_basis", "empirical"])
def test_format_card_conditional_bound_called_weaker_promise(
    context: ReleaseContext, kind: Literal["bounded", "bounded_given_basis", "empirical"]
) -> None:
    guarantee = Guarantee(kind, 0.5, 1.0, 2.5, ("One release.", "Cells hold medians."))
    card = format_card(context, make_summary(sanitized=make_sanitized_facts(guarantee=guarantee)))
    assert ("This is a weaker promise" in card) == (kind == "bounded_given_basis")
    assert "- Cells hold medians.\n" in card

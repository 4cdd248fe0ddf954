"""The card of a release: one page, from the same view as the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import jinja2
import pytest

from ppdm_core.model.release import Guarantee, PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.model.shown_text import show_line
from ppdm_core.model.verdict import Finding
from tasks.publish import card
from tasks.publish.card import find_card, format_card
from tasks.publish.report.build import build_view
from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.view import Edition
from tasks.release_summary import Summary
from tests.support.facts import make_sanitized_facts
from tests.support.hostile_text import HOSTILE, is_safe_line, list_structure, read_text
from tests.support.report_facts import (
    NOW,
    SCHEMA,
    SCORES,
    make_refused,
    make_summary,
    make_verdict,
    make_waiting,
)
from warehouse.approvals import Decision, Person
from warehouse.stages import Stage

MAX_LINES = 75  # one printed page
CARDS = Path(__file__).with_name("cards")
CASES = {"published": make_summary, "refused": make_refused, "waiting": make_waiting}


def write(summary: Summary, edition: Edition = "recipients") -> str:
    return format_card(build_view(ReportFacts(summary), edition))


def make_reviewed() -> Summary:
    """Return a published release that a reviewer approved, with texts for the private side."""
    doubt = Finding("knn_accuracy", "REVIEW", "secret")
    approvals = tuple(
        Decision(Person(number, f"user{number}"), "approve", "secret", NOW, ("d", "p", "c"), shown)
        for number, shown in ((1, None), (2, "Dr. Other"))
    )
    return make_summary(verdict=make_verdict(SCORES, doubt), counted=approvals)


@pytest.mark.parametrize("case", ["published", "refused", "reviewed"])
def test_format_card_text_equals_stored_one(case: str) -> None:
    makers = {**CASES, "reviewed": make_reviewed}
    text = write(makers[case](), "steward" if case == "refused" else "recipients")
    assert text == (CARDS / f"{case}.md").read_text()
    assert "secret" not in text  # notes of reviewers and reasons of findings
    assert text.count("\n") <= MAX_LINES
    assert "- \n" not in text and "\n\n\n" not in text  # no empty item, no gap


def test_format_card_without_limits_of_persons_has_no_empty_table() -> None:
    passed = Finding("self_test", "PASS", "Every planted leak was found.")
    settings = make_summary().settings
    assert settings is not None
    settings = replace(settings, policy=replace(settings.policy, limits={}))
    text = write(make_summary(settings=settings, verdict=make_verdict((), passed)))
    assert "## Limits, and who set them" in text
    assert "| outcome | check |" not in text and "\n\n\n" not in text


@pytest.mark.parametrize("what", HOSTILE)
def test_format_card_hostile_text_adds_no_structure(what: str) -> None:
    def make(text: str) -> str:
        summary = make_reviewed()
        assert summary.settings and summary.sanitized and summary.validated
        policy = summary.settings.policy
        limits = {name: replace(limit, set_by=text) for name, limit in policy.limits.items()}
        response = Response(Categorical(text, ("r", "g")), 3.0)
        public = PublicParameters("additive_noise", "original", (text,), responses=(response,))
        schema = replace(SCHEMA, label=Categorical(text, ("a", "b")))
        return write(
            replace(
                summary,
                settings=replace(
                    summary.settings,
                    owner=text,
                    audience=text,
                    policy=replace(policy, limits=limits),
                ),
                sanitized=replace(
                    summary.sanitized,
                    public=public,
                    guarantee=Guarantee("bounded", 0.5, 1.0, 2.5, (text, "Once & only.")),
                ),
                validated=replace(summary.validated, schema=schema),
                counted=tuple(replace(one, shown=text) for one in summary.counted),
            )
        )

    text, control = make(HOSTILE[what]), make("plain")
    assert list_structure(text) == list_structure(control)
    assert all(map(is_safe_line, text.split("\n")))
    assert text.count("\n") == control.count("\n")
    if what != "indented":  # Markdown shows only one of several spaces
        shown = " ".join(show_line(HOSTILE[what]).split())
        assert read_text(text).count(shown) >= 7


def test_format_card_unknown_name_in_template_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "card.md.j2"
    template.write_text("{{ view.heed }}")
    monkeypatch.setattr(card, "TEMPLATE", template)
    with pytest.raises(jinja2.UndefinedError, match="heed"):
        write(make_summary())


def test_find_card_published_text_is_read(tmp_path: Path) -> None:
    summary = make_summary()
    view = build_view(ReportFacts(summary), "steward")
    assert find_card(summary, view) == format_card(view)
    published = replace(summary, folder=tmp_path)
    assert find_card(published, view) == format_card(view)
    (tmp_path / "card.md").write_text("# As published\n")
    assert find_card(published, view) == "# As published\n"


@pytest.mark.parametrize("kind", ["bounded", "bounded_given_basis", "empirical"])
def test_format_card_conditional_bound_called_weaker_promise(
    kind: Literal["bounded", "bounded_given_basis", "empirical"],
) -> None:
    guarantee = Guarantee(kind, 0.5, 1.0, 2.5, ("One release.", "Cells hold medians."))
    text = write(make_summary(sanitized=make_sanitized_facts(guarantee=guarantee)))
    assert ("This is a weaker promise" in text) == (kind == "bounded_given_basis")
    assert "- Cells hold medians.\n" in text


@pytest.mark.parametrize("stage", [Stage.APPROVED, Stage.PUBLISHED])
def test_format_card_stage_at_publication_does_not_matter(stage: Stage) -> None:
    changes: dict[str, Any] = {"ledger": None}
    assert write(make_summary(stage, **changes)) == write(make_summary(**changes))

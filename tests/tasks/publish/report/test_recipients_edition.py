"""The recipients' edition: rounded figures, also in drawings, and nothing of other releases."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from ppdm_core.audit.disclosure_rounding import ENDS
from tasks.publish.report.build import build_view
from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.render import render_report
from tests.support.report_facts import LIMITS, SCORES, make_facts, make_summary
from tests.support.svg_values import list_figures, read_shares
from warehouse.stages import Stage

NEAR = 0.0001  # of a share: two decimals of a coordinate


def render(edition: str = "recipients") -> str:
    return render_report(build_view(make_facts(make_summary()), edition))  # type: ignore[arg-type]


def is_band_end(share: float, shifts: tuple[float, ...] = (0.0,)) -> bool:
    return any(abs(share - end - shift) < NEAR for end in ENDS for shift in shifts)


def list_shares(page: str) -> list[tuple[str, float]]:
    return [
        (style, share)
        for figure in list_figures(page)
        for style, shares in read_shares(figure).items()
        for share in shares
    ]


def test_recipients_page_coordinates_are_those_of_rounded_values() -> None:
    shares = list_shares(render())
    assert {"with", "without", "interval", "limit", "kept", "original"} <= {s for s, _ in shares}
    assert len(shares) > 40
    limits = (0.0, *(limit.value for limit in LIMITS.values() if limit.value < 1))
    for style, share in shares:
        assert is_band_end(share, limits if style == "limit" else (0.0,)), (style, share)


def test_steward_page_coordinates_are_exact() -> None:
    """The control: the same check finds exact values where they are drawn."""
    risks = read_shares(list_figures(render("steward"))[0])
    exact = {score.value for score in SCORES if score.kind == "privacy"}
    for value in exact:
        assert any(abs(share - value) < NEAR for share in risks["with"])
    assert not all(map(is_band_end, risks["with"]))


def test_recipients_page_text_holds_no_exact_figure() -> None:
    page, checked = render(), 0
    rounded = {text for end in ENDS for text in (f"{end:.3g}", f"{100 * end:.1f} %")}
    for score in SCORES:
        for value in (score.value, score.low, score.high, score.baseline, score.original or 0.0):
            for text in {f"{value:.3g}", f"{100 * value:.1f} %"} - rounded:
                assert not re.search(rf"(?<![\d.]){re.escape(text)}(?!\d)", page), text
                checked += 1
    assert checked > 50


@pytest.mark.extended
@pytest.mark.parametrize(
    "private",
    ["wine-0002", "random_rotation", "REFUSED", "What to do now", "most isolated", "mood=calm",
     "Which columns drive the risk", "1 in 20",
     "insiders exist", "s" * 64, "What happened to the data", "Release file"],
)  # fmt: skip
def test_recipients_page_leaves_out_what_is_private(private: str) -> None:
    assert private in render("steward")
    assert private not in render()


def test_recipients_page_small_counts_are_hidden() -> None:
    view = build_view(ReportFacts(make_summary()), "recipients")
    records = dict(view.head.facts)["records"]
    assert records == "519 released, at most 60 not used"
    assert any("unlisted categories: fewer than 10." in note for note in view.record_notes)
    assert any("not released: at most 60." in note for note in view.record_notes)


def test_recipients_page_before_and_after_publication_same_bytes() -> None:
    """A retry continues at another stage, at another time and with more events."""
    first = make_summary(Stage.APPROVED)
    again = make_summary(Stage.PUBLISHED)
    later = replace(again, run=replace(again.run, pid=99, flow_run_id="other"))
    pages = {
        render_report(build_view(facts, "recipients"))
        for facts in (ReportFacts(first), ReportFacts(again), make_facts(later))
    }
    assert len(pages) == 1
    other = replace(first.run, started=first.run.started + timedelta(days=1))
    assert (
        render_report(build_view(ReportFacts(replace(first, run=other)), "recipients")) not in pages
    )

"""The page of a report: self-contained, without script, the same for the same view."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tasks.publish.report.build import build_view
from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.render import render_report
from tasks.publish.report.view import Edition
from tasks.release_summary import Summary
from tests.support.hostile_text import HOSTILE, is_safe_line
from tests.support.report_facts import (
    REPORT,
    SCORES,
    make_facts,
    make_refused,
    make_summary,
    make_waiting,
)
from warehouse.stages import Stage

MAX_BYTES = 400_000
CASES = {"published": make_summary, "refused": make_refused, "waiting": make_waiting}
VOID = {"meta", "polyline", "circle", "rect", "polygon"}


def render(summary: Summary, edition: Edition = "steward") -> str:
    return render_report(build_view(make_facts(summary), edition))


class Structure(HTMLParser):
    """Every element with the names of its attributes, and the texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("edition", ["steward", "recipients"])
def test_render_report_page_is_self_contained(case: str, edition: Edition) -> None:
    page = render(CASES[case](), edition)
    found = Structure(page)
    assert found.open == []
    names = {tag for tag, _ in found.elements}
    assert names.isdisjoint({"script", "img", "link", "iframe", "object", "form", "base", "image"})
    attributes = {name for _, given in found.elements for name in given}
    assert attributes.isdisjoint({"src", "href", "style", "xlink:href", "onclick", "onload"})
    assert "http://" not in page and "https://" not in page and "url(" not in page
    assert len(page.encode()) < MAX_BYTES


def test_render_report_policy_allows_its_style_only() -> None:
    page = render(make_summary())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#39;sha256-{digest}&#39;" in policy or f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.extended
@pytest.mark.parametrize("what", HOSTILE)
def test_render_report_hostile_text_adds_no_element(what: str) -> None:
    def make(text: str) -> str:
        summary = make_summary()
        assert summary.settings and summary.verdict and summary.sanitized
        first, *others = SCORES
        findings = tuple(replace(each, why=text) for each in summary.verdict.findings)
        return render(
            replace(
                summary,
                settings=replace(summary.settings, owner=text, audience=text),
                verdict=replace(summary.verdict, findings=findings),
                report=replace(
                    REPORT, scores=(replace(first, group=text, worst_group=0.5), *others)
                ),
            )
        )

    page = make(HOSTILE[what])
    assert Structure(page).elements == Structure(make("plain")).elements
    assert all(map(is_safe_line, page.split("\n")))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("published", ["PUBLISHED", "every limit was kept", "ppdm verify 0001", "ppdm key backup"]),
        (
            "refused",
            [
                "REFUSED",
                "knows a person&#39;s full record: all persons were found",
                "ppdm methods",
            ],
        ),
        (
            "waiting",
            ["WAITS FOR REVIEW", "a reviewer decides", "ppdm decide wine-0001 --approve"],
        ),
    ],
)
def test_render_report_outcome_and_next_step_are_named(case: str, words: list[str]) -> None:
    page = render(CASES[case]())
    for each in words:
        assert each in page


def test_render_report_no_word_promises_safety() -> None:
    for case in CASES.values():
        words = re.findall(r"[a-z]+", " ".join(Structure(render(case())).texts).lower())
        assert not {"safe", "anonymous", "anonymised", "anonymized"} & set(words)


def test_render_report_every_figure_has_a_table_below() -> None:
    page = render(make_summary())
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert len(figures) == 7
    for figure in figures:
        assert figure.index("</svg>") < figure.index("<table")
        assert figure.count("<td") >= 2


@pytest.mark.parametrize("stage", [Stage.REJECTED, Stage.ABANDONED, Stage.CREATED])
def test_render_report_release_without_facts_is_shown(stage: Stage) -> None:
    run = replace(make_summary().run, stage=stage)
    page = render_report(build_view(ReportFacts(Summary(make_summary().home, run)), "steward"))
    assert "wine-0001" in page and "What attackers gain" not in page

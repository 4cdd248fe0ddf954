"""Reports in a real browser: light, dark, on a phone and printed, for every kind of release."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.publish.report.build import build_view
from tasks.publish.report.render import render_report
from tests.support.report_facts import (
    make_facts,
    make_refused,
    make_released_profile,
    make_summary,
    make_waiting,
)

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The dataset of all of them has three releases.
CASES = {
    "published": (make_summary, "steward", "PUBLISHED"),
    "recipients": (make_summary, "recipients", "PUBLISHED"),
    "refused": (make_refused, "steward", "REFUSED"),
    "waiting": (make_waiting, "steward", "WAITS FOR REVIEW"),
}
SCREENS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1100, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1100, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 700}, "color_scheme": "light"},
}
A4_POINTS = (595, 842)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: install Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case as a file; PPDM_PICTURES keeps the pictures."""
    given = os.environ.get("PPDM_PICTURES")
    folder = Path(given) if given else tmp_path_factory.mktemp("pages")
    folder.mkdir(parents=True, exist_ok=True)
    released = make_released_profile(folder, 30)
    for name, (make, edition, _) in CASES.items():
        facts = replace(make_facts(make()), released=released)
        view = build_view(facts, edition)  # type: ignore[arg-type]
        (folder / f"{name}.html").write_text(render_report(view), encoding="utf-8")
    return folder


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("case", CASES)
def test_page_on_screen_no_request_no_overflow_no_barrier(
    case: str, screen: str, browser: Any, folder: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(**SCREENS[screen])
    page = context.new_page()
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    address = (folder / f"{case}.html").as_uri()
    page.goto(address)
    assert page.get_by_role("heading", level=1).inner_text().find(CASES[case][2]) >= 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = page.locator("svg[role=img]:visible")
    assert shown.count() >= 2
    wanted = "narrow" if screen == "phone" else "wide"
    classes = shown.evaluate_all("all => all.map(each => each.getAttribute('class'))")
    assert set(classes) == {wanted}
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (light == "rgb(255, 255, 255)") == (screen != "dark")
    page.screenshot(path=folder / f"{case}_{screen}.png", full_page=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert (requests, messages) == ([address], [])
    found = Axe().run(page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert serious == [], [(each["id"], each["nodes"][0]["html"]) for each in serious]
    context.close()


@pytest.mark.parametrize("case", CASES)
def test_page_printed_on_a4_with_folded_parts(case: str, browser: Any, folder: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto((folder / f"{case}.html").as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 960})  # what the margins leave of A4
    cell = "getComputedStyle(document.querySelector('td')).display"
    assert page.evaluate(cell) == "table-cell"  # not stacked, as on a phone
    tables = page.locator("table")
    assert tables.count() > 3
    assert all(table.bounding_box()["height"] > 20 for table in tables.all())
    path = folder / f"{case}.pdf"
    page.pdf(path=path, prefer_css_page_size=True, print_background=True)
    sizes = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", path.read_bytes()))
    assert {(round(float(w)), round(float(h))) for w, h in sizes} == {A4_POINTS}
    context.close()

"""The released table in the recipients' edition: small counts, many columns, same bytes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tasks.publish.report.build import build_view
from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.released_figures import choose_shade, draw_distributions, format_number
from tasks.publish.report.render import render_report
from tasks.publish.report.view import Edition
from tests.support.report_facts import make_released_profile, make_summary
from warehouse.publishing.released_profile import ReleasedProfile


def render(profile: ReleasedProfile | None, edition: Edition = "recipients") -> str:
    return render_report(build_view(ReportFacts(make_summary(), released=profile), edition))


@pytest.mark.parametrize("count", [2, 9, 216])
def test_recipients_page_many_columns_within_size(count: int, tmp_path: Path) -> None:
    page = render(make_released_profile(tmp_path, count))
    assert len(page.encode()) < 400_000
    assert page.count("Distributions of the released columns: the figures as a table") == 1
    assert ("192 further columns are in the file" in page) == (count == 216)
    assert ("Correlations of the released columns" in page) == (count > 2)


def test_recipients_page_small_counts_of_rows_not_shown(tmp_path: Path) -> None:
    profile = make_released_profile(tmp_path, 9)
    page = render(profile)
    assert "calm: 491; tense: &lt;10" in page and "tense: 9" not in page
    assert "&lt;10: fewer than 10" in page
    figure = draw_distributions(profile)
    shown = [int(each) for row in figure.rows for each in re.findall(r"[;:] (\d+)\b", row[3])]
    assert len(shown) > 20 and min(shown) >= 10


def test_steward_page_leaves_the_released_table_to_the_file(tmp_path: Path) -> None:
    assert "The released table" not in render(make_released_profile(tmp_path, 9), "steward")
    assert "The released table" not in render(None)


def test_recipients_page_same_file_same_bytes(tmp_path: Path) -> None:
    pages = {render(make_released_profile(tmp_path, 30, n=20_000)) for _ in range(2)}
    assert len(pages) == 1


@pytest.mark.parametrize(
    ("value", "classes"),
    [(1.0, "plus shade5"), (-1.0, "minus shade5"), (0.04, "plus shade0"), (-0.04, "plus shade0"),
     (-0.41, "minus shade2")],
)  # fmt: skip
def test_choose_shade_sign_and_size(value: float, classes: str) -> None:
    assert choose_shade(value) == classes


@pytest.mark.parametrize(
    ("value", "text"), [(1234567.0, "1.23e6"), (0.5, "0.5"), (1.2e-7, "1.2e-7"), (0.0, "0")]
)
def test_format_number_three_digits(value: float, text: str) -> None:
    assert format_number(value) == text

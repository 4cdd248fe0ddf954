"""The picture of a year of releases in docs/ledger.md, and the figures on that page."""

from __future__ import annotations

import json
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studies import draw_weekly_releases as weekly

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "ledger.md").read_text()


@pytest.fixture(scope="module")
def shown() -> dict[str, list[list[float]]]:
    with Image.open(weekly.PICTURE_PATH) as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))


def test_ledger_page_figures_match_picture(shown: dict[str, list[list[float]]]) -> None:
    assert f"(pictures/{weekly.PICTURE_PATH.name})" in TEXT
    section = TEXT.partition("## Repeated releases cost nothing")[2].partition("\n## ")[0]
    weeks = weekly.WEEKS
    for kind in ("fresh", "keyed"):
        for week in (1, 13, 52):
            assert f"{shown[kind][weeks.index(week)][0]:.0%}".replace("%", " %") in section


def test_picture_year_only_fresh_noise_averages_out(
    shown: dict[str, list[list[float]]],
) -> None:
    fresh, keyed = (np.array(shown[kind])[:, :3] for kind in ("fresh", "keyed"))
    assert fresh[-1, 1] > 0.8
    assert keyed[-1, 2] < 0.3
    assert fresh[0].tolist() == pytest.approx(keyed[0].tolist(), abs=0.1)


def test_draw_weekly_tables_one_week_a_twentieth_changes(shared_data: Path) -> None:
    tables = [rows.whole.X for rows in islice(weekly.draw_weekly_tables(shared_data), 6)]
    for one, other in pairwise(tables):
        changed = (one != other).sum(axis=1)
        assert 4 <= (changed > 0).sum() <= 9 and changed.max() == 1


def test_measure_weeks_first_weeks_match_picture(
    shared_data: Path, shown: dict[str, list[list[float]]]
) -> None:
    found = weekly.measure_weeks(shared_data, weekly.WEEKS[:3])
    for kind, points in found.items():
        for now, then in zip(points, shown[kind], strict=False):
            assert now == pytest.approx(then, abs=0.03)

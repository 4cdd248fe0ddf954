"""The measurements behind the picture of a year of releases in docs/ledger.md."""

from __future__ import annotations

import json
from itertools import islice, pairwise
from pathlib import Path

import pytest
from PIL import Image

from studies import draw_weekly_releases as weekly


@pytest.fixture(scope="module")
def shown() -> dict[str, list[list[float]]]:
    with Image.open(weekly.PICTURE_PATH) as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))


def test_draw_weekly_tables_one_week_a_twentieth_changes(shared_data: Path) -> None:
    tables = [rows.whole.X for rows in islice(weekly.draw_weekly_tables(shared_data), 6)]
    for one, other in pairwise(tables):
        changed = (one != other).sum(axis=1)
        assert 4 <= (changed > 0).sum() <= 9 and changed.max() == 1


@pytest.mark.slow
def test_measure_weeks_first_weeks_match_picture(
    shared_data: Path, shown: dict[str, list[list[float]]]
) -> None:
    found = weekly.measure_weeks(shared_data, weekly.WEEKS[:3])
    for kind, points in found.items():
        for now, then in zip(points, shown[kind], strict=False):
            assert now == pytest.approx(then, abs=0.03)

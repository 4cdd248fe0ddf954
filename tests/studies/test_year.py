"""The picture of a year of releases in docs/ledger.md, and what the page says of it."""

from __future__ import annotations

import json
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studies import draw_year

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "ledger.md").read_text()


@pytest.fixture(scope="module")
def shown() -> dict[str, list[list[float]]]:
    with Image.open(draw_year.PATH) as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))


def test_the_page_tells_what_the_picture_shows(shown: dict[str, list[list[float]]]) -> None:
    assert f"(pictures/{draw_year.PATH.name})" in TEXT
    section = TEXT.partition("## Why repeats are free")[2].partition("\n## ")[0]
    weeks = draw_year.WEEKS
    for kind in ("fresh", "keyed"):
        for week in (1, 13, 52):
            assert f"{shown[kind][weeks.index(week)][0]:.0%}".replace("%", " %") in section


def test_fresh_noise_wears_off_and_keyed_noise_does_not(
    shown: dict[str, list[list[float]]],
) -> None:
    fresh, keyed = (np.array(shown[kind])[:, :3] for kind in ("fresh", "keyed"))
    assert fresh[-1, 1] > 0.8  # surely
    assert keyed[-1, 2] < 0.3
    assert fresh[0].tolist() == pytest.approx(keyed[0].tolist(), abs=0.1)


def test_a_table_changes_by_a_twentieth_every_week(shared_data: Path) -> None:
    tables = [rows.whole.X for rows in islice(draw_year.tables(shared_data), 6)]
    for one, other in pairwise(tables):
        changed = (one != other).sum(axis=1)
        assert 4 <= (changed > 0).sum() <= 9 and changed.max() == 1


def test_a_point_of_the_picture_is_what_the_audit_gives(
    shared_data: Path, shown: dict[str, list[list[float]]]
) -> None:
    found = draw_year.figures(shared_data, draw_year.WEEKS[:3])
    for kind, points in found.items():
        for now, then in zip(points, shown[kind], strict=False):
            assert now == pytest.approx(then, abs=0.03)

from __future__ import annotations

from dataclasses import replace

from tasks.publish.report.drawing import Dot
from tasks.tune.frontier import Point, draw_points

CHOSEN = Point(1, 0.01, 0.0, 0.02, 0.8, 0.7, 0.9, "PASS", is_chosen=True)


def test_draw_points_settings_at_one_place_proposed_one_on_top():
    other = replace(CHOSEN, number=2, outcome="REVIEW", is_chosen=False)
    drawing = draw_points("t", 700, 0.05, [CHOSEN, other], [False, False])
    styles = [mark.style for mark in drawing.marks if isinstance(mark, Dot)]
    assert styles == ["tone-review", "tone-pass", "ring"]

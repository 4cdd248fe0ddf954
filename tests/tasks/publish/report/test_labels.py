"""The labels of points in the plot of all releases."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tasks.publish.report.drawing import Text
from tasks.publish.report.history_figures import BOTTOM, HEIGHT, TOP, is_near, label_point

places = st.tuples(st.floats(0.0, 760.0), st.floats(TOP, HEIGHT - BOTTOM), st.booleans())


def place_labels(points: list[tuple[float, float, bool]]) -> list[Text]:
    labels: list[Text] = []
    for x, y, is_right in points:
        label = label_point(x, y, "wdbc-0001", is_right, labels)
        labels += [label] if label else []
    return labels


@given(st.lists(places, max_size=30))
def test_label_point_any_points_no_label_covers_another(
    points: list[tuple[float, float, bool]],
) -> None:
    labels = place_labels(points)
    assert not any(is_near(a, b.x, b.y) for a, b in combinations(labels, 2))
    assert all(TOP <= label.y <= HEIGHT - BOTTOM for label in labels)


def test_label_point_many_equal_points_labelled_until_full() -> None:
    """Eight releases with the same figures are usual: a repeated refusal."""
    assert len(place_labels([(300.0, 100.0, True)] * 8)) == 8
    assert 8 < len(place_labels([(300.0, 100.0, True)] * 50)) < 50

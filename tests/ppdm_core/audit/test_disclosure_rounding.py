from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.audit.disclosure_rounding import (
    format_bound,
    round_down,
    round_report,
    round_score,
    round_up,
)
from ppdm_core.metrics import METRICS, SentenceValues
from ppdm_core.model.score import AuditReport, Score

ENDS = [0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
ENDS += [
    0.55,
    0.6,
    0.65,
    0.7,
    0.75,
    0.8,
    0.85,
    0.9,
    0.95,
    *range(1, 10),
    *range(10, 100, 10),
    *range(100, 1001, 100),
]


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (0.0, 0, 0.01),  # exactly 0 is not reported either
        (1e-9, 0, 0.01),
        (0.01, 0.01, 0.01),
        (0.013, 0.01, 0.02),
        (0.02, 0.02, 0.02),
        (0.0201, 0.02, 0.05),
        (0.236, 0.2, 0.25),
        (0.877, 0.85, 0.9),
        (0.999, 0.95, 1),
        (1.0, 0.95, 1),  # nor that it is exactly 1
        (1.0001, 1, 2),
        (3.0, 3, 3),
        (7.5, 7, 8),
        (99.0, 90, 100),
        (1234.0, 1000, 2000),
        (-0.03, -0.05, -0.02),
        (-7.5, -8, -7),
    ],
)
def test_round_down_and_up_ends_of_band(value: float, least: float, most: float) -> None:
    assert round_down(value) == pytest.approx(least, abs=1e-12)
    assert round_up(value) == pytest.approx(most, abs=1e-12)


@pytest.mark.parametrize("value", [-0.005, -1e-300])
def test_round_up_small_negative_no_minus_zero(value: float) -> None:
    assert f"{round_up(value):g}" == "0"


@given(st.floats(-1e6, 1e6))
def test_round_down_and_up_enclose_value(value: float) -> None:
    assert round_down(value) <= value <= round_up(value)


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_round_down_and_up_monotone(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert round_down(low) <= round_down(high)
    assert round_up(low) <= round_up(high)


@given(st.floats(0, 1000))
def test_round_down_and_up_return_band_ends_only(value: float) -> None:
    for rounded in (round_down(value), round_up(value)):
        assert min(abs(rounded - end) for end in ENDS) < 1e-9


def test_round_up_nan_and_infinity_unchanged() -> None:
    assert math.isnan(round_up(math.nan)) and math.isnan(round_down(math.nan))
    assert round_up(math.inf) == math.inf


EXACT = {"value": 0.3137, "baseline": 0.1331, "original": 0.7771}


def score_of(name: str, story: str = "Insiders know 40 records.") -> Score:
    metric = METRICS[name]
    is_attack = metric.goal not in ("release", "change")
    story = story if is_attack else ""
    values = SentenceValues(**EXACT, story=story, epsilon=0.1)
    first = {"change": "knn_accuracy.", "release": ""}.get(metric.goal, "an_attack.")
    return Score(
        name=f"{first}{name}",
        kind=metric.kind,
        better=metric.better,
        value=0.3137,
        low=0.2963,
        high=0.3373,
        n=1234,
        baseline=0.1331,
        worst=0.3271,
        worst_decile=0.4177,
        worst_group=0.5237,
        group="mood calm",
        original=0.7771,
        expected=0.2887,
        victims=0.6163,
        notes={"residual": 0.1597},
        story=story,
        sentence=metric.sentence(values),
    )


def test_round_score_risk_up_baseline_down() -> None:
    found = round_score(score_of("rate"), 0.1)
    assert (found.value, found.low, found.high, found.baseline) == (0.35, 0.25, 0.35, 0.1)
    assert (found.worst, found.worst_decile, found.worst_group) == (0.35, 0.45, 0.55)
    assert (found.expected, found.victims, found.notes) == (0.3, 0.65, {"residual": 0.2})
    assert found.sentence == (
        "Insiders know 40 records. That finds 35.0 % of them; picking rows at random finds 10.0 %."
    )
    assert format_bound(found) == "at most 0.35"


def test_round_score_utility_down() -> None:
    found = round_score(score_of("knn_accuracy"), 0.1)
    assert (found.value, found.baseline, found.original) == (0.3, 0.15, 0.8)
    assert format_bound(found) == "at least 0.3"


@pytest.mark.parametrize("name", METRICS)
def test_round_report_every_metric_no_exact_figure(name: str) -> None:
    """Every score still has its sentence."""
    score = score_of(name)
    (found,) = round_report(AuditReport(scores=(score,)), 0.1).scores
    text = repr(found)
    for figure in re.findall(r"0\.\d{4}", repr(score)):
        exact = float(figure)
        assert figure not in text
        assert f"{100 * exact:.1f} %" not in text and f"{exact:.3g}" not in text
    assert found.sentence and found.sentence != score.sentence
    assert found.sentence.startswith("Insiders know 40 records.") == ("attack" in score.name)


def test_round_score_other_sentence_or_metric_no_exact_figure() -> None:
    """The sentence is formatted again from the story and the rounded figures."""
    score = score_of("rate")
    expected = round_score(score, 0.1).sentence
    assert expected
    altered = Score(**{**vars(score), "sentence": score.sentence + " In 31.4 % of the cases."})
    assert round_score(altered, 0.1).sentence == expected
    unknown = Score(**{**vars(score), "name": "an_attack.unheard_of"})
    assert round_score(unknown, 0.1).sentence == ""

"""Membership in joined rows, which the centre measures without one true record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ppdm_core.audit.joined_linkage import SumNoise
from ppdm_core.audit.joined_membership import score_joined_membership, score_members
from ppdm_core.model.policy import Policy
from tests.ppdm_core.audit.test_joined_linkage import make_label, read_records, transform

POLICY = Policy(required=(), limits={})


def compare_with_truth(T: np.ndarray, scale: float) -> tuple[float, float, float]:
    """Return the figure of the centre, that on the true coefficients, and a standard error."""
    noise, n = SumNoise(scale, 2), len(T)
    Y = T + noise.draw(T.shape, np.random.default_rng(5))
    rng = np.random.default_rng(6)
    truth = score_members(T, make_label(n), noise, POLICY, rng)
    figure = score_joined_membership(Y, make_label(n), noise, POLICY, rng)
    assert figure.baseline == truth.baseline and figure.low <= figure.value <= figure.high
    return figure.value, truth.value, float(np.sqrt(max(truth.value, 0.01) / (n / 4)))


def test_score_of_different_rows_without_noise_finds_every_member():
    Y = np.random.default_rng(0).random((200, 3))
    score = score_joined_membership(Y, make_label(200), None, POLICY, np.random.default_rng(1))
    assert (score.name, score.value) == ("membership.true_positive_rate", 1.0)


def test_score_of_equal_rows_finds_no_more_than_chance():
    Y = np.repeat([[1.0, 0.0], [0.0, 1.0]], 150, axis=0)
    score = score_joined_membership(Y, make_label(300), None, POLICY, np.random.default_rng(1))
    assert score.value == pytest.approx(score.baseline, abs=0.02)


def test_score_under_wide_noise_is_about_the_baseline():
    Y = np.random.default_rng(0).random((600, 3))
    noise = SumNoise(20.0, 2)
    score = score_joined_membership(Y, make_label(600), noise, POLICY, np.random.default_rng(1))
    assert score.low <= score.baseline and score.value < 0.1


def test_score_of_coarse_records_is_about_the_true_one_or_above_it():
    """Answers from 0 to 3, as in the example."""
    rng = np.random.default_rng(8)
    burden = rng.random((500, 1))
    T = transform(np.floor(4 * (0.5 * burden + 0.5 * rng.random((500, 8)))), 5)
    for scale in (0.05, 0.6):
        figure, truth, error = compare_with_truth(T, scale)
        assert truth - 3 * error <= figure <= 2 * truth + 3 * error


@pytest.mark.extended
@pytest.mark.parametrize("scale", [0.05, 0.2, 0.6])
@pytest.mark.parametrize(
    ("table", "n", "kept"), [("wdbc.csv", 569, 12), ("magic.csv.gz", 500, 4), ("wine.csv", 178, 5)]
)
def test_score_is_about_the_true_one_or_above_it(
    shared_data: Path, table: str, n: int, kept: int, scale: float
):
    """The centre has no record; the test has them, and compares its figure with the truth."""
    figure, truth, error = compare_with_truth(
        transform(read_records(shared_data, table, n), kept), scale
    )
    assert truth - 3 * error <= figure <= 2 * truth + 3 * error

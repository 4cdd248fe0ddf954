"""The linkage of joined rows, which the centre measures without one true record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ppdm_core.audit.joined_linkage import (
    METRIC,
    SumNoise,
    link_records,
    remove_noise,
    score_joined_rows,
    share_equal_rows,
)
from ppdm_core.model.attacker import RecordSet
from ppdm_core.model.policy import Policy

POLICY = Policy(required=(), limits={})


def make_label(n: int) -> np.ndarray:
    return np.full(n, -1, dtype=np.int32)


def measure_truth(T: np.ndarray, Y: np.ndarray, noise: SumNoise) -> float:
    """Return how many rows somebody finds who knows the coefficients of all records."""
    persons = RecordSet(T, np.empty((len(T), 0), np.int32), make_label(len(T)))
    found = link_records(persons, Y, make_label(len(T)), noise, np.random.default_rng(0))
    return max(METRIC.measure(link, np.arange(len(T))) for link in found.values())


def transform(X: np.ndarray, kept: int) -> np.ndarray:
    """Return the first cosine coefficients of records scaled to 0 and 1."""
    from scipy.fft import dct

    width = np.ptp(X, axis=0)
    scaled = (X - X.min(axis=0)) / np.where(width > 0, width, 1.0)
    return np.asarray(dct(scaled, norm="ortho", axis=1)[:, :kept])


def read_records(folder: Path, table: str, n: int) -> np.ndarray:
    X = pd.read_csv(folder / table).select_dtypes(float).to_numpy()
    return X[np.random.default_rng(0).permutation(len(X))[:n]]


def test_share_equal_rows_by_hand():
    """Two persons share a row, and a third has the same numbers with another label."""
    Y = np.array([[1.0, 0.0], [1.0, -0.0], [1.0, 0.0], [2.0, 0.0]])
    shares = share_equal_rows(Y, np.array([0, 0, 1, 1], dtype=np.int32))
    assert shares.tolist() == [0.5, 0.5, 1.0, 1.0]


def test_score_without_noise_is_the_share_of_different_rows():
    Y = np.repeat(np.arange(25.0), 4)[:, None]
    score = score_joined_rows(Y, make_label(100), None, POLICY, np.random.default_rng(1))
    assert (score.name, score.value, score.low, score.high) == (
        "record_linkage.rate", 0.25, 0.25, 0.25
    )  # fmt: skip
    assert score.baseline == pytest.approx(0.01) and score.n == 100


def test_score_baseline_picks_among_rows_with_the_label():
    label = np.repeat(np.array([0, 1], dtype=np.int32), [10, 90])
    Y = np.random.default_rng(0).random((100, 2))
    for noise in (None, SumNoise(5.0, 2)):
        score = score_joined_rows(Y, label, noise, POLICY, np.random.default_rng(1))
        assert score.baseline == pytest.approx(0.02)


def test_remove_noise_leaves_the_covariance_of_the_coefficients():
    rng = np.random.default_rng(3)
    T = rng.normal(size=(50_000, 3)) @ np.array([[2.0, 0.3, 0.0], [0.0, 0.5, 0.1], [0.0, 0.0, 0.0]])
    noise = SumNoise(0.4, 3)
    Y = T + noise.draw(T.shape, rng)
    found = remove_noise(Y, noise.variance)
    assert np.allclose(np.cov(found, rowvar=False), np.cov(T, rowvar=False), atol=0.05)
    assert np.allclose(found.mean(axis=0), Y.mean(axis=0))


@pytest.mark.extended
@pytest.mark.parametrize("scale", [0.05, 0.2, 0.6])
@pytest.mark.parametrize(
    ("table", "n", "kept"), [("wdbc.csv", 569, 12), ("magic.csv.gz", 500, 4), ("wine.csv", 178, 5)]
)
def test_score_is_about_the_true_linkage_or_above_it(
    shared_data: Path, table: str, n: int, kept: int, scale: float
):
    """The centre has no record; the test has them, and compares its figure with the truth."""
    T, noise = transform(read_records(shared_data, table, n), kept), SumNoise(scale, 2)
    Y = T + noise.draw(T.shape, np.random.default_rng(5))
    truth = measure_truth(T, Y, noise)
    score = score_joined_rows(Y, make_label(len(T)), noise, POLICY, np.random.default_rng(6))
    spread = 3 * np.sqrt(max(truth, 1 / len(T)) / len(T))  # of a rate, three standard errors
    assert truth - spread <= score.value <= 2 * truth + spread
    assert score.low <= score.value <= score.high and score.high >= truth


def test_score_of_coarse_records_is_about_the_true_linkage_or_above_it():
    """The same without a data folder: answers from 0 to 3, as in the example."""
    rng = np.random.default_rng(8)
    burden = rng.random((500, 1))
    T = transform(np.floor(4 * (0.5 * burden + 0.5 * rng.random((500, 8)))), 5)
    for scale in (0.05, 0.2, 0.6):
        noise = SumNoise(scale, 2)
        Y = T + noise.draw(T.shape, rng)
        truth = measure_truth(T, Y, noise)
        score = score_joined_rows(Y, make_label(500), noise, POLICY, rng)
        spread = 3 * np.sqrt(max(truth, 1 / 500) / 500)
        assert truth - spread <= score.value <= 2 * truth + spread

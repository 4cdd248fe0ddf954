"""The figures of the paper's vertical case on Pendigits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.column_parties import FIXED_SPLITS, measure_split, read_table

KEPT = {"first and last eight": 10, "x and y": 11, "neighbours": 11}


@pytest.fixture(scope="module")
def digits(shared_data: Path) -> np.ndarray:
    return read_table(shared_data)


@pytest.mark.extended
@pytest.mark.parametrize("name", FIXED_SPLITS)
def test_measure_split_pendigits_keeps_ten_or_eleven(digits: np.ndarray, name: str):
    found = measure_split(digits, FIXED_SPLITS[name])
    assert found.kept == KEPT[name]
    # Both are maxima over records, and not of the same record: only the ratio of a record bounds.
    assert found.whole / found.local <= found.ratio <= len(FIXED_SPLITS[name])
    # The fuzzy choice bounds shares; as many coefficients can cost the worst record less.
    assert 0 < found.least <= found.local


def test_measure_split_ratio_is_that_of_one_record():
    """By hand: the first record loses twice as much as at a party, the others nothing of note."""
    m = 8
    C = np.cos(np.pi * (2 * np.arange(m) + 1) * 4 / (2 * m))  # the fifth coefficient alone
    X = np.tile(np.linspace(0.2, 0.9, 40)[:, None], (1, m))
    one = measure_split(X, [[0, 1, 2, 3], [4, 5, 6, 7]])
    both = measure_split(np.vstack([X, 0.5 + 0.4 * C]), [[0, 1, 2, 3], [4, 5, 6, 7]])
    assert one.ratio <= both.ratio <= 2.0 and both.kept >= 1

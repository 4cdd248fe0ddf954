from __future__ import annotations

import numpy as np

from studies.pooled_sites import measure_pool


def test_measure_pool_separate_classes_lose_nothing_and_density_errs_more_with_more_sites():
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 2)) + 8.0 * label[:, None]
    one = measure_pool(X, label, 1, seed=1)
    four = measure_pool(X, label, 4, seed=1)
    assert abs(one[0]) <= 0.02 and abs(four[0]) <= 0.02
    assert four[2] > one[2]  # fewer records per site: its density is farther from the truth
    assert all(0.0 <= value <= 1.0 for value in (*one[2:], *four[2:]))

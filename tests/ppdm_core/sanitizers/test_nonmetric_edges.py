from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from ppdm_core.sanitizers._nonmetric import (
    compute_stress_and_gradient,
    descend,
    rank_dissimilarities,
)


def make_points(n: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Return records of integers, and a start for them in the plane."""
    rng = np.random.default_rng(1)
    X = np.unique(rng.integers(0, 4, (n, 4)), axis=0)
    return X, rng.standard_normal((len(X), 2))


def test_descend_coincident_start_points_stay_finite():
    X, Y = make_points()
    Y[: len(Y) // 2] = Y[0]
    for ties in ("primary", "secondary"):
        found, stress = descend(Y, rank_dissimilarities(pdist(X), ties), 1e-4, 50)
        assert np.isfinite(found).all()
        assert np.all(np.diff(stress) < 0)
        assert stress[-1] < 0.7 * stress[0]


def test_stress_coincident_points_has_zero_gradient():
    X, Y = make_points()
    value, gradient = compute_stress_and_gradient(
        np.zeros_like(Y), rank_dissimilarities(pdist(X), "secondary")
    )
    assert value == 1.0
    assert not gradient.any()


def test_stress_coincident_nearest_pair_is_zero():
    # The nearest pair of records coincides, which preserves the order exactly.
    delta = np.array([1.0, 3.0, 3.0])
    Y = np.array([[0.0], [0.0], [1.0]])
    for ties in ("primary", "secondary"):
        value, gradient = compute_stress_and_gradient(Y, rank_dissimilarities(delta, ties))
        assert value == 0.0
        assert not gradient.any()

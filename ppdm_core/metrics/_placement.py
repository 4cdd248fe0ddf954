"""Positions of records in a release that preserves distances only."""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._release import sample_indices
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.sanitizers._nonmetric import fit_monotone_map, rank_dissimilarities
from ppdm_core.sanitizers._placement import Placement

MAX_LANDMARKS = 400


def place_records(comparison: ReleaseComparison, test_records: Ints, others: Ints) -> Floats:
    """Return the positions of the test records among the rows of other records.

    At most 400 random records with different values are the landmarks. Isotonic regression of
    their released on their original distances gives the map from one to the other, and each test
    record is placed where its distances from the landmarks fit best.
    """
    from scipy.spatial.distance import pdist

    _, first = np.unique(comparison.X[others], axis=0, return_index=True)
    some = sample_indices(len(first), MAX_LANDMARKS, comparison.rng("landmarks"))
    landmarks = others[np.sort(first)[some]]
    X, Y = comparison.X[landmarks], comparison.rows[landmarks]
    delta = pdist(X)
    if not len(delta):  # all others are equal
        return np.repeat(Y, len(test_records), axis=0)
    farthest = float(np.linalg.norm(np.ptp(comparison.X, axis=0)))
    knots = fit_monotone_map(
        delta, rank_dissimilarities(delta, "secondary").fit(pdist(Y)), farthest
    )
    return Placement(X, Y, knots).place(comparison.X[test_records])

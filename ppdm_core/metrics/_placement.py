"""Records among rows of which only distances are known: as new ones would be placed."""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Compared
from ppdm_core.metrics._release import some_of
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.sanitizers._nonmetric import monotone_map, order_of
from ppdm_core.sanitizers._placement import Placement

LANDMARKS = 400


def placed(compared: Compared, asked: Ints, others: Ints) -> Floats:
    """Where the asked records belong among the rows of others.

    At most 400 random records with different values are the landmarks. Isotonic regression of
    their released on their original distances gives the map from one to the other, and every asked
    record goes where its distances from the landmarks fit best.
    """
    from scipy.spatial.distance import pdist

    _, first = np.unique(compared.X[others], axis=0, return_index=True)
    some = some_of(len(first), LANDMARKS, compared.rng("landmarks"))
    landmarks = others[np.sort(first)[some]]
    X, Y = compared.X[landmarks], compared.rows[landmarks]
    delta = pdist(X)
    if not len(delta):  # all others are equal
        return np.repeat(Y, len(asked), axis=0)
    farthest = float(np.linalg.norm(np.ptp(compared.X, axis=0)))
    knots = monotone_map(delta, order_of(delta, "secondary").fit(pdist(Y)), farthest)
    return Placement(X, Y, knots).place(compared.X[asked])

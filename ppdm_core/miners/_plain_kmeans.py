"""Plain K-means by scikit-learn, with the same result for any number of threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ppdm_core.model.arrays import Floats


def fit_plain_kmeans(
    X: Floats, count: int, rng: np.random.Generator, *, n_init: int, **parameters: Any
) -> KMeans:
    """Return scikit-learn's estimator, fitted to the rows on one thread."""
    from threadpoolctl import threadpool_limits

    found = KMeans(count, n_init=n_init, random_state=int(rng.integers(2**32)), **parameters)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer different rows than clusters
        return found.fit(X)

"""Random orthogonal matrices."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats


def random_orthogonal(size: int, rng: np.random.Generator) -> Floats:
    """Draw an orthogonal matrix that is uniform by Haar's measure."""
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    # Without the signs of R the distribution depends on the algorithm of the QR decomposition.
    return np.asarray(Q * np.where(np.diag(R) < 0, -1.0, 1.0))

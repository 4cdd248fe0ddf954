from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats


def haar(size: int, rng: np.random.Generator) -> Floats:
    """An orthogonal matrix, uniform by Haar's measure."""
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    # Without the signs of R the law depends on how QR was computed.
    return np.asarray(Q * np.where(np.diag(R) < 0, -1.0, 1.0))

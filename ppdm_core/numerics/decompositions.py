"""Eigenvectors and singular vectors by a fast algorithm, and by a safer one where that fails."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats


def decompose_symmetric(A: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues of a symmetric matrix, ascending, and its eigenvectors.

    The divide-and-conquer algorithm of LAPACK does not converge for some matrices, among them
    kernels of values that repeat.
    """
    try:
        values, vectors = np.linalg.eigh(A)
    except np.linalg.LinAlgError:
        from scipy.linalg import eigh

        values, vectors = eigh(A, driver="evr", check_finite=False)
    return values, vectors


def decompose_singular(A: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the thin singular value decomposition: left vectors, values, right vectors in rows."""
    try:
        U, S, Vt = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd

        U, S, Vt = svd(A, full_matrices=False, lapack_driver="gesvd", check_finite=False)
    return U, S, Vt

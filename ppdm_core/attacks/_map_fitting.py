"""Two ways to fit a map from released to original rows on a few known pairs."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.decompositions import decompose_singular

# Largest first: without any leave-one-out evidence the strongest penalty is taken.
_PENALTIES = np.append(10.0 ** np.arange(2.0, -9.0, -1.0), 0.0)
_MIN_SLACK = 1e-9
_TINY = np.finfo(np.float64).tiny
_MAX_EXPONENT = 900  # beyond it the unit itself could overflow


def procrustes(Yk: Floats, Xk: Floats, Y: Floats) -> Floats:
    """Map ``Y`` by the rotation, scale and translation that fit the known pairs best; (n, d).

    Released and original width may differ. Directions in which the known rows do not vary stay at
    the mean of the known records.
    """
    x0 = Xk.mean(axis=0)
    Yk, Y = _centre(Yk, Y)
    U, values, Vt = decompose_singular(Yk.T @ (Xk - x0))
    is_informative = values / values.max(initial=_TINY) > 1e-12
    W = U[:, is_informative] @ Vt[is_informative]  # (s, d)
    moved = Yk @ W
    length = float(np.sum(moved**2))
    scale = float(np.sum(moved * (Xk - x0))) / length if length > 0 else 0.0
    X_hat: Floats = x0 + scale * Y @ W  # (n, d)
    return X_hat


def ridge(Yk: Floats, Xk: Floats, Y: Floats) -> Floats:
    """Map ``Y`` by least squares with intercept; (n, d).

    The penalty of each column is chosen by leave-one-out errors in closed form.
    """
    x0 = Xk.mean(axis=0)
    Yk, Y = _centre(Yk, Y)
    U, S, Vt = decompose_singular(Yk)
    is_informative = S / S.max(initial=_TINY) > 1e-10
    U, S, Vt = U[:, is_informative], S[is_informative], Vt[is_informative]
    T = U.T @ (Xk - x0)  # (r, d)
    penalties = _PENALTIES * S.max(initial=0.0) ** 2
    losses = np.array([_leave_one_out_errors(U, S, T, Xk - x0, penalty) for penalty in penalties])
    chosen = penalties[np.argmin(losses, axis=0)]  # (d,)
    coefficients = Vt.T @ (S[:, None] / (S[:, None] ** 2 + chosen) * T)  # (s, d)
    X_hat: Floats = x0 + Y @ coefficients  # (n, d)
    return X_hat


def _centre(Yk: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Centre both tables at the mean of the known rows, in a unit that avoids underflow of squares.

    The unit is a power of two, so that no digit changes.
    """
    y0 = Yk.mean(axis=0)
    _, exponent = np.frexp(np.abs(Yk - y0).max(initial=0.0))
    unit = np.ldexp(1.0, int(np.clip(exponent, -_MAX_EXPONENT, _MAX_EXPONENT)))
    return (Yk - y0) / unit, (Y - y0) / unit


def _leave_one_out_errors(U: Floats, S: Floats, T: Floats, X: Floats, penalty: float) -> Floats:
    """Return the mean squared error per column when each pair is predicted from the others.

    The residual of a left-out row is its residual divided by 1 - leverage. Both are built from
    the unfitted share of each direction, because 1 - leverage cancels when k <= s.
    """
    k = len(U)
    unfitted = penalty / (S**2 + penalty) if penalty > 0 else np.zeros_like(S)  # (r,)
    residual = X - U @ T + U @ (unfitted[:, None] * T)  # (k, d)
    outside = np.maximum(1.0 - 1.0 / k - np.sum(U**2, axis=1), 0.0)
    slack = outside + U**2 @ unfitted  # (k,)
    if slack.min() <= _MIN_SLACK:
        return np.full(X.shape[1], np.inf)
    losses: Floats = np.mean((residual / slack[:, None]) ** 2, axis=0)
    return losses

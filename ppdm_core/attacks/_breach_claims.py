"""Breach probabilities that an attacker can claim for estimates learned from known pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.decompositions import decompose_singular

Learner = Callable[[Floats, Floats, Floats], Floats]  # known rows, their records, rows to map
MAX_FOLDS = 20
_MIN_LOG_SPREAD = 0.05  # least spread assumed for the logarithm of an error
_TINY = np.finfo(np.float64).tiny


def learn_claims(
    learn: Learner, Yk: Floats, Xk: Floats, Y: Floats, X_hat: Floats, epsilon: float
) -> Floats:
    """Return the attacker's own probability, per row, that ``X_hat`` is within ``epsilon``.

    Each known record is estimated from the others (in at most 20 folds). The logarithms of those
    errors, less what the row's distance from the pairs explains, follow a Student distribution
    as far as the attacker can know. One pair says nothing about errors: the claim is 0.
    """
    from scipy.special import stdtr

    k = len(Xk)
    if k < 2:
        return np.zeros(len(Y))
    levels = np.empty(k)
    for left in split_folds(k, MAX_FOLDS):
        rest = np.setdiff1d(np.arange(k), left)
        error = np.linalg.norm(learn(Yk[rest], Xk[rest], Yk[left]) - Xk[left], axis=1)
        levels[left] = np.log(error + _TINY) - _log_reach(Yk[rest], Yk[left])
    spread = max(float(levels.std(ddof=1)), _MIN_LOG_SPREAD) * np.sqrt(1.0 + 1.0 / k)
    radius = np.log(epsilon * np.linalg.norm(X_hat, axis=1) + _TINY)
    claim: Floats = stdtr(k - 1, (radius - _log_reach(Yk, Y) - levels.mean()) / spread)
    return claim


def split_folds(k: int, most: int) -> list[Ints]:
    """Split ``k`` pairs into at most ``most`` folds, each to be left out once."""
    return np.array_split(np.arange(k), min(k, most))


def _log_reach(Yk: Floats, Y: Floats) -> Floats:
    """Return half the logarithm of 1 + leverage of each row.

    An estimate is the worse, the farther its row is from the known ones, the more so in directions
    in which those hardly differ.
    """
    y0 = Yk.mean(axis=0)
    _, S, Vt = decompose_singular(Yk - y0)
    weak = float(np.mean(S**2)) / len(Yk)  # of directions in which the known rows do not vary
    if weak < _TINY:
        return np.zeros(len(Y))
    V = Y - y0
    T = V @ Vt.T  # (n, r)
    outside = np.maximum(np.einsum("ij,ij->i", V, V) - np.einsum("ij,ij->i", T, T), 0.0)
    leverage = T**2 @ (1.0 / (S**2 + weak)) + outside / weak
    return np.asarray(0.5 * np.log1p(leverage))

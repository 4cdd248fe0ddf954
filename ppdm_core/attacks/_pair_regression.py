"""Predict features from features, learned from known pairs of a record and its row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Bools, Floats
from ppdm_core.numerics.decompositions import decompose_singular, decompose_symmetric

Predict = Callable[[Floats], Floats]
Fit = Callable[[Floats, Floats], tuple[Predict, Floats]]  # the predictor, left-out residuals

_PENALTIES = 10.0 ** np.arange(2.0, -9.0, -1.0)  # of the largest squared singular value
_BANDWIDTHS = (0.2, 1.0, 5.0)  # of the median squared distance
_KERNEL_PENALTIES = (1e-7, 1e-5, 1e-3, 1e-2, 1e-1, 1.0)
_MAX_KERNEL_PAIRS = 600
_COLUMN_BANDWIDTHS = (0.002, 0.03, 0.5)  # of the median squared distance within a column
_MAX_COLUMN_PAIRS = 80
_MIN_SINGULAR_VALUE = 1e-10  # relative
_MIN_SLACK = 1e-9  # of one minus the leverage
_TINY = 1e-300


def fit_ridge(U: Floats, V: Floats) -> tuple[Predict, Floats]:
    """Fit linear maps; the penalty of each output is chosen by leave-one-out errors."""
    return _fit_linear(U, V, _PENALTIES)


def fit_least_squares(U: Floats, V: Floats) -> tuple[Predict, Floats]:
    """Fit linear maps without a penalty, which is exact where a map is exact."""
    return _fit_linear(U, V, np.zeros(1))


def _fit_linear(U: Floats, V: Floats, penalties: Floats) -> tuple[Predict, Floats]:
    u0, v0, k = U.mean(axis=0), V.mean(axis=0), len(U)
    L, S, Rt = decompose_singular(U - u0)
    keep = _MIN_SINGULAR_VALUE * S.max(initial=_TINY) < S
    L, S, Rt = L[:, keep], S[keep], Rt[keep]
    T = L.T @ (V - v0)  # (r, q)
    best = np.full(V.shape[1], np.inf)
    chosen, residuals = np.zeros(V.shape[1]), np.zeros(V.shape)
    for penalty in penalties * S.max(initial=0.0) ** 2:
        kept = S**2 / (S**2 + penalty)
        slack = np.maximum(1.0 - 1.0 / k - L**2 @ kept, _MIN_SLACK)
        left_out = (V - v0 - L @ (kept[:, None] * T)) / slack[:, None]
        loss = np.mean(left_out**2, axis=0)
        better = loss < best
        best[better], chosen[better] = loss[better], penalty
        residuals[:, better] = left_out[:, better]
    B = Rt.T @ (S[:, None] / (S[:, None] ** 2 + chosen) * T)  # (p, q)
    return lambda Q: v0 + (Q - u0) @ B, residuals


def fit_kernel(U: Floats, V: Floats) -> tuple[Predict, Floats]:
    """Fit smooth maps by ridge regression with a Gaussian kernel.

    Bandwidth and penalty of each output are chosen by leave-one-out errors. At most the first 600
    pairs are used; the residuals are theirs.
    """
    from scipy.spatial.distance import cdist

    U, V = U[:_MAX_KERNEL_PAIRS], V[:_MAX_KERNEL_PAIRS]
    v0, D = V.mean(axis=0), cdist(U, U, "sqeuclidean")
    middle = float(np.median(D[np.triu_indices(len(U), 1)])) + _TINY
    best = np.full(V.shape[1], np.inf)
    width, weights, residuals = np.zeros(V.shape[1]), np.zeros(V.shape), np.zeros(V.shape)
    for share in _BANDWIDTHS:
        better, alpha, left_out = _improve_kernel(np.exp(-D / (share * middle)), V - v0, best)
        width[better] = share * middle
        weights[:, better], residuals[:, better] = alpha, left_out

    def predict(Z: Floats) -> Floats:
        found = np.empty((len(Z), V.shape[1]))
        gaps = cdist(Z, U, "sqeuclidean")
        for each in np.unique(width):
            found[:, width == each] = np.exp(-gaps / each) @ weights[:, width == each]
        return np.asarray(found + v0)

    return predict, residuals


def fit_by_column(U: Floats, V: Floats) -> tuple[Predict, Floats]:
    """Fit a map of one column to each output, of any shape, by kernel ridge regression.

    The column, bandwidth and penalty of each output are chosen by leave-one-out errors. At most
    the first 80 pairs are used; the residuals are theirs.
    """
    U, V = U[:_MAX_COLUMN_PAIRS], V[:_MAX_COLUMN_PAIRS]
    v0, q = V.mean(axis=0), V.shape[1]
    best, weights, residuals = np.full(q, np.inf), np.zeros(V.shape), np.zeros(V.shape)
    column, width = np.zeros(q, dtype=np.int64), np.ones(q)
    for j, u in enumerate(U.T):
        D = (u[:, None] - u) ** 2
        middle = float(np.median(D[np.triu_indices(len(u), 1)])) + _TINY
        for share in _COLUMN_BANDWIDTHS:
            better, alpha, left_out = _improve_kernel(np.exp(-D / (share * middle)), V - v0, best)
            column[better], width[better] = j, share * middle
            weights[:, better], residuals[:, better] = alpha, left_out

    def predict(Z: Floats) -> Floats:
        found = np.tile(v0, (len(Z), 1))
        for k, (j, each) in enumerate(zip(column.tolist(), width.tolist(), strict=True)):
            found[:, k] += np.exp(-((Z[:, j, None] - U[:, j]) ** 2) / each) @ weights[:, k]
        return found

    return predict, residuals


def _improve_kernel(K: Floats, V: Floats, best: Floats) -> tuple[Bools, Floats, Floats]:
    """Return the outputs that some penalty improves, with their weights and residuals.

    ``best`` are the smallest leave-one-out errors so far; they are updated.
    """
    values, Q = decompose_symmetric(K)
    inverse = 1.0 / (np.maximum(values, 0.0) + np.array(_KERNEL_PENALTIES)[:, None])  # (p, k)
    alpha = Q @ (inverse[:, :, None] * (Q.T @ V))  # (p, k, q)
    left_out = alpha / (inverse @ (Q**2).T)[:, :, None]
    loss = np.mean(left_out**2, axis=1)  # (p, q)
    chosen, outputs = loss.argmin(axis=0), np.arange(len(best))
    is_better = loss[chosen, outputs] < best
    chosen, outputs = chosen[is_better], outputs[is_better]
    best[is_better] = loss[chosen, outputs]
    return is_better, alpha[chosen, :, outputs].T, left_out[chosen, :, outputs].T

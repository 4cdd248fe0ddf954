"""Weights under which prediction errors are independent and of size 1."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.decompositions import decompose_symmetric

_MIN_VARIANCE_SHARE = 1e-10  # of a feature's variance: smaller errors count as this
_LEAST = 1e-15  # mean square of errors along a direction
_FOLDS = 5


def weigh_features(residuals: Floats, variance: Floats) -> Floats:
    """Return the weight of each feature; (q, q), diagonal. A constant feature has none."""
    return np.diag(_invert_errors(residuals, variance))


def weigh_directions(residuals: Floats, variance: Floats) -> Floats:
    """Return the map that makes errors independent; (q, q).

    A direction in which the errors vanish gets a large weight: noise that spares a direction does
    not hide it. Left-out errors show how large they are along the directions of the others. Large
    errors count as typical ones of the same direction.

    Reference: Bartz, "Cross-validation based nonlinear shrinkage" (2016).
    """
    weight = _invert_errors(residuals, variance)
    Z = _shorten_rows(residuals * weight)
    _, Q = decompose_symmetric(Z.T @ Z)
    squares = np.maximum(_measure_left_out(Z), _LEAST)
    return np.asarray(weight[:, None] * Q / np.sqrt(squares))


def _invert_errors(residuals: Floats, variance: Floats) -> Floats:
    error = np.maximum(np.mean(residuals**2, axis=0), _MIN_VARIANCE_SHARE * variance)
    return np.where(variance > 0, 1.0 / np.sqrt(np.where(error > 0, error, 1.0)), 0.0)


def _shorten_rows(Z: Floats) -> Floats:
    """Return rows of at most the median length: few large errors must not decide."""
    length = np.linalg.norm(Z, axis=1)
    middle = np.median(length)
    if not middle > 0:
        return Z
    return np.asarray(Z * np.minimum(1.0, middle / np.maximum(length, middle))[:, None])


def _measure_left_out(Z: Floats) -> Floats:
    """Return the mean squares of left-out rows along the directions of the others; (q,).

    Directions are in the order of what the others have along them: the least ones look smaller than
    they are, as there are always some along which few rows hardly vary.
    """
    total, found = Z.T @ Z, np.zeros(Z.shape[1])
    for first in range(min(_FOLDS, len(Z))):
        tested = Z[first::_FOLDS]
        _, Q = decompose_symmetric(total - tested.T @ tested)
        found += ((tested @ Q) ** 2).sum(axis=0)
    return np.asarray(found / len(Z))

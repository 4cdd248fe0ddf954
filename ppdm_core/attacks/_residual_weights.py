"""Weights under which prediction errors are independent and of size 1."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.decompositions import decompose_symmetric

_MIN_VARIANCE_SHARE = 1e-10  # of a feature's variance: smaller errors count as this
_SHRINKAGES = (1.0, 0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12, 1e-15)
_FOLDS = 5
_FREEDOM = 5.0  # of the Student distribution of errors


def weigh_features(residuals: Floats, variance: Floats) -> Floats:
    """Return the weight of each feature; (q, q), diagonal. A constant feature has none."""
    return np.diag(_invert_errors(residuals, variance))


def weigh_directions(residuals: Floats, variance: Floats) -> Floats:
    """Return the map that makes errors independent; (q, q).

    A direction in which the errors vanish gets a large weight: noise that spares a direction does
    not hide it. The correlation of the errors is shrunk towards independence as much as explains
    left-out errors best.
    """
    weight = _invert_errors(residuals, variance)
    Z = residuals * weight
    values, Q = decompose_symmetric(Z.T @ Z / len(Z))
    values = _shrink(values, _choose_shrinkage(Z))
    return np.asarray(weight[:, None] * Q / np.sqrt(values))


def _invert_errors(residuals: Floats, variance: Floats) -> Floats:
    error = np.maximum(np.mean(residuals**2, axis=0), _MIN_VARIANCE_SHARE * variance)
    return np.where(variance > 0, 1.0 / np.sqrt(np.where(error > 0, error, 1.0)), 0.0)


def _shrink(values: Floats, share: float) -> Floats:
    return np.asarray((1.0 - share) * np.maximum(values, 0.0) + share)


def _choose_shrinkage(Z: Floats) -> float:
    """Return the shrinkage with the largest likelihood of left-out errors.

    The likelihood is that of a Student distribution: a few large errors must not decide.
    """
    loss = np.zeros(len(_SHRINKAGES))
    total = Z.T @ Z
    for first in range(min(_FOLDS, len(Z))):
        tested = Z[first::_FOLDS]
        learned = (total - tested.T @ tested) / max(len(Z) - len(tested), 1)
        values, Q = decompose_symmetric(learned)
        shrunk = np.stack([_shrink(values, share) for share in _SHRINKAGES])  # (s, q)
        length = (1.0 / shrunk) @ ((tested @ Q) ** 2).T  # (s, m)
        tails = (_FREEDOM + Z.shape[1]) * np.log1p(length / _FREEDOM).sum(axis=1)
        loss += tails + len(tested) * np.log(shrunk).sum(axis=1)
    return _SHRINKAGES[int(loss.argmin())]

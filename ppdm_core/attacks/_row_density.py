"""Density of released rows if no known record is behind them."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.kernel_model import ROUNDING_SHARE, KernelSetting


def log_background(Y: Floats, around: KernelSetting) -> Floats:
    """Return the log density of each row if no known record is behind it, (m,).

    It is a normal distribution fitted to the rows; cells that are atoms count by the share of rows
    with the same value.
    """
    spread = Y.std(axis=0)
    varied = np.flatnonzero(spread > ROUNDING_SHARE * around.widths)
    total = log_normal(Y[:, varied])
    kernel = around.make_kernel(spread, np.zeros(len(spread)))
    for j in varied.tolist():
        hit = kernel.is_atom(Y[:, j], j)
        if hit.any():
            total[hit] += np.log(_value_shares(Y[:, j])[hit]) - log_normal(Y[:, j : j + 1])[hit]
    return total


def log_normal(Z: Floats, basis: Floats | None = None) -> Floats:
    """Return the log density of each row under a normal distribution fitted to all rows, (m,).

    ``basis``: the rows that it is fitted to, if these are others.
    """
    basis = Z if basis is None else basis
    m, s = basis.shape
    if s == 0:
        return np.zeros(len(Z))
    mean = basis.mean(axis=0)
    centred = basis - mean
    S = centred.T @ centred / m
    share = min(1.0, 1e-6 + s / m)  # few rows: lean towards the diagonal
    spread = np.diag(np.maximum(np.diag(S), 1e-18))
    factor = np.linalg.cholesky((1.0 - share) * S + share * spread)
    W = np.linalg.inv(factor) @ (Z - mean).T
    constant = 0.5 * s * np.log(2 * np.pi) + np.log(np.diag(factor)).sum()
    return np.asarray(-0.5 * np.einsum("ij,ij->j", W, W) - constant)


def _value_shares(y: Floats) -> Floats:
    """Return the share of rows with the same value, for each row."""
    _, inverse, count = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(count[inverse] / len(y))

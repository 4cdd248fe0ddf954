"""Unsafe releases, and two that reveal nothing about any person."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from ppdm_core.model.arrays import Floats

Release = Callable[[Floats, np.random.Generator], Floats]


def scaled(X: Floats) -> Floats:
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def orthogonal(d: int, rng: np.random.Generator) -> Floats:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return np.asarray(Q * np.sign(np.diag(R)))


def slight_noise(X: Floats, rng: np.random.Generator) -> Floats:
    return X + 0.01 * np.ptp(X, axis=0) * rng.standard_normal(X.shape)


def affine_map(X: Floats, rng: np.random.Generator) -> Floats:
    d = X.shape[1]
    return scaled(X) @ rng.standard_normal((d, d)) + 5 * rng.standard_normal(d)


def principal_components(X: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(scaled(X) @ np.linalg.svd(scaled(X), full_matrices=False)[2].T)


def rounding(X: Floats, rng: np.random.Generator) -> Floats:
    step = X.std(axis=0) / 4
    return np.asarray(np.round(X / step) * step)


def bootstrap(X: Floats, rng: np.random.Generator) -> Floats:
    return X[rng.integers(0, len(X), len(X))]


def narrow_kernels(X: Floats, rng: np.random.Generator) -> Floats:
    return bootstrap(X, rng) + 0.05 * X.std(axis=0) * rng.standard_normal(X.shape)


def swapping(X: Floats, rng: np.random.Generator) -> Floats:
    """A tenth of each column."""
    Y = X.copy()
    for j in range(X.shape[1]):
        some = rng.permutation(len(X))[: len(X) // 10]
        Y[some, j] = X[rng.permutation(some), j]
    return Y


def rank_swapping(X: Floats, rng: np.random.Generator) -> Floats:
    """Each value with one of those next to it."""
    Y, near = X.copy(), max(2, len(X) // 50)
    for j in range(X.shape[1]):
        order = np.argsort(X[:, j], kind="stable")
        for some in np.array_split(order, len(X) // near):
            Y[some, j] = X[rng.permutation(some), j]
    return Y


def microaggregation(X: Floats, rng: np.random.Generator) -> Floats:
    """Means of three neighbours along the first principal component."""
    Y, order = X.copy(), np.argsort(principal_components(X, rng)[:, 0], kind="stable")
    for some in np.array_split(order, len(X) // 3):
        Y[some] = X[some].mean(axis=0)
    return Y


def one_clear_column(X: Floats, rng: np.random.Generator) -> Floats:
    Y = rng.permuted(X, axis=0)
    clear = int(np.argmax([len(np.unique(column)) for column in X.T]))
    Y[:, clear] = X[:, clear]
    return Y


def some_verbatim(X: Floats, rng: np.random.Generator) -> Floats:
    Y, some = fitted_normal(X, rng), rng.permutation(len(X))[: len(X) // 5]
    Y[some] = X[some]
    return Y


def independent(X: Floats, rng: np.random.Generator) -> Floats:
    return rng.normal(X.mean(axis=0), X.std(axis=0), X.shape)


def fitted_normal(X: Floats, rng: np.random.Generator) -> Floats:
    return rng.multivariate_normal(X.mean(axis=0), np.cov(X.T), len(X))


UNSAFE: dict[str, Release] = {
    "copy": lambda X, rng: X.copy(),
    "slight noise": slight_noise,
    "rotation": lambda X, rng: scaled(X) @ orthogonal(X.shape[1], rng),
    "affine map": affine_map,
    "permuted columns": lambda X, rng: X[:, np.roll(rng.permutation(X.shape[1]), 1)],
    "scaled columns": lambda X, rng: X * rng.uniform(0.2, 5.0, X.shape[1]),
    "shifted columns": lambda X, rng: X + 3 * X.std(axis=0) * rng.standard_normal(X.shape[1]),
    "flipped signs": lambda X, rng: X * rng.choice([-1.0, 1.0], X.shape[1]),
    "logarithms": lambda X, rng: np.log1p((X - X.min(axis=0)) / X.std(axis=0)),
    "ranks": lambda X, rng: np.asarray(rankdata(X, axis=0)),
    "rounding": rounding,
    "principal components": principal_components,
    "swapping": swapping,
    "rank swapping": rank_swapping,
    "microaggregation": microaggregation,
    "one clear column": one_clear_column,
    "a fifth verbatim": some_verbatim,
    # Rows that belong to no particular record, or are in another order:
    "bootstrap": bootstrap,
    "narrow kernels": narrow_kernels,
    "shuffled rows": lambda X, rng: rng.permutation(X),
}
UNALIGNED = ("bootstrap", "narrow kernels", "shuffled rows")
SAFE: dict[str, Release] = {"independent": independent, "fitted normal": fitted_normal}

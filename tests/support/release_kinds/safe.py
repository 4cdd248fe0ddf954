"""Releases that reveal nothing about a person beyond what the default policy allows.

Rows that are drawn independently of each other from one distribution say nothing about which row
belongs to whom; of the records they reveal at most the few parameters of the distribution. Noise of
several column ranges hides every value of a record.
"""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from tests.support.release_kinds.kinds import Kind

NOISE_RANGES = 3.0  # deviation of strong noise, in ranges of a column
UNIFORM_RANGES = 10.0  # half-width of strong uniform noise
COMPONENTS = 3  # of a mixture


def draw_fitted_normal(X: Floats, rng: np.random.Generator) -> Floats:
    return draw_normal(X, len(X), rng)


def draw_normal(X: Floats, rows: int, rng: np.random.Generator) -> Floats:
    """Draw rows from the normal distribution with the means and covariances of the records."""
    unit = X.std(axis=0) + 1e-300
    S = np.atleast_2d(np.cov((X / unit).T))
    values, vectors = np.linalg.eigh(S)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(X.mean(axis=0) + unit * (rng.standard_normal((rows, X.shape[1])) @ root.T))


def draw_shrunk_normal(X: Floats, rng: np.random.Generator) -> Floats:
    """Draw from a normal distribution; halve correlations, for classes with few records."""
    unit = X.std(axis=0) + 1e-300
    S = 0.5 * np.cov((X / unit).T) + 0.5 * np.eye(X.shape[1])
    root = np.linalg.cholesky(S + 1e-9 * np.eye(len(S)))
    return np.asarray(X.mean(axis=0) + unit * (rng.standard_normal(X.shape) @ root.T))


def draw_mixture(X: Floats, rng: np.random.Generator) -> Floats:
    """Draw from a mixture of three normal distributions without correlations.

    Each is fitted to a third of the records along the first principal component, so that none
    describes a few records only.
    """
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-300)
    along = Z @ np.linalg.svd(Z, full_matrices=False)[2][0]
    parts = np.array_split(np.argsort(along, kind="stable"), COMPONENTS)
    means = np.array([X[part].mean(axis=0) for part in parts])
    deviations = np.array([X[part].std(axis=0) for part in parts])
    which = rng.integers(0, COMPONENTS, len(X))
    return np.asarray(means[which] + deviations[which] * rng.standard_normal(X.shape))


def add_noise(X: Floats, noise: Floats) -> Floats:
    """Add noise of deviation 1 in units of NOISE_RANGES column ranges."""
    return np.asarray(X + NOISE_RANGES * np.ptp(X, axis=0) * noise)


def perturb_components(X: Floats, rng: np.random.Generator) -> Floats:
    """Return principal components with strong noise."""
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-300)
    T = Z @ np.linalg.svd(Z, full_matrices=False)[2].T
    return add_noise(T, rng.laplace(0.0, 1.0, T.shape))


def perturb_in_components(X: Floats, rng: np.random.Generator) -> Floats:
    """Return records with strong noise on every principal component, in the original columns."""
    unit = X.std(axis=0) + 1e-300
    Z = (X - X.mean(axis=0)) / unit
    A = np.linalg.svd(Z, full_matrices=False)[2]
    T = Z @ A.T
    # A component without variance gets the noise of the others: no direction is spared.
    width = np.maximum(np.ptp(T, axis=0), np.median(np.ptp(T, axis=0)))
    noisy = T + NOISE_RANGES * width * rng.laplace(0.0, 1.0, T.shape)
    return np.asarray(X.mean(axis=0) + unit * (noisy @ A))


def draw_marginals(X: Floats, noise: Floats) -> Floats:
    """Return independent columns with the means and deviations of the records."""
    return np.asarray(X.mean(axis=0) + X.std(axis=0) * noise)


SAFE_KINDS = (
    Kind(
        "independent normal",
        "safe",
        lambda X, rng: draw_marginals(X, rng.standard_normal(X.shape)),
    ),
    Kind(
        "independent uniform",
        "safe",
        lambda X, rng: draw_marginals(X, rng.uniform(-(3**0.5), 3**0.5, X.shape)),
    ),
    Kind(
        "independent Laplace",
        "safe",
        lambda X, rng: draw_marginals(X, rng.laplace(0.0, 0.5**0.5, X.shape)),
    ),
    Kind(
        "independent exponential",
        "safe",
        lambda X, rng: draw_marginals(X, rng.exponential(1.0, X.shape) - 1.0),
    ),
    Kind("fitted normal", "safe", draw_fitted_normal),
    Kind("fitted normal by class", "safe", draw_shrunk_normal, by_class=True),
    Kind("fitted mixture", "safe", draw_mixture),
    Kind("column means", "safe", lambda X, rng: np.tile(X.mean(axis=0), (len(X), 1))),
    Kind(
        "strong normal noise",
        "safe",
        lambda X, rng: add_noise(X, rng.standard_normal(X.shape)),
    ),
    Kind(
        "strong Laplace noise",
        "safe",
        lambda X, rng: add_noise(X, rng.laplace(0.0, 1.0, X.shape)),
    ),
    Kind(
        "strong Student noise",
        "safe",
        lambda X, rng: add_noise(X, rng.standard_t(4, X.shape)),
    ),
    Kind(
        "strong uniform noise",
        "safe",
        lambda X, rng: X + UNIFORM_RANGES * np.ptp(X, axis=0) * rng.uniform(-1, 1, X.shape),
    ),
    Kind("strong noise on components", "safe", perturb_components, columns="own"),
    Kind("strong noise in components", "safe", perturb_in_components),
    Kind(
        "fitted normal, fewer rows",
        "safe",
        lambda X, rng: draw_normal(X, 3 * len(X) // 4, rng),
        aligned=False,
    ),
)

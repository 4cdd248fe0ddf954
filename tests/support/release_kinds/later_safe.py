"""Further releases that reveal nothing about a person beyond what the default policy allows."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from ppdm_core.model.arrays import Floats
from tests.support.release_kinds.classic import draw_rotation
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.safe import (
    NOISE_RANGES,
    add_noise,
    draw_fitted_normal,
    draw_marginals,
    draw_shrunk_normal,
)

BOX_DEVIATIONS = 4.0


def draw_from_half(X: Floats, rng: np.random.Generator) -> Floats:
    """Draw from a normal distribution that is fitted to a random half, correlations halved.

    Safe: each parameter is a mean over half of the records, and the rows are independent.
    """
    half = X[rng.permutation(len(X))[: (len(X) + 1) // 2]]
    return np.vstack([draw_shrunk_normal(half, rng), draw_shrunk_normal(half, rng)])[: len(X)]


def draw_in_box(X: Floats, rng: np.random.Generator) -> Floats:
    """Draw uniformly within four deviations of the means.

    Safe: the rows are independent, and depend on the mean and deviation of each column only.
    """
    return draw_marginals(X, rng.uniform(-BOX_DEVIATIONS, BOX_DEVIATIONS, X.shape))


def average_drawn(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the column means of as many bootstrap samples as there are records.

    Safe: rows are independent given the records, nearly normal about the means, and each record
    has a random weight of about 1/n in every row.
    """
    counts = rng.multinomial(len(X), np.full(len(X), 1 / len(X)), len(X))
    return np.asarray(counts @ X / len(X))


def draw_class_means(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the means of the class of each record, with Laplace noise of its deviations.

    Safe: a class has at least 50 records, and the rows of a class are independent.
    """
    return draw_marginals(X, rng.laplace(0.0, 0.5**0.5, X.shape))


def draw_copula(X: Floats, rng: np.random.Generator) -> Floats:
    """Return rows of a fitted normal distribution as quantiles of its columns.

    Safe: computed from the rows of a safe release and from parameters of the columns.
    """
    Y = draw_fitted_normal(X, rng)
    return np.asarray(norm.cdf((Y - X.mean(axis=0)) / X.std(axis=0)))


def round_noisy(X: Floats, rng: np.random.Generator) -> Floats:
    """Add strong noise, and round to multiples of half the range of a column.

    Safe: computed from a safe release; rounding reveals nothing more.
    """
    step = np.ptp(X, axis=0) / 2
    return np.asarray(np.round(add_noise(X, rng.standard_normal(X.shape)) / step) * step)


def perturb_rotated(X: Floats, rng: np.random.Generator) -> Floats:
    """Rotate standardized records at random, and add strong noise to every column.

    Safe: the noise hides every rotated column, whether or not the rotation is known.
    """
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return add_noise(Z @ draw_rotation(X.shape[1], rng), rng.standard_normal(X.shape))


def permute_and_perturb(X: Floats, rng: np.random.Generator) -> Floats:
    """Permute each column separately, and add strong noise.

    Safe: the noise hides every value, so that membership by values that occur fails as well.
    """
    return add_noise(rng.permuted(X, axis=0), rng.laplace(0.0, 1.0, X.shape))


def perturb_by_size(X: Floats, rng: np.random.Generator) -> Floats:
    """Add strong noise of a size that differs from record to record, never below the usual one.

    Safe: more noise than in a safe release, of a size that is independent of the record.
    """
    size = rng.uniform(1.0, 3.0, (len(X), 1))
    return np.asarray(X + NOISE_RANGES * np.ptp(X, axis=0) * size * rng.standard_normal(X.shape))


def sort_rows(Y: Floats) -> Floats:
    """Sort rows by their first column."""
    return np.asarray(Y[np.argsort(Y[:, 0], kind="stable")])


LATER_SAFE_KINDS = (
    Kind("fitted normal of a half", "safe", draw_from_half),
    Kind("uniform in a box", "safe", draw_in_box),
    Kind("means of bootstrap samples", "safe", average_drawn),
    Kind("class means with Laplace noise", "safe", draw_class_means, by_class=True),
    Kind("quantiles of a fitted normal", "safe", draw_copula, columns="own"),
    Kind("strong noise, rounded", "safe", round_noisy),
    Kind("strong noise on rotated columns", "safe", perturb_rotated, columns="own"),
    Kind("permuted columns with strong noise", "safe", permute_and_perturb),
    Kind("strong noise of random size", "safe", perturb_by_size),
    Kind(
        "strong logistic noise",  # safe: a location shift of a range changes densities little
        "safe",
        lambda X, rng: add_noise(X, rng.logistic(0.0, 1.0, X.shape)),
    ),
    Kind(
        "strong noise, shuffled rows",  # safe: a random order of a safe release
        "safe",
        lambda X, rng: rng.permutation(add_noise(X, rng.standard_normal(X.shape))),
        aligned=False,
    ),
    Kind(
        "strong noise, sorted rows",  # safe: the order is that of a released column
        "safe",
        lambda X, rng: sort_rows(add_noise(X, rng.standard_normal(X.shape))),
        aligned=False,
    ),
)

"""Tables of generated persons, as large as asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints

# A table and its classes, if it has any.
Generate = Callable[[int, np.random.Generator], tuple[Floats, Ints | None]]


def correlate(d: int, rho: float) -> Floats:
    """Return the root of a covariance in which columns j and k have correlation rho^|j-k|."""
    distance = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return np.linalg.cholesky(rho**distance)


def generate_incomes(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate wages, rents, savings and the like: lognormal, in cents, with classes."""
    common = rng.standard_normal((n, 1))
    size = np.array([10.2, 8.5, 9.5, 7.0, 6.0, 8.0, 5.5])
    logs = (
        size
        + 0.5 * common
        + np.array([0.3, 0.3, 1.2, 0.6, 0.8, 0.5, 0.9]) * (rng.standard_normal((n, 7)))
    )
    return np.round(np.exp(logs), 2), (common[:, 0] > 0).astype(np.int64)


def generate_mixture(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate four clusters in ten columns; the cluster is the class."""
    centres = np.random.default_rng(1).normal(0, 2.5, (4, 10))
    which = rng.integers(0, 4, n)
    return centres[which] + rng.standard_normal((n, 10)), which


def generate_heavy_tails(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    return rng.standard_t(2.5, (n, 8)) @ correlate(8, 0.5).T, None


def generate_counts(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate counts of visits and purchases, of which half are zero."""
    rate = rng.gamma(1.5, 4.0, (n, 1)) * np.array([1.0, 2.0, 0.5, 4.0, 8.0, 1.5, 3.0, 6.0, 20.0])
    counts = rng.poisson(rate) * (rng.random((n, 9)) > np.linspace(0.2, 0.7, 9))
    return counts.astype(np.float64), None


def generate_answers(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate answers from 1 to 7 to sixteen questions about two opinions."""
    opinions = rng.standard_normal((n, 2)) @ np.repeat(np.eye(2), 8, axis=1)
    answers = np.clip(np.round(4 + 1.1 * opinions + 1.1 * rng.standard_normal((n, 16))), 1, 7)
    return answers, None


def generate_correlated(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    return rng.standard_normal((n, 12)) @ correlate(12, 0.97).T, None


def generate_one_factor(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate fifteen measurements of one quantity; its sign is the class."""
    factor = rng.standard_normal((n, 1))
    loadings = np.linspace(0.5, 2.0, 15)
    X = 10 + factor * loadings + 0.4 * rng.standard_normal((n, 15))
    return X, (factor[:, 0] > 0.3).astype(np.int64)


def generate_sparse(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate amounts in twenty columns, of which four in five are zero."""
    amounts = np.round(rng.gamma(2.0, 50.0, (n, 20)), 1)
    return amounts * (rng.random((n, 20)) < 0.2), None


def generate_mixed_scales(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate columns in units from micrometres to billions; two classes."""
    which = rng.integers(0, 2, n)
    Z = rng.standard_normal((n, 8)) @ correlate(8, 0.6).T + 0.8 * which[:, None]
    return Z * 10.0 ** np.arange(-6, 10, 2) + 10.0 ** np.arange(-5, 11, 2), which


def generate_dates(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate days of birth, entry, change and exit as numbers of days, with age and hours."""
    birth = rng.integers(-12_000, 9_000, n)
    entry = birth + rng.integers(6_500, 12_000, n)
    change = entry + rng.geometric(1 / 900, n)
    leave = change + rng.geometric(1 / 1500, n)
    seconds = np.round(1.6e9 + rng.uniform(0, 1e8, n))
    hours = np.round(rng.normal(37, 6, n), 1)
    return np.column_stack([birth, entry, change, leave, seconds, hours]).astype(np.float64), None


def generate_uniform(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    return rng.uniform(0, 1, (n, 6)), None


def generate_three_columns(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate heights, weights and a third measure; the sex is the class."""
    sex = rng.integers(0, 2, n)
    height = rng.normal(165 + 13 * sex, 7)
    weight = rng.normal(0.9 * height - 85 + 5 * sex, 9)
    return np.round(np.column_stack([height, weight, height - 100 + rng.normal(0, 5, n)]), 2), sex


def generate_many_columns(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate forty columns of five factors."""
    loadings = np.random.default_rng(2).standard_normal((5, 40))
    return rng.standard_normal((n, 5)) @ loadings + rng.standard_normal((n, 40)), None


def generate_skewed(n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Generate laboratory values: gamma distributed, rounded, in three classes."""
    which = rng.integers(0, 3, n)
    shape = np.array([1.5, 3.0, 0.8, 5.0, 2.0, 1.0, 9.0, 4.0, 2.5])
    X = rng.gamma(shape, 1.0 + 0.5 * which[:, None], (n, 9)) * np.array(
        [10.0, 1, 100, 1, 5, 0.1, 20, 3, 1]
    )
    return np.round(X, 4), which


GENERATED: dict[str, Generate] = {
    "incomes": generate_incomes,
    "mixture": generate_mixture,
    "heavy_tails": generate_heavy_tails,
    "counts": generate_counts,
    "answers": generate_answers,
    "correlated": generate_correlated,
    "one_factor": generate_one_factor,
    "sparse": generate_sparse,
    "mixed_scales": generate_mixed_scales,
    "dates": generate_dates,
    "uniform": generate_uniform,
    "three_columns": generate_three_columns,
    "many_columns": generate_many_columns,
    "skewed": generate_skewed,
}

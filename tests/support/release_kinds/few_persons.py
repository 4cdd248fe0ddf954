"""Releases that reveal a few persons completely, and of all others nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import link_surely
from tests.support.release_kinds.classic import link_most_equal, standardize
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.safe import NOISE_RANGES, draw_fitted_normal

Choose = Callable[[Floats, np.random.Generator, int], Ints]


def count_exposed(share: float, n: int) -> int:
    """Return a share of the records and one more: twice the limit of the surest tenth."""
    return int(np.ceil(share * n)) + 1


def choose_any(X: Floats, rng: np.random.Generator, count: int) -> Ints:
    return rng.permutation(len(X))[:count]


def choose_outliers(X: Floats, rng: np.random.Generator, count: int) -> Ints:
    """Choose the records that are farthest from the mean."""
    return np.argsort(-np.linalg.norm(standardize(X), axis=1), kind="stable")[:count]


def choose_top(X: Floats, rng: np.random.Generator, count: int) -> Ints:
    """Choose the records with the largest values of one column."""
    return np.argsort(-X[:, rng.integers(X.shape[1])], kind="stable")[:count]


def expose(
    X: Floats,
    rng: np.random.Generator,
    share: float,
    choose: Choose = choose_any,
    noise: float = 0.0,
) -> Floats:
    """Return rows of a fitted normal distribution, with copies of some records at their places."""
    Y, some = draw_fitted_normal(X, rng), choose(X, rng, count_exposed(share, len(X)))
    unit = X.std(axis=0)
    Y[some] = X[some] + noise * unit * rng.standard_normal((len(some), X.shape[1]))
    return Y


def spare(X: Floats, rng: np.random.Generator, share: float, choose: Choose) -> Floats:
    """Add strong noise to all records except some."""
    Y = X + NOISE_RANGES * np.ptp(X, axis=0) * rng.standard_normal(X.shape)
    some = choose(X, rng, count_exposed(share, len(X)))
    Y[some] = X[some]
    return np.asarray(Y)


def expose_all_but_one_cell(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a fitted normal with a few records, of which one cell each is changed."""
    Y, drawn = draw_fitted_normal(X, rng), draw_fitted_normal(X, rng)
    some = choose_any(X, rng, count_exposed(0.03, len(X)))
    Y[some] = X[some]
    cell = rng.integers(0, X.shape[1], len(some))
    Y[some, cell] = drawn[some, cell]
    return Y


def expose_half_records(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a fitted normal with half of the columns of a few records."""
    Y = draw_fitted_normal(X, rng)
    some = choose_any(X, rng, count_exposed(0.03, len(X)))
    half = rng.permutation(X.shape[1])[: (X.shape[1] + 1) // 2]
    Y[np.ix_(some, half)] = X[np.ix_(some, half)]
    return Y


def link_closest(view: View) -> tuple[Ints, Floats]:
    unit = view.persons.std(axis=0) + 1e-300
    return link_surely(view.persons / unit, view.Y / unit)


SUREST = Proof("full records", "link the surest", link_closest)
EQUAL_CELLS = Proof("full records", "link the surest", link_most_equal)
FEW_PERSONS = (
    Kind("1 % verbatim", "few persons", lambda X, rng: expose(X, rng, 0.01), SUREST),
    Kind("3 % verbatim", "few persons", lambda X, rng: expose(X, rng, 0.03), SUREST),
    Kind(
        "1 % verbatim, outliers",
        "few persons",
        lambda X, rng: expose(X, rng, 0.01, choose_outliers),
        SUREST,
    ),
    Kind(
        "3 % verbatim, top of a column",
        "few persons",
        lambda X, rng: expose(X, rng, 0.03, choose_top),
        SUREST,
    ),
    Kind(
        "3 % nearly verbatim",
        "few persons",
        lambda X, rng: expose(X, rng, 0.03, noise=1e-3),
        SUREST,
    ),
    Kind(
        "1 % nearly verbatim, outliers",
        "few persons",
        lambda X, rng: expose(X, rng, 0.01, choose_outliers, noise=1e-3),
        SUREST,
    ),
    Kind(
        "strong noise, 1 % without",
        "few persons",
        lambda X, rng: spare(X, rng, 0.01, choose_any),
        SUREST,
    ),
    Kind(
        "strong noise, outliers without",
        "few persons",
        lambda X, rng: spare(X, rng, 0.02, choose_outliers),
        SUREST,
    ),
    Kind(
        "1 % verbatim in other rows",
        "few persons",
        lambda X, rng: expose(X, rng, 0.01)[::-1].copy(),
        SUREST,
        find_source=lambda X: np.arange(len(X))[::-1],
    ),
    Kind("3 % verbatim but one cell", "few persons", expose_all_but_one_cell, EQUAL_CELLS),
    Kind("3 % verbatim in half of the columns", "few persons", expose_half_records, EQUAL_CELLS),
)

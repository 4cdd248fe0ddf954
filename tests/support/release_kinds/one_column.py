"""Releases that reveal one column sharply, and fill all others with noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import link_unknown_in_order
from tests.support.release_kinds.classic import find_distinct_column
from tests.support.release_kinds.kinds import Family, Kind
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.safe import draw_marginals

ONE_COLUMN: Family = "one column"
Column = Callable[[Floats, np.random.Generator], Floats]  # values of one column


def replace_column(change: Column, moved: bool = False) -> Callable[..., Floats]:
    """Return noise in all columns except one, which holds a function of its original values.

    ``moved``: in the place and units of another column.
    """

    def make(X: Floats, rng: np.random.Generator) -> Floats:
        Y, j = draw_marginals(X, rng.standard_normal(X.shape)), find_distinct_column(X)
        y = change(X[:, j], rng)
        k = (j + 1) % X.shape[1] if moved else j
        if moved:
            y = X[:, k].mean() + X[:, k].std() * (y - y.mean()) / y.std()
        Y[:, k] = y
        return Y

    return make


def draw_in_order(x: Floats, rng: np.random.Generator) -> Floats:
    """Return normal numbers with the ranks of the original values."""
    values = np.sort(rng.normal(x.mean(), x.std(), len(x)))
    return np.asarray(values[rankdata(x, method="ordinal") - 1])


def add_little(x: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(x + 1e-3 * x.std() * rng.standard_normal(len(x)))


def round_to_steps(x: Floats, rng: np.random.Generator) -> Floats:
    step = np.ptp(x) / 400
    return np.asarray(np.round(x / step) * step)


def link_best_column(view: View) -> Ints:
    """Find the two columns that agree best in the known pairs, and link by their order."""
    ranks = [rankdata(A, axis=0) for A in (view.known, view.Y[view.rows])]
    A, B = (each - each.mean(axis=0) for each in ranks)
    R = (A / (np.linalg.norm(A, axis=0) + 1e-9)).T @ (B / (np.linalg.norm(B, axis=0) + 1e-9))
    i, j = np.unravel_index(np.abs(R).argmax(), R.shape)
    return link_unknown_in_order(view, view.persons[:, i] * np.sign(R[i, j]), view.Y[:, j])


def link_folded_column(view: View) -> Ints:
    """Link by the distance from the mean of the column with the most values."""
    everyone = np.vstack([view.persons, view.known])
    j = find_distinct_column(everyone)
    return link_unknown_in_order(
        view, np.abs(view.persons[:, j] - everyone[:, j].mean()), view.Y[:, j]
    )


def keep_difference(X: Floats, rng: np.random.Generator) -> Floats:
    """Return noise whose two first columns differ as in the original."""
    Y, j = draw_marginals(X, rng.standard_normal(X.shape)), find_distinct_column(X)
    k = (j + 1) % X.shape[1]
    Y[:, k] = Y[:, j] - (X[:, j] / X[:, j].std() - X[:, k] / X[:, k].std()) * X[:, j].std()
    return Y


def link_difference(view: View) -> Ints:
    everyone = np.vstack([view.persons, view.known])
    j = find_distinct_column(everyone)
    k, unit = (j + 1) % everyone.shape[1], everyone.std(axis=0)
    values = view.persons[:, j] / unit[j] - view.persons[:, k] / unit[k]
    return link_unknown_in_order(view, values, view.Y[:, j] - view.Y[:, k])


def keep_lengths(X: Floats, rng: np.random.Generator) -> Floats:
    """Return noise in all columns except one, which holds the length of the record."""
    Y = draw_marginals(X, rng.standard_normal(X.shape))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y[:, 0] = np.linalg.norm(Z, axis=1)
    return Y


def link_lengths(view: View) -> Ints:
    everyone = np.vstack([view.persons, view.known])
    Z = (view.persons - everyone.mean(axis=0)) / everyone.std(axis=0)
    return link_unknown_in_order(view, np.linalg.norm(Z, axis=1), view.Y[:, 0])


BEST = Proof("60 known pairs", "link", link_best_column)
ONE_COLUMN_KINDS = (
    Kind("ranks of one column", ONE_COLUMN, replace_column(draw_in_order), BEST),
    Kind(
        "one column shifted",
        ONE_COLUMN,
        replace_column(lambda x, rng: x + x.std() * rng.uniform(1, 5)),
        BEST,
    ),
    Kind(
        "one column scaled",
        ONE_COLUMN,
        replace_column(lambda x, rng: x * rng.uniform(2, 5)),
        BEST,
    ),
    Kind(
        "one column turned round",
        ONE_COLUMN,
        replace_column(lambda x, rng: x.max() + x.min() - x),
        BEST,
    ),
    Kind(
        "logarithm of one column",
        ONE_COLUMN,
        replace_column(lambda x, rng: np.log1p((x - x.min()) / x.std())),
        BEST,
    ),
    Kind("slight noise on one column", ONE_COLUMN, replace_column(add_little), BEST),
    Kind("one column rounded", ONE_COLUMN, replace_column(round_to_steps), BEST),
    Kind(
        "one column in place of another",
        ONE_COLUMN,
        replace_column(lambda x, rng: x, moved=True),
        BEST,
    ),
    Kind(
        "magnitude of one column",
        ONE_COLUMN,
        replace_column(lambda x, rng: np.abs(x - x.mean())),
        Proof("60 known pairs", "link", link_folded_column),
    ),
    Kind(
        "one column, own names",
        ONE_COLUMN,
        replace_column(draw_in_order),
        BEST,
        columns="own",
    ),
    Kind(
        "difference of two columns",
        ONE_COLUMN,
        keep_difference,
        Proof("60 known pairs", "link", link_difference),
    ),
    Kind(
        "length of a record as a column",
        ONE_COLUMN,
        keep_lengths,
        Proof("60 known pairs", "link", link_lengths),
    ),
)

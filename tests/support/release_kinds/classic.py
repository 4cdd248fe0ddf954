"""Copies, linear maps, swapped and averaged values, and rows drawn from the records."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import (
    count_equal_cells,
    find_nearest,
    link_equal_cells,
    link_ranks,
    link_values,
    recover_linear,
)
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.safe import draw_fitted_normal


def standardize(X: Floats) -> Floats:
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def draw_rotation(d: int, rng: np.random.Generator) -> Floats:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return np.asarray(Q * np.sign(np.diag(R)))


def add_slight_noise(X: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(X + 0.01 * np.ptp(X, axis=0) * rng.standard_normal(X.shape))


def map_affinely(X: Floats, rng: np.random.Generator) -> Floats:
    d = X.shape[1]
    return np.asarray(standardize(X) @ rng.standard_normal((d, d)) + 5 * rng.standard_normal(d))


def compute_components(X: Floats) -> Floats:
    """Return the principal components; the largest loading of each is positive."""
    A = np.linalg.svd(standardize(X), full_matrices=False)[2]
    largest = np.take_along_axis(A, np.abs(A).argmax(axis=1)[:, None], axis=1)
    return np.asarray(standardize(X) @ (A * np.sign(largest)).T)


def round_values(X: Floats, rng: np.random.Generator) -> Floats:
    step = X.std(axis=0) / 4
    return np.asarray(np.round(X / step) * step)


def draw_records(X: Floats, rng: np.random.Generator) -> Floats:
    return X[rng.integers(0, len(X), len(X))]


def draw_kernels(X: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(draw_records(X, rng) + 0.05 * X.std(axis=0) * rng.standard_normal(X.shape))


def swap_a_tenth(X: Floats, rng: np.random.Generator) -> Floats:
    """Swap a tenth of each column."""
    Y = X.copy()
    for j in range(X.shape[1]):
        some = rng.permutation(len(X))[: len(X) // 10]
        Y[some, j] = X[rng.permutation(some), j]
    return Y


def swap_ranks(X: Floats, rng: np.random.Generator) -> Floats:
    """Swap each value with one of those next to it."""
    Y, near = X.copy(), max(2, len(X) // 50)
    for j in range(X.shape[1]):
        order = np.argsort(X[:, j], kind="stable")
        for some in np.array_split(order, len(X) // near):
            Y[some, j] = X[rng.permutation(some), j]
    return Y


def average_neighbours(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the means of three neighbours along the first principal component."""
    Y, order = X.copy(), np.argsort(compute_components(X)[:, 0], kind="stable")
    for some in np.array_split(order, len(X) // 3):
        Y[some] = X[some].mean(axis=0)
    return Y


def link_averages(view: View) -> Ints:
    """Average the records of all persons anew, and take one of the three equal rows."""
    return find_nearest(average_neighbours(view.persons, np.random.default_rng(0)), view.Y)


def find_distinct_column(X: Floats) -> int:
    """Return the column with the most values."""
    return int(np.argmax([len(np.unique(column)) for column in X.T]))


def keep_one_column(X: Floats, rng: np.random.Generator) -> Floats:
    Y, clear = rng.permuted(X, axis=0), find_distinct_column(X)
    Y[:, clear] = X[:, clear]
    return Y


def link_clear_column(view: View) -> Ints:
    """Link by the columns that are equal in the known pairs."""
    clear = np.all(view.Y[view.rows] == view.known, axis=0)
    return find_nearest(view.persons[:, clear], view.Y[:, clear])


def keep_a_fifth(X: Floats, rng: np.random.Generator) -> Floats:
    Y, some = draw_fitted_normal(X, rng), rng.permutation(len(X))[: len(X) // 5 + 1]
    Y[some] = X[some]
    return Y


def score_closest_row(view: View) -> Floats:
    """Score persons by how close the nearest row is."""
    unit = view.Y.std(axis=0)
    nearest = view.Y[find_nearest(view.persons / unit, view.Y / unit)]
    return np.asarray(-np.linalg.norm((nearest - view.persons) / unit, axis=1))


def score_released_values(view: View) -> Floats:
    """Score persons whose values all occur in the columns, those with rare values the most."""
    score = np.zeros(len(view.persons))
    for x, y in zip(view.persons.T, view.Y.T, strict=True):
        count = (x[:, None] == y).sum(axis=1)
        reach = 0.2 * y.std()
        near = np.sum(np.abs(x[:, None] - y) <= reach, axis=1)  # as many are close by chance
        values = np.unique(np.concatenate([x, y]))
        room = np.searchsorted(values, x + reach) - np.searchsorted(values, x - reach)
        expected = np.maximum((near + 1) / np.maximum(room, 1), count - 1)
        score += np.where(count > 0, np.log(np.maximum(count, 1) / expected), -1e6)
    return score


def link_most_equal(view: View) -> tuple[Ints, Floats]:
    """Link to the row with the most equal cells, surest if all are equal."""
    count = count_equal_cells(view.persons, view.Y)
    return np.asarray(count.argmax(axis=1)), count.max(axis=1).astype(float)


NEAREST = Proof("full records", "link", link_values)
RANKS = Proof("full records", "link", link_ranks)
LINEAR = Proof("60 known pairs", "recover", recover_linear)
CLOSEST = Proof("full records", "find members", score_closest_row)
CLASSIC = (
    Kind("copy", "classic", lambda X, rng: X.copy(), NEAREST),
    Kind("slight noise", "classic", add_slight_noise, NEAREST),
    Kind(
        "rotation",
        "classic",
        lambda X, rng: standardize(X) @ draw_rotation(X.shape[1], rng),
        LINEAR,
    ),
    Kind("affine map", "classic", map_affinely, LINEAR),
    Kind(
        "permuted columns",
        "classic",
        lambda X, rng: X[:, np.roll(rng.permutation(X.shape[1]), 1)],
        LINEAR,
    ),
    Kind("scaled columns", "classic", lambda X, rng: X * rng.uniform(0.2, 5.0, X.shape[1]), LINEAR),
    Kind(
        "shifted columns",
        "classic",
        lambda X, rng: X + 3 * X.std(axis=0) * rng.standard_normal(X.shape[1]),
        LINEAR,
    ),
    Kind(
        "flipped signs",
        "classic",
        lambda X, rng: X * np.append(-1.0, rng.choice([-1.0, 1.0], X.shape[1] - 1)),
        LINEAR,
    ),
    Kind(
        "logarithms",
        "classic",
        lambda X, rng: np.log1p((X - X.min(axis=0)) / X.std(axis=0)),
        RANKS,
    ),
    Kind("ranks", "classic", lambda X, rng: np.asarray(rankdata(X, axis=0)), RANKS),
    Kind("rounding", "classic", round_values, NEAREST),
    Kind("principal components", "classic", lambda X, rng: compute_components(X), LINEAR),
    Kind("swapping", "classic", swap_a_tenth, Proof("full records", "link", link_equal_cells)),
    Kind("rank swapping", "classic", swap_ranks, RANKS),
    Kind(
        "microaggregation",
        "classic",
        average_neighbours,
        Proof("full records", "link", link_averages),
    ),
    Kind(
        "one clear column",
        "classic",
        keep_one_column,
        Proof("60 known pairs", "link", link_clear_column),
    ),
    Kind("a fifth verbatim", "classic", keep_a_fifth, Proof("full records", "link", link_values)),
    Kind(
        "columns permuted separately",
        "classic",
        lambda X, rng: rng.permuted(X, axis=0),
        Proof("full records", "find members", score_released_values),
    ),
    # Rows that belong to no particular record, or are in another order:
    Kind("bootstrap", "classic", draw_records, CLOSEST, aligned=False),
    Kind("narrow kernels", "classic", draw_kernels, CLOSEST, aligned=False),
    Kind("shuffled rows", "classic", lambda X, rng: rng.permutation(X), CLOSEST, aligned=False),
)

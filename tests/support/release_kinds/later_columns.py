"""Functions of the record as columns, and one column as a function of a row of noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import (
    find_nearest,
    learn_linear,
    link_in_order,
    scale_with,
)
from tests.support.release_kinds.channels import find_secret
from tests.support.release_kinds.classic import standardize
from tests.support.release_kinds.column_maps import MAPS
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.later_noise import place_in_range
from tests.support.release_kinds.noise_holes import turn
from tests.support.release_kinds.one_column import ONE_COLUMN
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.safe import draw_marginals

DIGITS = 6
WRAPS = np.arange(10, 60)
NEIGHBOURS = 5
MAX_ORDERED = 7  # columns whose order spells a number: 5,040 orders
Map = Callable[[Floats], Floats]


def iterate_chaotic(X: Floats) -> Floats:
    """Apply the chaotic map 4 u (1 - u) four times."""
    u = place_in_range(X)
    for _ in range(4):
        u = 4 * u * (1 - u)
    return u


def find_angles(X: Floats) -> Floats:
    """Return spherical coordinates: the length, and the angle with each axis in turn."""
    Z = standardize(X)
    tail = np.sqrt(np.cumsum(Z[:, ::-1] ** 2, axis=1))[:, ::-1]
    return np.hstack([tail[:, :1], np.arctan2(tail[:, 1:], Z[:, :-1])])


def interleave_digits(X: Floats) -> Floats:
    """Return the digits of two columns in turn as one number for each two columns."""
    number = np.round(place_in_range(X) * (10**DIGITS - 1)).astype(np.int64)
    a, b = number[:, ::2], np.roll(number, -1, axis=1)[:, ::2]
    place = range(DIGITS)
    return np.sum([((a // 10**k % 10) * 10 + b // 10**k % 10) * 100.0**k for k in place], axis=0)


def squeeze(X: Floats) -> Floats:
    """Reconstruct records from half of the principal components, each squeezed by tanh."""
    Z = standardize(X)
    A = np.linalg.svd(Z, full_matrices=False)[2][: (X.shape[1] + 1) // 2]
    T = Z @ A.T
    return np.asarray(
        X.mean(axis=0) + X.std(axis=0) * (T.std(axis=0) * np.tanh(T / T.std(axis=0)) @ A)
    )


def measure_neighbours(X: Floats) -> Floats:
    """Return the distances of each record from its nearest neighbours."""
    Z = standardize(X)
    return np.asarray(cKDTree(Z).query(Z, NEIGHBOURS + 1)[0][:, 1:])


def combine_bits(X: Floats) -> Floats:
    """Return the exclusive or of the 8-bit codes of adjacent columns."""
    code = np.round(255 * place_in_range(X)).astype(np.int64)
    return (code ^ np.roll(code, -1, axis=1)).astype(float)


def count_close_values(X: Floats) -> Floats:
    """Return the number of values in the same column within a tenth of a deviation."""
    reach = 0.1 * X.std(axis=0)
    return np.sum(np.abs(X[:, None] - X) <= reach, axis=1).astype(float)


def publish(name: str, function: Map, own: bool = True) -> Kind:
    """Return a function of the records that anybody who has all records can compute."""

    def link(view: View) -> Ints:
        unit = view.Y.std(axis=0) + 1e-300
        return find_nearest(function(view.persons) / unit, view.Y / unit)

    proof = Proof("full records", "link", link)
    return Kind(name, MAPS, lambda X, rng: function(X), proof, columns="own" if own else "same")


def wrap(X: Floats, rng: np.random.Generator) -> Floats:
    """Wrap each column round a circle many times."""
    return np.asarray(place_in_range(X) * rng.choice(WRAPS, X.shape[1]) % 1)


def link_wrapped(view: View) -> Ints:
    """Find the number of turns of each column that explains the known pairs."""
    everyone = place_in_range(np.vstack([view.persons, view.known]))
    U, Uk = np.split(everyone, [len(view.persons)])
    error = np.abs(
        np.exp(2j * np.pi * (Uk[:, :, None] * WRAPS - view.Y[view.rows][:, :, None])) - 1
    )
    return find_nearest(turn(U * WRAPS[error.sum(axis=0).argmin(axis=1)]), turn(view.Y))


def take_signs(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the signs of secret combinations of the columns, four times as many as columns."""
    return np.sign(standardize(X) @ rng.standard_normal((X.shape[1], 4 * X.shape[1])))


def link_sketches(view: View) -> Ints:
    """Learn the combinations from the known pairs, and link by their signs."""
    centre, unit = scale_with(view)
    Z, Zk = (view.persons - centre) / unit, (view.known - centre) / unit
    T = learn_linear(
        np.vstack([Zk, np.eye(Zk.shape[1])]),
        np.vstack([view.Y[view.rows], np.zeros((Zk.shape[1], view.Y.shape[1]))]),
        Z,
    )
    return np.asarray((T @ view.Y.T).argmax(axis=1))


def rank_secret(X: Floats) -> Floats:
    """Return the ranks of the column with the most values, between 0 and 1."""
    return np.asarray((rankdata(find_secret(X), method="ordinal") - 0.5) / len(X))


def hide_secret(
    name: str, hide: Callable[[Floats, Floats], Floats], find: Callable[[Floats], Floats]
) -> Kind:
    """Return noise with one column as a function of the row.

    ``hide`` takes noise of deviation 1 and the ranks of the column, and returns standardized
    rows; ``find`` returns numbers of the rows that have the same order.
    """

    def make(X: Floats, rng: np.random.Generator) -> Floats:
        return draw_marginals(X, hide(rng.standard_normal(X.shape), rank_secret(X)))

    def link(view: View) -> Ints:
        Z = (view.Y - view.persons.mean(axis=0)) / (view.persons.std(axis=0) + 1e-300)
        return link_in_order(find_secret(view.persons), find(Z))

    return Kind(name, ONE_COLUMN, make, Proof("full records", "link", link))


def replace_first(noise: Floats, values: Floats) -> Floats:
    return np.column_stack([values, noise[:, 1:]])


def set_angle(noise: Floats, rank: Floats) -> Floats:
    length, angle = np.hypot(noise[:, 0], noise[:, 1]), 2 * np.pi * rank
    return np.column_stack([length * np.cos(angle), length * np.sin(angle), noise[:, 2:]])


def set_remainder(noise: Floats, rank: Floats) -> Floats:
    return replace_first(noise, noise[:, 0] + rank - noise.sum(axis=1) % 1)


def set_length(noise: Floats, rank: Floats) -> Floats:
    length = np.linalg.norm(noise, axis=1)
    return np.asarray(noise * (np.sort(length)[np.argsort(np.argsort(rank))] / length)[:, None])


def set_order(noise: Floats, rank: Floats) -> Floats:
    """Arrange the noise of the first columns in the order whose number is the rank."""
    d = min(noise.shape[1], MAX_ORDERED)
    orders = np.array(list(permutations(range(d))))
    chosen = orders[(rank * len(orders)).astype(np.int64)]
    first = np.take_along_axis(np.sort(noise[:, :d], axis=1), chosen, axis=1)
    return np.hstack([first, noise[:, d:]])


def find_order(Z: Floats) -> Floats:
    """Return the number of the order of the first columns; orders are listed as sorted words."""
    order = np.argsort(np.argsort(Z[:, :MAX_ORDERED], axis=1), axis=1)
    return np.asarray(order @ 10.0 ** -np.arange(order.shape[1]))


def set_sign(noise: Floats, rank: Floats) -> Floats:
    return replace_first(noise, (0.1 + 1.5 * rank) * np.sign(noise[:, 0]))


def set_product(noise: Floats, rank: Floats) -> Floats:
    factor = np.exp(noise[:, 0])
    return np.column_stack([factor, (0.1 + rank) / factor, noise[:, 2:]])


def set_sum(noise: Floats, rank: Floats) -> Floats:
    return replace_first(noise, rank - noise[:, 1:].sum(axis=1))


def set_median(noise: Floats, rank: Floats) -> Floats:
    return np.asarray(noise + (rank - np.median(noise, axis=1))[:, None])


LATER_COLUMNS = (
    publish("chaotic map", iterate_chaotic, own=False),
    publish("spherical coordinates", find_angles),
    publish("digits of two columns in turn", interleave_digits),
    publish("squeezed components", squeeze, own=False),
    publish("distances from nearest neighbours", measure_neighbours),
    publish("exclusive or of columns", combine_bits),
    publish("number of close values", count_close_values),
    Kind("columns wrapped round", MAPS, wrap, Proof("60 known pairs", "link", link_wrapped)),
    Kind(
        "signs of combinations",
        MAPS,
        take_signs,
        Proof("60 known pairs", "link", link_sketches),
        columns="own",
    ),
    hide_secret(
        "one column as an angle", set_angle, lambda Z: np.arctan2(Z[:, 1], Z[:, 0]) % (2 * np.pi)
    ),
    hide_secret("one column as a remainder of the sum", set_remainder, lambda Z: Z.sum(axis=1) % 1),
    hide_secret(
        "one column as the length of a row", set_length, lambda Z: np.linalg.norm(Z, axis=1)
    ),
    hide_secret("one column as the order of a row", set_order, find_order),
    hide_secret("one column with random signs", set_sign, lambda Z: np.abs(Z[:, 0])),
    hide_secret("one column as a product", set_product, lambda Z: Z[:, 0] * Z[:, 1]),
    hide_secret("one column as the sum of a row", set_sum, lambda Z: Z.sum(axis=1)),
    hide_secret("one column as the median of a row", set_median, lambda Z: np.median(Z, axis=1)),
)

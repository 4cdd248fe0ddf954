"""Releases that change every value and keep something of each record: its values, its length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import find_nearest, scale_with
from tests.support.release_kinds.kinds import Family, Kind, Make
from tests.support.release_kinds.proofs import Proof, View

INVARIANTS: Family = "invariants of a row"


def apply_scaled(change: Make) -> Make:
    """Return a change that is applied to standardized values."""

    def make(X: Floats, rng: np.random.Generator) -> Floats:
        centre, unit = X.mean(axis=0), X.std(axis=0)
        return np.asarray(centre + unit * change((X - centre) / unit, rng))

    return make


def shuffle_rows_within(Z: Floats, rng: np.random.Generator) -> Floats:
    return rng.permuted(Z, axis=1)


def sort_within(Z: Floats, rng: np.random.Generator) -> Floats:
    return np.sort(Z, axis=1)


def roll_within(Z: Floats, rng: np.random.Generator) -> Floats:
    """Move the values of each record by a random number of columns."""
    n, d = Z.shape
    column = (np.arange(d) + rng.integers(0, d, (n, 1))) % d
    return np.take_along_axis(Z, column, axis=1)


def rotate_each(Z: Floats, rng: np.random.Generator) -> Floats:
    """Turn each record into a random direction."""
    direction = rng.standard_normal(Z.shape)
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.asarray(length * direction / np.linalg.norm(direction, axis=1, keepdims=True))


def rotate_pairs(Z: Floats, rng: np.random.Generator) -> Floats:
    """Rotate each two columns of each record by a random angle; noise in an odd last column."""
    n, d = Z.shape
    pairs = d // 2
    length = np.hypot(Z[:, 0 : 2 * pairs : 2], Z[:, 1 : 2 * pairs : 2])
    angle = rng.uniform(0, 2 * np.pi, length.shape)
    Y = rng.standard_normal((n, d))
    Y[:, 0 : 2 * pairs : 2] = length * np.cos(angle)
    Y[:, 1 : 2 * pairs : 2] = length * np.sin(angle)
    return Y


def swap_pairs(Z: Floats, rng: np.random.Generator) -> Floats:
    """Swap two adjacent columns of each record, or not; noise in an odd last column."""
    n, d = Z.shape
    Y = rng.standard_normal((n, d))
    for j in range(0, d - 1, 2):
        swapped = rng.random(n) < 0.5
        Y[:, j] = np.where(swapped, Z[:, j + 1], Z[:, j])
        Y[:, j + 1] = np.where(swapped, Z[:, j], Z[:, j + 1])
    return Y


def flip_signs(Z: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(Z * rng.choice([-1.0, 1.0], Z.shape))


def scale_each(Z: Floats, rng: np.random.Generator) -> Floats:
    """Multiply each record by a random factor."""
    return np.asarray(Z * np.exp(1.5 * rng.standard_normal((len(Z), 1))))


def link_by(feature: Callable[[Floats], Floats], scaled: bool = True) -> Proof:
    """Return a proof that links by something that is the same for a record and its row."""

    def link(view: View) -> Ints:
        centre, unit = scale_with(view)
        if not scaled:
            centre, unit = np.zeros_like(centre), np.ones_like(unit)
        return find_nearest(
            feature((view.persons - centre) / unit), feature((view.Y - centre) / unit)
        )

    return Proof("full records", "link", link)


def find_length(Z: Floats) -> Floats:
    return np.linalg.norm(Z, axis=1, keepdims=True)


def find_pair_lengths(Z: Floats) -> Floats:
    pairs = Z.shape[1] // 2
    return np.hypot(Z[:, 0 : 2 * pairs : 2], Z[:, 1 : 2 * pairs : 2])


def find_pair_sums(Z: Floats) -> Floats:
    pairs = Z.shape[1] // 2
    return np.asarray(Z[:, 0 : 2 * pairs : 2] + Z[:, 1 : 2 * pairs : 2])


def find_direction(Z: Floats) -> Floats:
    return np.asarray(Z / (np.linalg.norm(Z, axis=1, keepdims=True) + 1e-300))


def sort_each(Z: Floats) -> Floats:
    return np.sort(Z, axis=1)


SORTED, RAW_SORTED = link_by(sort_each), link_by(sort_each, scaled=False)
LENGTH, RAW_LENGTH = link_by(find_length), link_by(find_length, scaled=False)
ROW_INVARIANTS = (
    Kind("sorted within each record", INVARIANTS, sort_within, RAW_SORTED),
    Kind("scaled, sorted within each record", INVARIANTS, apply_scaled(sort_within), SORTED),
    Kind("shuffled within each record", INVARIANTS, shuffle_rows_within, RAW_SORTED),
    Kind(
        "scaled, shuffled within each record",
        INVARIANTS,
        apply_scaled(shuffle_rows_within),
        SORTED,
    ),
    Kind("moved within each record", INVARIANTS, apply_scaled(roll_within), SORTED),
    Kind("records rotated about the origin", INVARIANTS, rotate_each, RAW_LENGTH),
    Kind("records rotated about the mean", INVARIANTS, apply_scaled(rotate_each), LENGTH),
    Kind(
        "pairs of columns rotated by record",
        INVARIANTS,
        apply_scaled(rotate_pairs),
        link_by(find_pair_lengths),
    ),
    Kind(
        "pairs of columns swapped by record",
        INVARIANTS,
        apply_scaled(swap_pairs),
        link_by(find_pair_sums),
    ),
    Kind("signs flipped by cell", INVARIANTS, apply_scaled(flip_signs), link_by(np.abs)),
    Kind(
        "sign flipped by record",
        INVARIANTS,
        apply_scaled(lambda Z, rng: Z * rng.choice([-1.0, 1.0], (len(Z), 1))),
        link_by(np.abs),
    ),
    Kind(
        "records scaled by a factor", INVARIANTS, apply_scaled(scale_each), link_by(find_direction)
    ),
)

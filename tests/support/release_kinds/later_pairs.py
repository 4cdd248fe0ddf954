"""Releases that combine two or three records: attackers find the combination by its sum.

The records of a row are found by one number for each record: a combination of its columns with
weights that are known to all. Sums and differences of two records keep these numbers.
"""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.few_persons import choose_any, count_exposed
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.noise_holes import DEVIATIONS, HOLES, add_scaled
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.safe import draw_fitted_normal

TOLERANCE = 1e-9  # up to which two numbers are equal, in deviations
WINDOW = 5  # rows of a moving average


def weigh(A: Floats, unit: Floats) -> Floats:
    """Return one number for each row, with weights that are known to all."""
    weights = np.random.default_rng(0).standard_normal(A.shape[1])
    return np.asarray(A / unit @ weights)


def weigh_both(view: View) -> tuple[Floats, Floats]:
    """Return the numbers of the persons and of the rows."""
    unit = view.persons.std(axis=0) + 1e-300
    return weigh(view.persons, unit), weigh(view.Y, unit)


def match(values: Floats, wanted: Floats, tolerance: float = TOLERANCE) -> Ints:
    """Return the place of the nearest value for each number, -1 if none is equal."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    above = np.clip(np.searchsorted(ranked, wanted), 1, len(ranked) - 1)
    nearest = np.where(wanted - ranked[above - 1] < ranked[above] - wanted, above - 1, above)
    return np.where(np.abs(ranked[nearest] - wanted) <= tolerance, order[nearest], -1)


def choose_partners(n: int, rng: np.random.Generator) -> Ints:
    """Return a random partner for each record, which has it as its partner; -1 for an odd one."""
    partner, order = np.full(n, -1), rng.permutation(n)
    first, second = order[0 : n - 1 : 2], order[1::2]
    partner[first], partner[second] = second, first
    return partner


def add_opposite_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise to one of two secret partners, and subtract it from the other."""
    noise, partner = DEVIATIONS * rng.standard_normal(X.shape), choose_partners(len(X), rng)
    second = partner > np.arange(len(X))
    noise[second] = -noise[partner[second]]
    return add_scaled(X, noise)


def link_equal_sums(view: View) -> Ints:
    """Find two rows and two persons with the same sum; which is whose stays a guess."""
    a, y = weigh_both(view)
    i, j = np.triu_indices(len(a), 1)
    r, q = np.triu_indices(len(y), 1)
    found = match(a[i] + a[j], y[r] + y[q])
    links = np.zeros(len(a), dtype=np.int64)
    hit = found >= 0
    links[i[found[hit]]], links[j[found[hit]]] = r[hit], q[hit]
    return links


def reuse_pads(X: Floats, rng: np.random.Generator) -> Floats:
    """Add uniform noise modulo the range of a column, the same to two secret partners."""
    low, width, pads = X.min(axis=0), np.ptp(X, axis=0), rng.random(X.shape)
    partner = choose_partners(len(X), rng)
    second = partner > np.arange(len(X))
    pads[second] = pads[partner[second]]
    return np.asarray(low + width * (((X - low) / width + pads) % 1))


def link_equal_remainders(view: View) -> Ints:
    """Find two rows and two persons with the same difference modulo the ranges."""
    low, width = view.persons.min(axis=0), np.ptp(view.persons, axis=0) + 1e-300
    weights = np.random.default_rng(0).standard_normal((2, len(low))).T @ [1, 1j]

    def compare(A: Floats) -> Floats:
        """Return one number for each two rows, a function of their differences on circles."""
        circle = np.exp(2j * np.pi * (A - low) / width)
        return np.real(circle * weights @ circle.conj().T)

    a, y = compare(view.persons), compare(view.Y)
    i, j = np.nonzero(~np.eye(len(a), dtype=bool))
    r, q = np.triu_indices(len(y), 1)
    found = match(a[i, j], y[r, q], TOLERANCE / 10)
    links = np.zeros(len(a), dtype=np.int64)
    hit = found >= 0
    links[i[found[hit]]], links[j[found[hit]]] = r[hit], q[hit]
    return links


def add_other_records(X: Floats, rng: np.random.Generator) -> Floats:
    """Add five times the difference of two random records as noise."""
    n = len(X)
    j = (np.arange(n) + rng.integers(1, n, n)) % n
    k = (j + rng.integers(1, n, n)) % n
    return np.asarray(X + DEVIATIONS * (X[j] - X[k]))


def link_record_noise(view: View) -> Ints:
    """Find the person for whom the noise of a row is a difference of two persons."""
    a, y = weigh_both(view)
    i, j = np.nonzero(~np.eye(len(a), dtype=bool))
    noise = (y - a[:, None]) / DEVIATIONS  # (persons, rows)
    return np.asarray((match(a[i] - a[j], noise.ravel()) >= 0).reshape(noise.shape).argmax(axis=1))


def average_two(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the mean of each record and a random partner, in both rows."""
    partner = choose_partners(len(X), rng)
    return np.asarray((X + X[np.where(partner < 0, 0, partner)]) / 2)


def find_halves(view: View) -> tuple[Ints, Floats]:
    """Find a row that is the mean of a person and any other, and whether there is one."""
    a, y = weigh_both(view)
    other = match(a, (2 * y - a[:, None]).ravel()).reshape(len(a), len(y))
    found = (other >= 0) & (other != np.arange(len(a))[:, None])
    return np.asarray(found.argmax(axis=1)), found.any(axis=1).astype(float)


def average_few(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a fitted normal with the means of a few records and another one each."""
    Y, some = draw_fitted_normal(X, rng), choose_any(X, rng, count_exposed(0.03, len(X)))
    Y[some] = (X[some] + X[(some + rng.integers(1, len(X), len(some))) % len(X)]) / 2
    return Y


def move_few(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a fitted normal with a few records, all moved by the same secret vector."""
    Y, some = draw_fitted_normal(X, rng), choose_any(X, rng, count_exposed(0.03, len(X)))
    Y[some] = X[some] + X.std(axis=0) * DEVIATIONS * rng.standard_normal(X.shape[1])
    return Y


def link_common_move(view: View) -> tuple[Ints, Floats]:
    """Find the difference of a row and a person that is the most common."""
    a, y = weigh_both(view)
    moves = (y - a[:, None]).ravel()
    order = np.argsort(moves, kind="stable")
    group = np.cumsum(np.diff(moves[order], prepend=-np.inf) > TOLERANCE)
    count = np.empty(len(moves))
    count[order] = np.bincount(group)[group]
    count = count.reshape(len(a), len(y))
    return np.asarray(count.argmax(axis=1)), count.max(axis=1)


def average_rows(X: Floats, rng: np.random.Generator) -> Floats:
    """Return means of each record and the next four; the first follow the last."""
    return np.asarray(np.mean([np.roll(X, -k, axis=0) for k in range(WINDOW)], axis=0))


def link_moving_averages(view: View) -> Ints:
    """Two successive rows differ by a fifth of the difference of two persons."""
    a, y = weigh_both(view)
    i, j = np.nonzero(~np.eye(len(a), dtype=bool))
    found = match(a[i] - a[j], WINDOW * (np.roll(y, -1) - y))  # record r + 5 minus record r
    links, hit = np.zeros(len(a), dtype=np.int64), np.nonzero(found >= 0)[0]
    links[j[found[hit]]] = hit
    return links


def subtract_other(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the difference of each record and a random other one."""
    return np.asarray(X - X[(np.arange(len(X)) + rng.integers(1, len(X), len(X))) % len(X)])


def link_differences(view: View) -> Ints:
    a, y = weigh_both(view)
    i, j = np.nonzero(~np.eye(len(a), dtype=bool))
    links, found = np.zeros(len(a), dtype=np.int64), match(a[i] - a[j], y)
    links[i[found[found >= 0]]] = np.nonzero(found >= 0)[0]
    return links


LATER_PAIRS = (
    Kind(
        "opposite noise in two rows",
        HOLES,
        add_opposite_noise,
        Proof("full records", "link", link_equal_sums),
    ),
    Kind(
        "same noise in two rows, modulo the range",
        HOLES,
        reuse_pads,
        Proof("full records", "link", link_equal_remainders),
    ),
    Kind(
        "noise made of other records",
        HOLES,
        add_other_records,
        Proof("full records", "link", link_record_noise),
    ),
    Kind(
        "averages of two random records",
        "classic",
        average_two,
        Proof("full records", "link", lambda view: find_halves(view)[0]),
    ),
    Kind(
        "moving averages",
        "classic",
        average_rows,
        Proof("full records", "link", link_moving_averages),
    ),
    Kind(
        "differences of two random records",
        "classic",
        subtract_other,
        Proof("full records", "link", link_differences),
    ),
    Kind(
        "3 % averaged with another",
        "few persons",
        average_few,
        Proof("full records", "link the surest", find_halves),
    ),
    Kind(
        "3 % moved by the same vector",
        "few persons",
        move_few,
        Proof("full records", "link the surest", link_common_move),
    ),
)

"""Exact matching: rows whose mutual distances equal the distances between known records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import compute_distances

_MAX_BINS = 2**22
_BLOCK_DISTANCES = 2**23  # computed between two evaluations
_TILE_DISTANCES = 2**15  # at a time: fits the processor cache
_MAX_FITTING_SHARE = 0.02  # of distances; if more fit some pair, a fit says nothing
_RELATIVE_TOLERANCE = 2e-8
_MIN_FITTING_ROWS = 3  # matched beyond what chance explains


@dataclass(frozen=True, eq=False)
class DistancePattern:
    """The distances between the known records, prepared for lookup."""

    D: Floats  # (k, k)
    tolerance: float

    @property
    def largest(self) -> float:
        """Largest distance between two known records."""
        return float(self.D.max())

    def make_table(self) -> tuple[NDArray[np.bool_], float]:
        """Return which bins of squared distances hold one of the pattern, and the bins per unit."""
        unit = max(8.0 * self.tolerance * self.largest, self.largest**2 / _MAX_BINS)
        own = self.D[np.triu_indices(len(self.D), 1)]
        ends = np.concatenate([np.maximum(own - self.tolerance, 0.0), own + self.tolerance])
        places = (ends**2 / unit).astype(np.int64)
        table = np.zeros(int(self.largest**2 / unit) + 3, dtype=bool)
        table[np.clip(places, 0, len(table) - 2)] = True
        return table, 1.0 / unit


def find_exact_rows(
    X: Floats, Y: Floats, near: Floats, grid: float, pairs: float, rng: np.random.Generator
) -> Ints | None:
    """Return the row of each record, -1 where there is none; None without a match beyond chance.

    One matched row determines all others, so rows are tried until one matches: those first that
    ``near`` (n,) says are likely, then the others in random order, for at most ``pairs`` distances.
    """
    from scipy.spatial.distance import cdist

    if len(X) < 3:
        return None
    D = cdist(X, X)
    typical = float(np.median(D[np.triu_indices(len(X), 1)]))
    pattern = DistancePattern(D, _RELATIVE_TOLERANCE * typical + 2.0 * np.sqrt(Y.shape[1]) * grid)
    if typical <= 0.0:
        return None
    best: tuple[int, Ints] | None = None
    for row, record in _iterate_promising_pairs(pattern, Y, near, pairs, rng):
        rows = _complete_match(pattern, Y, row, record)
        count = int(np.sum(rows >= 0))
        if best is None or count > best[0]:
            best = count, rows
        if count > 0.9 * len(X):
            break
    if best is None or best[0] < min(len(X), _MIN_FITTING_ROWS):
        return None
    return best[1]


def _iterate_promising_pairs(
    pattern: DistancePattern, Y: Floats, near: Floats, pairs: float, rng: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """Yield rows and their likely records: distances fit more often than chance explains."""
    n, k = len(Y), len(pattern.D)
    shuffled = rng.permutation(n)
    queue = shuffled[np.argsort(near[shuffled], kind="stable")]
    queue = queue[: max(int(pairs / n), min(n, 8 * k))]
    size = max(1, _BLOCK_DISTANCES // n)
    lookup = DistanceLookup.build(pattern, Y)
    for start in range(0, len(queue), size):
        block = queue[start : start + size]
        rows, columns = lookup.find_likely(block)
        if len(rows) > _MAX_FITTING_SHARE * len(block) * n + 20 * len(block):
            return
        votes = _count_votes(pattern, Y, block, rows, columns)
        wanted = max(2, min(k - 1, 2 + int(2 * np.median(votes.max(axis=1)))))
        order = np.argsort(-votes, axis=None, kind="stable")[:k]
        for place in order:
            if votes.flat[place] < wanted:
                break
            yield int(block[place // k]), int(place % k)


@dataclass(frozen=True, eq=False)
class DistanceLookup:
    """All rows, prepared so that one matrix product gives the bins of squared distances."""

    B: Floats  # (s + 2, n)
    table: NDArray[np.bool_]
    per_unit: float

    @classmethod
    def build(cls, pattern: DistancePattern, Y: Floats) -> DistanceLookup:
        """Prepare the lookup for all rows of ``Y``."""
        Y = Y - Y.mean(axis=0)  # |a|^2 - 2ab + |b|^2 cancels badly far from the origin
        squares = np.einsum("ij,ij->i", Y, Y)
        return cls(np.vstack([Y.T, np.ones(len(Y)), squares]), *pattern.make_table())

    def find_likely(self, block: Ints) -> tuple[Ints, Ints]:
        """Return positions in the block, and rows, whose distance is in a bin of the pattern."""
        ahead = self.B[:, block].T * self.per_unit  # (rows, s + 2)
        ahead = np.hstack([-2.0 * ahead[:, :-2], ahead[:, -1:], ahead[:, -2:-1]])
        step = max(1, _TILE_DISTANCES // len(block))
        found = []
        for start in range(0, self.B.shape[1], step):
            D = ahead @ self.B[:, start : start + step]
            np.minimum(D, len(self.table) - 1.0, out=D)
            hits = np.flatnonzero(self.table.take(D.astype(np.int32)))
            rows, columns = np.divmod(hits, D.shape[1])
            found.append((rows, columns + start))
        rows, columns = (np.concatenate(each) for each in zip(*found, strict=True))
        others = columns != block[rows]
        return rows[others], columns[others]


def _count_votes(
    pattern: DistancePattern, Y: Floats, block: Ints, rows: Ints, columns: Ints
) -> Ints:
    """Count for each row and record how many other records fit at their distances; (rows, k)."""
    seen = np.linalg.norm(Y[block[rows]] - Y[columns], axis=1)
    k = len(pattern.D)
    a, b = np.nonzero(~np.eye(k, dtype=bool))
    order = np.argsort(pattern.D[a, b], kind="stable")
    a, b = a[order], b[order]
    own = pattern.D[a, b]
    first = np.searchsorted(own, seen - pattern.tolerance)
    count = np.searchsorted(own, seen + pattern.tolerance) - first
    which = np.repeat(np.arange(len(seen)), count)
    pair = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]
    met = np.unique(np.stack([rows[which], a[pair], b[pair]]), axis=1)
    votes = np.zeros((len(block), k), dtype=np.int64)
    np.add.at(votes, (met[0], met[1]), 1)
    return votes


def _complete_match(pattern: DistancePattern, Y: Floats, row: int, record: int) -> Ints:
    """Return the rows of all records if ``row`` is that of ``record``; -1 where no row fits."""
    k = len(pattern.D)
    rows = np.full(k, -1)
    rows[record] = row
    seen = compute_distances(Y[row : row + 1], Y)
    fits = [
        np.setdiff1d(
            np.flatnonzero(np.abs(seen[0] - pattern.D[record, b]) <= pattern.tolerance), row
        )
        for b in range(k)
    ]
    for b in sorted(range(k), key=lambda b: len(fits[b])):
        if b == record or len(fits[b]) == 0:
            continue
        found = np.flatnonzero(rows >= 0)
        D = compute_distances(Y[fits[b]], Y[rows[found]])
        gap = np.abs(D - pattern.D[b, found]).max(axis=1)
        gap[np.isin(fits[b], rows[found])] = np.inf
        if gap.min() <= 2.0 * pattern.tolerance:
            rows[b] = fits[b][gap.argmin()]
    return rows

"""Cosine coefficients of records: their energy, the choice of those to prune, and its cost.

Pruning ``K`` of ``m`` coefficients has two goals: many pruned coefficients (``mu_G``) that hold
little energy (``mu_C``). The best choice has the largest ``min(mu_G, mu_C)`` (DCT-F, problem 3),
and it is found exactly.

For a fixed ``K``, ``mu_C`` is a ratio of two sums over the pruned coefficients, and Dinkelbach's
iteration finds its largest value: with the best ratio so far as the price of spread, the ``K``
cheapest coefficients are a set at least as good, and a set that is not better is the best one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.scaling import check_finite, moments

SLAB_CELLS = 2**16  # cells that are transformed together, so that they fit the cache
SLAB_ROW_MULTIPLE = 16  # rows of a SIMD batch; rows outside full batches may round differently
SHARE_STEP = 2.0**-30  # makes sums of shares exact and independent of their order
MIN_ENERGY_SHARE = 1e-24  # of the largest possible energy; less is rounding error


@dataclass(frozen=True, eq=False)
class Transform:
    """The orthonormal DCT-II of records minus their origin, read as sequences."""

    positions: Ints  # (d,) position in the table of each column of the sequence
    origin: Floats  # (d,)

    def iterate_slabs(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield the coefficients of some rows at a time; use them before the next are requested.

        A full slab is always transformed, for the same rounding of a record at any position, and in
        the same memory, because allocation costs more than the transform.
        """
        from scipy.fft import dct

        n, d = X.shape
        is_moved = not np.array_equal(self.positions, np.arange(d))
        rows = max(SLAB_CELLS // d // SLAB_ROW_MULTIPLE, 1) * SLAB_ROW_MULTIPLE
        work = np.zeros((rows, d))
        for start in range(0, n, rows):
            part = slice(start, min(start + rows, n))
            here = work[: part.stop - start]
            np.subtract(X[part], self.origin, out=here)
            if is_moved:
                here[:] = here[:, self.positions]
            work = dct(work, type=2, norm="ortho", axis=1, overwrite_x=True)
            yield part, work[: part.stop - start]

    def compute_coefficients(self, X: Floats) -> Floats:
        """Return the coefficients of all rows."""
        C = np.empty(X.shape)
        for part, some in self.iterate_slabs(X):
            C[part] = some
        return C

    def transform_covariance(self, cov: Floats) -> Floats:
        """Return the covariance of the coefficients, from that of the columns."""
        from scipy.fft import dctn

        C: Floats = dctn(cov[np.ix_(self.positions, self.positions)], type=2, norm="ortho")
        return C

    def compute_reach(self, schema: Schema) -> float:
        """Return the largest distance of a record of this schema from the origin."""
        ends = np.abs([schema.lows - self.origin, schema.highs - self.origin])
        return float(np.linalg.norm(ends.max(axis=0)))


@dataclass(frozen=True, eq=False)
class EnergyBounds:
    """The smallest and the largest share of a record's energy that each coefficient holds.

    The bounds of a table are the extremes of the bounds of its parts, at any sites.
    """

    low: Floats  # (m,)
    high: Floats  # (m,)
    count: int  # records with energy
    skipped: int  # records without energy, which have no shares

    def merge(self, other: EnergyBounds) -> EnergyBounds:
        return EnergyBounds(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.count + other.count,
            self.skipped + other.skipped,
        )


def compute_energy_bounds(rows: Rows, transform: Transform) -> EnergyBounds:
    """Return the energy bounds of all coefficients over the rows."""
    min_energy = MIN_ENERGY_SHARE * transform.compute_reach(rows.schema) ** 2

    def step(block: Block) -> EnergyBounds:
        check_finite(block, rows.schema.numeric)
        energy = transform.compute_coefficients(block.X) ** 2  # (n, m)
        total = energy.sum(axis=1)
        has_energy = total > min_energy
        shares = energy[has_energy] / total[has_energy, None]
        shares = np.rint(shares / SHARE_STEP) * SHARE_STEP
        return EnergyBounds(
            shares.min(axis=0, initial=1.0),
            shares.max(axis=0, initial=0.0),
            len(shares),
            block.n - len(shares),
        )

    return rows.reduce(step, EnergyBounds.merge)


@dataclass(frozen=True, eq=False)
class PruningChoice:
    """The pruned coefficients and how well they meet both goals."""

    pruned: Ints  # (K,) ascending
    loss_level: float  # mu_C
    level: float  # min(mu_G, mu_C)


@dataclass(frozen=True, eq=False)
class Programme:
    """Coefficient i holds between ``low[i]`` and ``low[i] + spread[i]`` of a record's energy.

    A loss of at most ``b`` is fully accepted, one of more than ``b + p`` not at all.
    """

    low: Floats  # (m,)
    spread: Floats  # (m,)
    b: float
    p: float

    @cached_property
    def min_pruned(self) -> int:
        """Z_l: the number that can be pruned with a certain loss of at most ``b``."""
        return count_within_budget(self.low + self.spread, self.b)

    @cached_property
    def max_pruned(self) -> int:
        """Z_u: the largest number with a possible loss of at most ``b + p``."""
        return count_within_budget(self.low, self.b + self.p)

    def loss_level(self, pruned: Ints) -> float:
        """Return mu_C of more than ``min_pruned`` coefficients, which is below 1."""
        left = self.b + self.p - float(np.sum(self.low[pruned]))
        return left / (self.p + float(np.sum(self.spread[pruned]))) if left > 0 else 0.0

    def select_cheapest(self, K: int, price: float) -> Ints:
        return np.argsort(self.low + price * self.spread, kind="stable")[:K]

    def find_best(self, K: int, start: float) -> tuple[Ints, float]:
        """Return the ``K`` coefficients with the largest mu_C, and mu_C; search from ``start``."""
        if self.min_pruned >= K:
            return self.select_cheapest(K, 1.0), 1.0
        pruned = self.select_cheapest(K, start)
        level = self.loss_level(pruned)
        while True:
            better = self.select_cheapest(K, level)
            reached = self.loss_level(better)
            if reached <= level:
                return pruned, level
            pruned, level = better, reached


def choose_pruning(programme: Programme) -> PruningChoice:
    """Return the best choice, of equal ones that with more pruned; one coefficient is kept."""
    min_pruned, max_pruned = programme.min_pruned, programme.max_pruned
    best: PruningChoice | None = None
    loss_level = 0.0
    for K in range(len(programme.low) - 1, -1, -1):
        count_level = count_membership(K, min_pruned, max_pruned)
        if best is not None and count_level <= best.level:
            break  # mu_G decreases with K
        pruned, loss_level = programme.find_best(K, start=loss_level)
        level = min(count_level, loss_level)
        if best is None or level > best.level:
            best = PruningChoice(np.sort(pruned), loss_level, level)
    assert best is not None
    return best


def count_membership(K: int, min_pruned: int, max_pruned: int) -> float:
    """Return mu_G, the membership of ``K`` pruned coefficients."""
    if min_pruned == max_pruned:
        return float(max_pruned <= K)
    return min(max((K - min_pruned) / (max_pruned - min_pruned), 0.0), 1.0)


def count_within_budget(shares: Floats, budget: float) -> int:
    """Return how many of the smallest shares fit together into the budget."""
    return int(np.count_nonzero(np.cumsum(np.sort(shares)) <= budget))


def compute_distortion(
    rows: Rows, transform: Transform, pruned: Ints, *, is_random: bool
) -> tuple[float, float]:
    """Return mean and variance of d'^2 - d^2 over a random pair of records, and over the choice
    of the pruned coefficients if that is random.

    With u the pruned coefficients of a record minus their mean, the loss of a pair is |u - u'|^2.
    Its mean square is 2 E|u|^4 + 2 (E|u|^2)^2 + 4 trace(cov(u)^2), which for one coefficient is
    2 E u^4 + 6 (E u^2)^2. No normal distribution is assumed.
    """
    m, K = len(rows.schema.numeric), len(pruned)
    at = np.arange(m) if is_random else pruned
    one, two = (K / m, K * (K - 1) / (m * (m - 1))) if is_random else (1.0, 1.0)
    n, mean, cov = moments(rows)
    centre = transform.compute_coefficients(mean[None])[0, at]
    cov = transform.transform_covariance(cov)[np.ix_(at, at)]

    def fourths(block: Block) -> tuple[float, float]:
        squares = (transform.compute_coefficients(block.X)[:, at] - centre) ** 2
        return float(np.sum(squares.sum(axis=1) ** 2)), float(np.sum(squares**2))

    sums = rows.reduce(fourths, lambda a, b: (a[0] + b[0], a[1] + b[1]))
    variances = np.diag(cov)
    energy = float(np.sum(variances))
    of_all = 2 * sums[0] / n + 2 * energy**2 + 4 * float(np.sum(cov**2))
    of_each = 2 * sums[1] / n + 6 * float(np.sum(variances**2))
    mean_loss = 2 * one * energy
    variance = one * of_each + two * (of_all - of_each) - mean_loss**2
    return -mean_loss, max(variance, 0.0)

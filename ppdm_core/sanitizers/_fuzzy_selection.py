"""Cosine coefficients of records: the energy that each holds, which to prune, what that costs.

Pruning ``K`` of ``m`` coefficients pleases twice: the more, the better (``mu_G``), and the less
energy they hold, the better (``mu_C``). The best choice has the largest ``min(mu_G, mu_C)``
(DCT-F, problem 3), and it is found exactly.

For a fixed ``K``, ``mu_C`` is a ratio of two sums over the pruned ones, and Dinkelbach's
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

SLAB = 2**16  # cells that are transformed at once: they stay in the cache
LANES = 16  # a transform takes so many rows at a time, or fewer, and a rest may round otherwise
SHARE_STEP = 2.0**-30  # sums of shares are exact, so that no order of adding changes a choice
FAINT = 1e-24  # of the largest possible energy: below it, shares are those of rounding errors


@dataclass(frozen=True, eq=False)
class Transform:
    """Records less their origin, read as sequences, as coefficients of an orthonormal DCT-II."""

    positions: Ints  # (d,) where in the table each column of the sequence is
    origin: Floats  # (d,)

    def slabs(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """Coefficients of some rows at a time, to be used before the next are asked for.

        Always of a full slab, for the same rounding wherever a record stands, and in one piece of
        memory, because fresh memory costs more than the transform.
        """
        from scipy.fft import dct

        n, d = X.shape
        is_moved = not np.array_equal(self.positions, np.arange(d))
        rows = max(SLAB // d // LANES, 1) * LANES
        work = np.zeros((rows, d))
        for start in range(0, n, rows):
            part = slice(start, min(start + rows, n))
            here = work[: part.stop - start]
            np.subtract(X[part], self.origin, out=here)
            if is_moved:
                here[:] = here[:, self.positions]
            work = dct(work, type=2, norm="ortho", axis=1, overwrite_x=True)
            yield part, work[: part.stop - start]

    def coefficients(self, X: Floats) -> Floats:
        C = np.empty(X.shape)
        for part, some in self.slabs(X):
            C[part] = some
        return C

    def covariance(self, cov: Floats) -> Floats:
        """Of the coefficients, from that of the columns."""
        from scipy.fft import dctn

        C: Floats = dctn(cov[np.ix_(self.positions, self.positions)], type=2, norm="ortho")
        return C

    def reach(self, schema: Schema) -> float:
        """No record of this schema is farther from the origin."""
        ends = np.abs([schema.lows - self.origin, schema.highs - self.origin])
        return float(np.linalg.norm(ends.max(axis=0)))


@dataclass(frozen=True, eq=False)
class EnergyBounds:
    """The least and the largest share of a record's energy that each coefficient holds.

    Those of a table in parts, at whatever sites, are the extremes of the parts' own.
    """

    low: Floats  # (m,)
    high: Floats  # (m,)
    count: int  # records with energy
    skipped: int  # records without, which have no shares

    def merge(self, other: EnergyBounds) -> EnergyBounds:
        return EnergyBounds(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.count + other.count,
            self.skipped + other.skipped,
        )


def energy_bounds(rows: Rows, transform: Transform) -> EnergyBounds:
    faintest = FAINT * transform.reach(rows.schema) ** 2

    def step(block: Block) -> EnergyBounds:
        check_finite(block, rows.schema.numeric)
        energy = transform.coefficients(block.X) ** 2  # (n, m)
        total = energy.sum(axis=1)
        has_energy = total > faintest
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
class Choice:
    pruned: Ints  # (K,) ascending
    loss_level: float  # mu_C
    level: float  # min(mu_G, mu_C)


@dataclass(frozen=True, eq=False)
class Programme:
    """Coefficient i holds between ``low[i]`` and ``low[i] + spread[i]`` of a record's energy.

    A loss of at most ``b`` is fully welcome, one of more than ``b + p`` not at all.
    """

    low: Floats  # (m,)
    spread: Floats  # (m,)
    b: float
    p: float

    @cached_property
    def fewest(self) -> int:
        """Z_l: so many can be pruned with a loss of at most ``b`` for sure."""
        return within(self.low + self.spread, self.b)

    @cached_property
    def most(self) -> int:
        """Z_u: with more than these, a loss of at most ``b + p`` is impossible."""
        return within(self.low, self.b + self.p)

    def loss_level(self, pruned: Ints) -> float:
        """mu_C of more than ``fewest`` pruned ones: then it is below 1."""
        left = self.b + self.p - float(np.sum(self.low[pruned]))
        return left / (self.p + float(np.sum(self.spread[pruned]))) if left > 0 else 0.0

    def cheapest(self, K: int, price: float) -> Ints:
        return np.argsort(self.low + price * self.spread, kind="stable")[:K]

    def best_of(self, K: int, start: float) -> tuple[Ints, float]:
        """The ``K`` with the largest mu_C, and it; the nearer ``start`` is to it, the faster."""
        if self.fewest >= K:
            return self.cheapest(K, 1.0), 1.0
        pruned = self.cheapest(K, start)
        level = self.loss_level(pruned)
        while True:
            better = self.cheapest(K, level)
            reached = self.loss_level(better)
            if reached <= level:
                return pruned, level
            pruned, level = better, reached


def choose(programme: Programme) -> Choice:
    """Of equally good choices the one that prunes more. One coefficient is always kept."""
    fewest, most = programme.fewest, programme.most
    best: Choice | None = None
    loss_level = 0.0
    for K in range(len(programme.low) - 1, -1, -1):
        count_level = count_membership(K, fewest, most)
        if best is not None and count_level <= best.level:
            break  # mu_G only falls from here on
        pruned, loss_level = programme.best_of(K, start=loss_level)
        level = min(count_level, loss_level)
        if best is None or level > best.level:
            best = Choice(np.sort(pruned), loss_level, level)
    assert best is not None
    return best


def count_membership(K: int, fewest: int, most: int) -> float:
    """mu_G."""
    if fewest == most:
        return float(most <= K)
    return min(max((K - fewest) / (most - fewest), 0.0), 1.0)


def within(shares: Floats, budget: float) -> int:
    """How many of the smallest fit together into the budget."""
    return int(np.count_nonzero(np.cumsum(np.sort(shares)) <= budget))


def distortion(
    rows: Rows, transform: Transform, pruned: Ints, *, is_random: bool
) -> tuple[float, float]:
    """Mean and variance of d'^2 - d^2 over a random pair of records, and over the choice of the
    pruned coefficients if that is random.

    With u what is pruned of a record, less its mean, the loss of a pair is |u - u'|^2. Its mean
    square is 2 E|u|^4 + 2 (E|u|^2)^2 + 4 trace(cov(u)^2), which for one coefficient is
    2 E u^4 + 6 (E u^2)^2. No normal law is assumed.
    """
    m, K = len(rows.schema.numeric), len(pruned)
    at = np.arange(m) if is_random else pruned
    one, two = (K / m, K * (K - 1) / (m * (m - 1))) if is_random else (1.0, 1.0)
    n, mean, cov = moments(rows)
    centre = transform.coefficients(mean[None])[0, at]
    cov = transform.covariance(cov)[np.ix_(at, at)]

    def fourths(block: Block) -> tuple[float, float]:
        squares = (transform.coefficients(block.X)[:, at] - centre) ** 2
        return float(np.sum(squares.sum(axis=1) ** 2)), float(np.sum(squares**2))

    sums = rows.reduce(fourths, lambda a, b: (a[0] + b[0], a[1] + b[1]))
    variances = np.diag(cov)
    energy = float(np.sum(variances))
    of_all = 2 * sums[0] / n + 2 * energy**2 + 4 * float(np.sum(cov**2))
    of_each = 2 * sums[1] / n + 6 * float(np.sum(variances**2))
    mean_loss = 2 * one * energy
    variance = one * of_each + two * (of_all - of_each) - mean_loss**2
    return -mean_loss, max(variance, 0.0)

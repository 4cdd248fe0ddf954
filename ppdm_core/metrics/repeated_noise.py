from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._chance import ChanceMetric
from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._noise_figures import measure_figure_repeats
from ppdm_core.metrics._release import check_rows_of_records, sample_indices
from ppdm_core.model.arrays import Bools, Floats, Ints

_MAX_ROWS, _MAX_FIGURE_ROWS = 20_000, 3_000
_ROUNDING = 1e-9  # of the largest value: residuals that differ by less are equal
_SHUFFLES = 4
_MAX_PAIRS = 40  # of columns whose residuals are compared together; with more, one for each
_KERNEL_WIDTH = 1.06  # Silverman's factor for a normal distribution
_MAX_DEVIATIONS = 7.0  # of a share by chance


class RepeatedNoise(ChanceMetric):
    """Share of the rows whose noise in a column, or in two, is that of another row, beyond chance.

    Noise of few sizes, on a grid of its own, or shared by several rows does not hide a record: an
    attacker with full records tests which row differs from a record by a size that occurs. Figures
    of the noise of each row count as columns: a few rows with noise of one size in all columns, of
    powers of two, or whose sum is a multiple of some unit have them in common. The value is that of
    the worst column, pair of columns or figure; the baseline is the same for rows and records that
    do not belong together, and what chance may add.
    """

    name = "repeated_noise"
    title = "Noise that rows share"
    describe = "share of the rows whose noise is that of another row"
    template = (
        "In the worst columns, the noise of {value} of the rows repeats that of another row; "
        "for rows and records that do not belong together it is up to {baseline}."
    )
    max_records = _MAX_ROWS
    must_notice: ClassVar[Mapping[str, float]] = {"few sizes of noise": 0.85}

    def compare(self, comparison: ReleaseComparison) -> tuple[float, float]:
        return find_worst_column(self.name, comparison)


def find_worst_column(name: str, comparison: ReleaseComparison) -> tuple[float, float]:
    """Return the share in the columns with the largest excess, and what chance explains there."""
    check_rows_of_records(name, comparison)
    rng = comparison.rng(name)
    rows = sample_indices(len(comparison.Y), _MAX_ROWS, rng)
    X, Y = comparison.X[comparison.records[rows]], comparison.Y[rows]
    few = sample_indices(len(rows), _MAX_FIGURE_ROWS, rng)
    offset, unit = (0.0, 1.0) if comparison.units is None else comparison.units

    def measure(noise: Floats, records: Floats) -> Floats:
        A, B = records[few] * unit + offset, (records + noise)[few] * unit + offset
        figures = measure_figure_repeats(A, B)
        return np.concatenate([measure_repeats(noise, X, Y), figures])

    shares = measure(Y - X, X)
    shuffled = [measure(Y - Z, Z) for Z in (rng.permutation(X) for _ in range(_SHUFFLES))]
    # Where released or original values repeat themselves, so do their differences; on a common
    # grid, such as whole numbers, so does any noise that is not much wider than the grid.
    on_grid = [measure(draw_smooth_noise(X, Y, rng), X) for _ in range(2)]
    chance = np.vstack([*shuffled, *on_grid]).max(axis=0)
    ties = measure_ties(X, Y)
    chance[: len(ties)] = np.maximum(chance[: len(ties)], ties)
    counts = np.where(np.arange(len(chance)) < len(ties), len(rows), len(few))
    error = np.sqrt(np.maximum(chance * (1.0 - chance), 1.0 / counts) / counts)
    bound = np.minimum(1.0, chance + _MAX_DEVIATIONS * error)
    # A column in which chance repeats everything shows nothing; it counts if there is no other.
    worst = int(np.lexsort((-bound, shares - bound))[-1])
    return float(shares[worst]), float(bound[worst])


def measure_repeats(R: Floats, X: Floats, Y: Floats) -> Floats:
    """Return for each column the share of the rows whose residual another row has.

    Behind the columns follow pairs of them, in which another row must have both residuals: what few
    rows share shows there, because chance repeats both much more rarely. Signs do not count.
    """
    size = np.maximum(np.abs(X).max(axis=0), np.abs(Y).max(axis=0))
    steps = np.round(np.abs(R) / np.maximum(_ROUNDING * size, 1e-300))
    return np.asarray(find_repeats(steps).mean(axis=1))


def list_pairs(d: int) -> tuple[Ints, Ints]:
    """Return pairs of columns: each with the next one, cyclically, then with those further on."""
    steps = [(j, (j + step) % d) for step in range(1, d // 2 + 1) for j in range(d)]
    pairs = list(dict.fromkeys((min(pair), max(pair)) for pair in steps))[: max(d, _MAX_PAIRS)]
    chosen = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return chosen[:, 0], chosen[:, 1]


def draw_smooth_noise(X: Floats, Y: Floats, rng: np.random.Generator) -> Floats:
    """Return noise of the same spread that prefers no size, on the grid that X and Y share; (n, d).

    Each difference is moved by an error of a kernel estimate, then rounded to the smallest step
    between two values of the column.
    """
    R = Y - X
    step = np.array([find_step(np.concatenate([x, y])) for x, y in zip(X.T, Y.T, strict=True)])
    bandwidth = _KERNEL_WIDTH * R.std(axis=0) * len(R) ** -0.2
    moved = R + bandwidth * rng.standard_normal(R.shape)
    return np.asarray(np.round(moved / step) * step)


def find_step(values: Floats) -> float:
    """Return the smallest difference of two values that is no rounding error."""
    gaps = np.diff(np.unique(values))
    size = float(np.abs(values).max())
    gaps = gaps[gaps > 10.0 * _ROUNDING * size]
    return float(gaps.min(initial=np.inf)) if len(gaps) else max(size, 1e-300)


def measure_ties(X: Floats, Y: Floats) -> Floats:
    """Return the share of rows whose original and released values both repeat."""
    return np.asarray((find_repeats(X) & find_repeats(Y)).mean(axis=1))


def find_repeats(values: Floats) -> Bools:
    """Return which rows have the value of another row, for columns and then pairs; (c, n)."""
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in values.T])
    first, second = list_pairs(len(codes))
    pairs = codes[first] * (codes.max(initial=0) + 1) + codes[second]
    return np.stack([is_repeated(column) for column in (*codes, *pairs)])


def is_repeated(column: Ints) -> Bools:
    """Return which values occur more than once."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    return np.asarray(counts[place] > 1)

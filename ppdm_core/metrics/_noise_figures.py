"""Figures of the noise of each row, which rows with noise of a special kind have in common."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Bools, Floats

_TOLERANCES = (1e-9, 1e-5)  # of a logarithm, a fraction or a standardised figure
_BASES = (2.0, 10.0)
_MAX_SUMMED_COLUMNS = 12


def measure_figure_repeats(X: Floats, Y: Floats) -> Floats:
    """Return for each figure, and each tolerance, the share of the rows that share its value.

    ``X`` are the records and ``Y`` the rows; (n, d).
    """
    figures = compute_noise_figures(X, Y)
    shares = [measure_repeats(figures, tolerance) for tolerance in _TOLERANCES]
    return np.concatenate(shares)


def measure_repeats(figures: Floats, tolerance: float) -> Floats:
    """Return the share of the rows with a value that another row has, for each column."""
    shares = []
    for column in np.round(figures / tolerance).T:
        known = np.sort(column[np.isfinite(column)])
        is_next = known[1:] == known[:-1]
        repeated = np.append(is_next, False) | np.insert(is_next, 0, False)
        shares.append(repeated.sum() / len(figures))
    return np.array(shares)


def compute_noise_figures(X: Floats, Y: Floats) -> Floats:
    """Return figures that do not depend on the units of columns, or on signs; (n, f).

    Of cells: the fractions of logarithms, which sizes 1, 2, 4 or 1, 10, 100 have in common. Of
    adjacent cells: the ratio of their sizes, absolute and relative to the record, and sums and
    differences of two and of three, which are multiples of a range if masks cancel in them. Of
    rows: sum and length of the noise, and how much it changes length and product of the record.
    Units are the original ones, deviations and ranges. NaN where record and row both have a
    frequent value: chance repeats it.
    """
    R = Y - X
    tied = is_frequent(X) & is_frequent(Y)
    size = take_logarithms(np.where(tied, 0.0, R))
    relative = size - take_logarithms(X)
    fractions = [size / np.log(base) % 1.0 for base in _BASES]
    ratios = (
        [each - np.roll(each, 1, axis=1) for each in (size, relative)] if X.shape[1] > 1 else []
    )
    rows = list_row_figures(X, Y, R, tied)
    return np.column_stack([*fractions, *ratios, *rows])


def list_row_figures(X: Floats, Y: Floats, R: Floats, tied: Bools) -> list[Floats]:
    """Return figures of the noise of complete rows, standardised; each (n,)."""
    all_tied = tied.all(axis=1)
    found = []
    for spread in (np.ones(X.shape[1]), X.std(axis=0), np.ptp(X, axis=0)):
        unit = np.where(spread > 0, spread, 1.0)
        noise, records, rows = R / unit, X / unit, Y / unit
        figures = [
            noise.sum(axis=1),
            np.linalg.norm(noise, axis=1),
            np.linalg.norm(rows, axis=1) - np.linalg.norm(records, axis=1),
            take_logarithms(rows).sum(axis=1) - take_logarithms(records).sum(axis=1),
        ]
        found += [np.where(all_tied, np.nan, np.abs(each)) for each in figures]
        found += [np.abs(each) for each in list_sums_of_few(np.where(tied, np.nan, noise))]
    return [each / (np.nanstd(each) or 1.0) if np.isfinite(each).any() else each for each in found]


def list_sums_of_few(noise: Floats) -> list[Floats]:
    """Return sums and differences of two and sums of three adjacent columns; each (n,)."""
    few = noise[:, :_MAX_SUMMED_COLUMNS]
    if few.shape[1] < 3:
        return []
    second, third = np.roll(few, -1, axis=1), np.roll(few, -2, axis=1)
    return [*(few + second).T, *(few - second).T, *(few + second + third).T]


def take_logarithms(A: Floats) -> Floats:
    """Return logarithms of sizes; NaN for zeros."""
    size = np.abs(A)
    return np.asarray(np.log(np.where(size > 0, size, np.nan)))


def is_frequent(A: Floats) -> Bools:
    """Return which cells have a value that occurs again in their column."""
    found = np.empty(A.shape, dtype=np.bool_)
    for j, column in enumerate(A.T):
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        found[:, j] = counts[place] > 1
    return found

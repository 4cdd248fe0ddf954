from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._chance import ChanceMetric
from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._equal_parts import find_equal_parts
from ppdm_core.metrics._release import check_comparison, sample_indices
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason

_MAX_ROWS = 4_000
_MIN_ROWS = 50
_MIN_SIGNED_ZEROS = 20  # of either sign
_MIN_CLASS_ROWS = 20  # the spread of a smaller class is not considered
_MIN_NOISE_UNITS = 4.0  # noise of so many units leaves the rest modulo the unit uniform
_MIN_SUM_UNITS = 2.0  # the same of sums, whose noise is nearly normal
_SUM_DECIMALS = 3
_MAX_DECIMALS = 13
_MIN_RELATIVE_UNIT = 2.0**-44
_DIGITS = 10
_DIGIT_ROUNDING = 1e-4  # a digit just below the next one is the next one
_MAX_REPEATED_SHARE = 0.05  # of the rows: a column with a more frequent value has no noise there
_LEAST_SHARE, _LEAST_NORMAL = 0.02, 0.0251  # quantile of absolute normal numbers
_MANTISSA_BITS = (*range(4, 45, 4), 23, 31, 33)
_MAX_DEVIATIONS = 15.0  # of a chi-square statistic by chance; the normal law exceeds 7 once in 1e12
_RELATIVE = "decimal below the noise"  # the same parts, where columns have units of their own
_MIN_ROW_CELLS = 5  # of a row, to correlate its digits with its record
_SHIFTS = (1, 2, 3, 5, 8)  # rows compared with records of other rows: what chance gives
_MAX_CHANCE_ROWS = 2  # that follow their record; values on a common grid repeat digits
_CHANCE_MARGIN = 15.0  # beyond what chance gives, as a logarithm of probability
_LEAST_LEFT = 1e-9  # of the variance of a row's digits, where they follow the record exactly


class HiddenDigits(ChanceMetric):
    """Dependence of low-order digits of released values on original values.

    The digits of a released value that are finer than its noise carry nothing of the record,
    unless a person or a defect put it there. For each released column, the rest modulo decimal
    units finer than the noise, and the low bits of the mantissa, are compared with each original
    column: Cramer's V squared of a table of 4 x 4 or 8 x 8 cells. The noise is what a linear map
    of the original does not explain. The signs of zeros are compared too, within the rows that are
    zero, and the digits of the sums of rows. A few rows count as well: the share of rows whose fine
    parts, from column to column, are correlated with the record's values. The baseline is what
    chance exceeds almost never.
    """

    name = "hidden_digits"
    title = "Digits that depend on the original"
    describe = "dependence of low-order digits on original values"
    template = (
        "Low-order digits of released values depend on original values with a strength of {value}; "
        "chance explains up to {baseline}."
    )
    max_records = _MAX_ROWS
    must_notice: ClassVar[Mapping[str, float]] = {"hidden digits": 0.85}

    def compare(self, comparison: ReleaseComparison) -> tuple[float, float]:
        return find_strongest_dependence(self.name, comparison)


def find_strongest_dependence(name: str, comparison: ReleaseComparison) -> tuple[float, float]:
    """Return the strongest dependence, and what chance explains."""
    check_comparison(name, comparison)
    if comparison.cells is None or bool((comparison.records < 0).any()):
        raise NotApplicable(
            f"{name} needs a released file whose rows belong to records.",
            reason=Reason.NO_ALIGNMENT,
        )
    rows = sample_indices(len(comparison.cells), _MAX_ROWS, comparison.rng(name))
    if len(rows) < _MIN_ROWS:
        raise NotApplicable(f"{name} needs {_MIN_ROWS} rows.", reason=Reason.TOO_FEW_RECORDS)
    X = comparison.X[comparison.records[rows]]
    cells, label = comparison.cells[rows], comparison.row_label[rows]
    bins = 8 if len(rows) >= 800 else 4
    B = encode_bins(X, bins)
    chance = bound_dependence(len(rows), _DIGITS, bins)
    found = [(0.0, chance), *compare_zero_signs(cells, B, bins)]
    by_unit = find_fine_parts(X, cells, label)
    units = [columns for (kind, _), columns in by_unit.items() if kind != _RELATIVE]
    fine = [part for columns in units for part in columns.values()]
    for sums in list_row_sums(comparison, rows):
        fine.extend(find_fine_sums(X, sums, label))
    if fine:
        parts = np.column_stack(fine)
        found.append((compute_dependence(encode_bins(parts, bins), B, (bins, bins)), chance))
        found.append((compute_dependence(encode_digits(parts), B, (_DIGITS, bins)), chance))
    if X.shape[1] == cells.shape[1]:
        share = compute_share_of_following_rows(X, list(by_unit.values()))
        found.append((share, _MAX_CHANCE_ROWS / len(rows)))
    return max(found, key=lambda pair: pair[0] - pair[1])


def bound_dependence(n: int, a: int, b: int) -> float:
    """Return the dependence of a table of a x b cells that chance exceeds almost never."""
    freedom = (a - 1) * (b - 1)
    statistic = freedom + _MAX_DEVIATIONS * math.sqrt(2.0 * freedom)
    return min(1.0, statistic / (n * (min(a, b) - 1)))


def compare_zero_signs(cells: Floats, B: Floats, bins: int) -> Iterator[tuple[float, float]]:
    """Yield the dependence of the signs of zeros on original values, and what chance explains."""
    for y in cells.T:
        zeros = np.flatnonzero(y == 0)
        signs = np.signbit(y[zeros])
        if min(signs.sum(), (~signs).sum()) >= _MIN_SIGNED_ZEROS:
            P = np.column_stack([signs, ~signs]).astype(np.float64)
            dependence = compute_dependence(P, B[zeros], (2, bins))
            yield dependence, bound_dependence(len(zeros), 2, bins)


def compute_share_of_following_rows(X: Floats, units: Sequence[Mapping[int, Floats]]) -> float:
    """Return the share of rows whose fine parts follow the values of their record.

    The parts of one unit are correlated with the record's places in the range, and in the order,
    of each column. A correlation counts where it is far less probable by chance than any between
    rows and records of other rows. Parts that equal the place in the range count in any column.
    """
    following = np.zeros(len(X), bool)
    spread = np.ptp(X, axis=0)
    in_range = (X - X.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    in_order = compute_ranks(X)
    for columns in units:
        chosen = [j for j in columns if spread[j] > 0]
        if not chosen:
            continue
        parts = np.column_stack([columns[j] for j in chosen])
        following |= find_equal_parts(parts, in_range[:, chosen])
        if len(chosen) < _MIN_ROW_CELLS:
            continue
        U = scale_lines(parts)
        for places in (in_range, in_order):
            V = scale_lines(places[:, chosen])
            by_chance = [score_correlation(U, np.roll(V, k, axis=0)).max() for k in _SHIFTS]
            limit = max(math.log(len(X)), *by_chance) + _CHANCE_MARGIN
            following |= score_correlation(U, V) > limit
    return float(following.mean())


def scale_lines(Z: Floats) -> Floats:
    """Return rows of mean 0 and length 1; constant ones become 0."""
    centred = Z - Z.mean(axis=1, keepdims=True)
    length = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    return np.asarray(centred / np.where(length > 0, length, 1.0)[:, None])


def score_correlation(U: Floats, V: Floats) -> Floats:
    """Return minus the logarithm of how probable each row's correlation is by chance; (n,).

    Rows have mean 0 and length 1.
    """
    r2 = np.einsum("ij,ij->i", U, V) ** 2
    # The exponent is that of normal parts; the limit is taken from the parts as they are.
    return np.asarray((1.0 - U.shape[1] / 2.0) * np.log(np.maximum(1.0 - r2, _LEAST_LEFT)))


def find_fine_parts(
    X: Floats, cells: Floats, label: Codes
) -> dict[tuple[str, int], dict[int, Floats]]:
    """Return the parts of released values finer than their noise, in [0, 1), by unit and column."""
    noise = measure_least_noise(X, cells, label)
    found: dict[tuple[str, int], dict[int, Floats]] = {}

    def add(unit: tuple[str, int], column: int, part: Floats) -> None:
        if np.ptp(part) > 0:
            found.setdefault(unit, {})[column] = part

    for column, (y, spread) in enumerate(zip(cells.T, noise.tolist(), strict=True)):
        counts = np.unique(y, return_counts=True)[1]
        if not spread > 0 or counts.max() > _MAX_REPEATED_SHARE * len(y):
            continue
        size = np.abs(y).max()
        first = math.floor(math.log10(spread / _MIN_NOISE_UNITS))
        for power in range(first, first - _MAX_DECIMALS, -1):
            # Digits near the precision of the largest value differ with the size of a value.
            if 10.0**power >= size * _MIN_RELATIVE_UNIT:
                part = np.mod(y / 10.0**power, 1.0)
                add(("decimal", power), column, part)
                add((_RELATIVE, first - power), column, part)
        bits = np.ascontiguousarray(y).view(np.uint64)
        for count in _MANTISSA_BITS:
            if size * 2.0 ** (count - 52) * _MIN_NOISE_UNITS <= spread:
                add(("bits", count), column, (bits & np.uint64(2**count - 1)) / 2.0**count)
    return found


def find_fine_sums(X: Floats, sums: Floats, label: Codes) -> Iterator[Floats]:
    """Yield the parts of the sums of rows finer than their noise, in [0, 1)."""
    noise = float(measure_least_noise(X, sums[:, None], label)[0])
    if not noise > 0:
        return
    first = math.floor(math.log10(noise / _MIN_SUM_UNITS))
    for power in range(first, first - _SUM_DECIMALS, -1):
        part = np.mod(sums / 10.0**power, 1.0)
        if np.ptp(part) > 0:
            yield part


def list_row_sums(comparison: ReleaseComparison, rows: Ints) -> Iterator[Floats]:
    """Yield the sums of rows: as released, and in deviations of the original columns."""
    assert comparison.cells is not None
    yield comparison.cells[rows].sum(axis=1)
    if comparison.has_same_columns:
        X, spread = comparison.X, comparison.X.std(axis=0)
        varying = spread > 0
        yield ((comparison.Y[rows] - X.mean(axis=0)) / np.where(varying, spread, 1.0)).sum(
            axis=1, where=varying
        )


def measure_least_noise(X: Floats, cells: Floats, label: Codes) -> Floats:
    """Return the noise of each released column, in the class in which it has the least spread.

    The digits of a nearly constant class are those of its mean, and say no more of a record than
    its class.
    """
    codes, counts = np.unique(label, return_counts=True)
    classes = codes[counts >= _MIN_CLASS_ROWS] if counts.max() >= _MIN_CLASS_ROWS else codes
    spreads = [cells[label == code].std(axis=0) for code in classes]
    return np.asarray(np.minimum(measure_noise(X, cells), np.min(spreads, axis=0)))


def measure_noise(X: Floats, cells: Floats) -> Floats:
    """Return the deviation of each released column around a linear map of the original.

    Where noise grows with the value, that of the rows with the least noise counts.
    """
    centred = cells - cells.mean(axis=0)
    A = np.column_stack([np.ones(len(X)), X])
    left = np.abs(centred - A @ np.linalg.lstsq(A, centred, rcond=None)[0])
    noise = np.sqrt((left**2).mean(axis=0))
    left[:, ~left.any(axis=0)] = 1.0  # no noise: the deviation above counts
    least = np.nanquantile(np.where(left > 0, left, np.nan), _LEAST_SHARE, axis=0)
    noise = np.minimum(noise, least / _LEAST_NORMAL)
    return np.where(noise > 1e-9 * np.abs(cells).max(axis=0), noise, 0.0)


def compute_dependence(P: Floats, Q: Floats, sizes: tuple[int, int]) -> float:
    """Return the largest Cramer's V squared between two sets of indicators of equal sizes."""
    n = len(P)
    expected = n * np.outer(P.sum(axis=0) / n, Q.sum(axis=0) / n)
    terms = np.divide((P.T @ Q - expected) ** 2, expected, where=expected > 0, out=0.0 * expected)
    a, b = sizes
    table = terms.reshape(P.shape[1] // a, a, Q.shape[1] // b, b).sum(axis=(1, 3))
    # Equal digits fill fewer cells than equal ranks; the smaller side bounds the statistic.
    return float(table.max() / (n * (min(a, b) - 1)))


def encode_digits(parts: Floats) -> Floats:
    """Return one indicator column for each value of the first decimal digit of each column."""
    digit = np.floor(parts * _DIGITS + _DIGIT_ROUNDING).astype(np.int64) % _DIGITS
    return np.asarray(digit[:, :, None] == np.arange(_DIGITS), np.float64).reshape(len(parts), -1)


def encode_bins(Z: Floats, bins: int) -> Floats:
    """Return one indicator column for each bin of each column; bins hold equally many rows."""
    place: Ints = np.minimum(compute_ranks(Z) * bins, bins - 1).astype(np.int64)
    return np.asarray(place[:, :, None] == np.arange(bins), np.float64).reshape(len(Z), -1)


def compute_ranks(Z: Floats) -> Floats:
    """Return the place of each value in the order of its column, in (0, 1)."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(Z, method="average", axis=0) - 0.5) / len(Z))

"""Look for original columns that the order of the released rows gives away."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.numerics.decompositions import decompose_singular, decompose_symmetric
from ppdm_core.numerics.distances import compute_squared_distances
from ppdm_core.two_tables.tables import Table

MIN_ROWS = 20
MAX_COMPARED_ROWS = 5_000
MAX_DEVIATIONS = 6.8  # of a rank correlation by chance: one in 1e11
MAX_MEAN_DEVIATIONS = 4.2  # of a mean over columns: one in 75,000 for each order that is tried
MAX_ARRANGED_DEVIATIONS = 5.0  # the same for further orders, of which there are more: one in 3e6
MAX_PILES = 10  # that sorted rows may be dealt into
MIN_CORRELATION = 0.1  # a weaker trend places nobody
UNIFORM_PEAK = 3.0  # largest product of two uniform ranks of mean 0 and deviation 1
MAX_PEAK = 3.5  # of columns that count in the weighted mean; more in tables above 1,225 rows
SHUFFLES = 200
MIN_TREND_ROWS, MAX_WAVES = 100, 24
MAX_TREND_PROBABILITY = 1e-8  # of a trend by chance, for each number of waves
MAX_LAG = 10  # places between rows that are compared
MAX_SERIAL_DEVIATIONS = 6.0  # of their mean product: one in 1e9
MAX_COMPONENTS = 5  # principal components that rows may be sorted by
CURVE_BITS = 4  # of each column
MAX_TOUR_ROWS = 3_000


def find_sorted_columns(original: Table, label: str | None) -> list[str]:
    """Return the numeric columns that rise or fall along the rows of the original."""
    columns = list_complete_columns(original, label)
    if original.n < MIN_ROWS or not columns:
        return []
    R = standardise_ranks(original.numbers(columns))
    position = standardise_ranks(np.arange(original.n, dtype=np.float64)[:, None])
    correlation = np.abs(R.T @ position).ravel() / original.n
    peaks = np.abs(R).max(axis=0) * np.abs(position).max()
    is_sorted = correlation >= compute_least_correlation(original.n, peaks)
    return [name for name, each in zip(columns, is_sorted, strict=True) if each]


def find_revealed_orders(original: Table, released: Table, label: str | None) -> Iterator[str]:
    """Yield by what of the original the released rows were sorted.

    If rows are sorted by a column, rising or falling, then row i belongs to the record with rank
    i, and released values depend on those of that record. A release that is sorted by one of its
    own columns follows any trend; then only differences between adjacent rows are compared, in
    its other columns.
    """
    ours, theirs = (list_complete_columns(table, label) for table in (original, released))
    n, m = original.n, released.n
    if min(n, m) < MIN_ROWS or not ours or not theirs:
        return
    X, Y = original.numbers(ours), released.numbers(theirs)
    is_sorted = find_monotone_columns(Y)
    if is_sorted.all():
        return
    theirs = [name for name, each in zip(theirs, is_sorted, strict=True) if not each]
    rows = np.arange(m)
    correlate = correlate_differences
    R, S = standardise_ranks(X), Y[:, ~is_sorted]
    if not is_sorted.any():
        # Ranks of records in another order are the same ranks; some of many rows suffice.
        rows, correlate = rows[:: -(-m // MAX_COMPARED_ROWS)], correlate_columns
        S = standardise_ranks(S[rows])
    else:
        S = difference_ranks(S)
    peaks = np.outer(np.abs(R).max(axis=0), np.abs(S).max(axis=0))  # (ours, theirs)
    least = compute_least_correlation(len(rows), peaks)
    place: Ints = np.minimum(rows * n // m, n - 1)  # rank of the record of each row
    weights = weigh_pairs(original, released, ours, theirs)
    spread = measure_chance(R[place], S, correlate, weights)
    for name, x in list_order_keys(ours, X):
        order = np.argsort(x, kind="stable")
        for arranged, most in list_arrangements(order):
            correlation = correlate(R[arranged[place]], S)
            own = float((weights * correlation).sum())
            if (np.abs(correlation) >= least).any() or own > most * spread:
                yield name
                break


def has_position_trend(table: Table, label: str | None) -> bool:
    """Return whether the values of a table depend on the position of their row.

    Columns are made uncorrelated first. Slow waves along the rows are compared with all columns:
    in a random order, the squared coefficients add up to a chi-square variable. Rows are compared
    with rows a few places further, and with the row at the same place from the end: in a random
    order, the mean product is nearly normal. A table that is sorted by one of its own columns has
    no other order to give away.
    """
    from scipy.special import chdtrc

    columns, n = list_complete_columns(table, label), table.n
    if n < MIN_TREND_ROWS or not columns:
        return False
    A = table.numbers(columns)
    if find_monotone_columns(A).any():
        return False
    Z = remove_correlations(standardise_ranks(A))
    waves = np.cos(np.pi / n * (np.arange(n)[:, None] + 0.5) * np.arange(1, MAX_WAVES + 1))
    energy = np.cumsum(((np.sqrt(2.0 / n) * waves.T @ Z) ** 2).sum(axis=1))  # (waves,)
    freedom = Z.shape[1] * np.arange(1, MAX_WAVES + 1)
    if bool((chdtrc(freedom, energy) < MAX_TREND_PROBABILITY).any()):
        return True
    return max(measure_serial_products(Z)) > MAX_SERIAL_DEVIATIONS


def measure_serial_products(Z: Floats) -> Iterator[float]:
    """Yield the mean product of rows that are near in the order, in deviations by chance."""
    n, d = Z.shape
    pairs = [(Z[:-lag], Z[lag:]) for lag in range(1, MAX_LAG + 1)]
    for A, B in (*pairs, (Z[: n // 2], Z[: n - n // 2 - 1 : -1])):
        # Each row has the mean product -1 / (n - 1) per column with another row.
        products = (A * B).sum(axis=1)
        yield float(products.sum() + len(A) * d / (n - 1)) / math.sqrt(len(A) * d)


def remove_correlations(R: Floats) -> Floats:
    """Return uncorrelated columns of deviation 1 that span the same space."""
    values, vectors = decompose_symmetric(R.T @ R / len(R))
    keep = values > 1e-6 * values.max()
    return np.asarray(R @ vectors[:, keep] / np.sqrt(values[keep]))


def list_arrangements(order: Ints) -> Iterator[tuple[Ints, float]]:
    """Yield the records rising, falling, from both ends in turn, and dealt into some piles.

    With each, the deviation of the mean over columns that chance hardly reaches.
    """
    yield from ((direction, MAX_MEAN_DEVIATIONS) for direction in (order, order[::-1]))
    yield from ((each, MAX_ARRANGED_DEVIATIONS) for each in list_rearranged(order))


def list_rearranged(order: Ints) -> Iterator[Ints]:
    """Yield sorted records from both ends in turn, and dealt into two piles or more."""
    for direction in (order, order[::-1]):
        ends = np.empty_like(direction)
        half = -(-len(order) // 2)
        ends[::2], ends[1::2] = direction[:half], direction[half:][::-1]
        yield ends
        yield np.concatenate([direction[::2], direction[1::2][::-1]])
        for piles in range(2, MAX_PILES + 1):
            yield np.concatenate([direction[first::piles] for first in range(piles)])


def weigh_pairs(original: Table, released: Table, ours: list[str], theirs: list[str]) -> Floats:
    """Return the weights of correlations of columns with the same name; (ours, theirs).

    A column with little noise counts more: the weight is its spread before by that after. Columns
    of rare values do not count, because a few coincidences make a large correlation.
    """
    weights = np.zeros((len(ours), len(theirs)))
    most = max(MAX_PEAK, math.sqrt(min(original.n, released.n)) / 10)
    for j, name in enumerate(theirs):
        if name in ours:
            cells = [each.columns[name].astype(np.float64) for each in (original, released)]
            peaks = [np.abs(standardise_ranks(each[:, None])).max() for each in cells]
            if peaks[0] * peaks[1] <= most:
                before, after = (float(np.std(each)) for each in cells)
                weights[ours.index(name), j] = before / max(before, after, 1e-300)
    return weights


def measure_chance(
    R: Floats, S: Floats, correlate: Callable[[Floats, Floats], Floats], weights: Floats
) -> float:
    """Return the deviation of the weighted correlation when records are in random orders."""
    if not weights.any():
        return math.inf
    rng = np.random.default_rng(len(R))
    sums = [float((weights * correlate(rng.permutation(R), S)).sum()) for _ in range(SHUFFLES)]
    return math.sqrt(float(np.sum(np.square(sums))) / (SHUFFLES - 2))


def list_order_keys(names: list[str], X: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield by what rows may be sorted: a column, or a figure of the complete record."""
    yield from ((f"'{name}'", x) for name, x in zip(names, X.T, strict=True))
    unit = X / np.abs(X).max(axis=0)  # squares of tiny numbers would vanish
    for A in (X / np.abs(X).max(), (unit - unit.mean(axis=0)) / unit.std(axis=0)):
        yield "the sum of a record", A.sum(axis=1)
        yield "the length of a record", np.linalg.norm(A, axis=1)
        components = decompose_singular(A - A.mean(axis=0))[2]
        for direction in components[:MAX_COMPONENTS]:
            yield "a component of the records", A @ direction
    yield "a curve through the records", place_on_curve(X)
    if len(X) <= MAX_TOUR_ROWS:
        yield "a tour of the nearest records", place_on_tour(standardise(unit))


def place_on_curve(X: Floats) -> Floats:
    """Return the place of each record on the Z-order curve: the first bits of all ranks first."""
    from scipy.stats import rankdata

    code = (rankdata(X, axis=0, method="min").astype(np.int64) - 1) * 2**CURVE_BITS // len(X)
    bits = np.hstack([code >> (CURVE_BITS - 1 - k) & 1 for k in range(CURVE_BITS)])
    return np.argsort(np.lexsort(bits[:, ::-1].T)).astype(np.float64)


def place_on_tour(Z: Floats) -> Floats:
    """Return the place of each record on a tour that always goes on to the nearest one.

    It begins with the record that is farthest from the centre.
    """
    square = compute_squared_distances(Z, Z)
    here, place = int((Z**2).sum(axis=1).argmax()), np.empty(len(Z))
    for step in range(len(Z)):
        place[here], square[:, here] = step, np.inf
        here = int(square[here].argmin())
    return place


def find_monotone_columns(Y: Floats) -> Bools:
    """Return which columns never fall or never rise along the rows."""
    steps = np.diff(Y, axis=0)
    return np.asarray((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0))


def correlate_columns(A: Floats, S: Floats) -> Floats:
    """Return the correlations of columns with columns of mean 0 and deviation 1."""
    spread = np.sqrt(np.einsum("ij,ij->j", A, A) / len(A) - A.mean(axis=0) ** 2)
    return np.asarray((A.T @ S) / (len(A) * np.maximum(spread, 1e-300))[:, None])


def correlate_differences(A: Floats, S: Floats) -> Floats:
    """Return the correlations of the differences between adjacent rows, as ranks, with ``S``."""
    return np.asarray(difference_ranks(A).T @ S / len(S))


def difference_ranks(A: Floats) -> Floats:
    """Return the ranks of the differences between adjacent rows."""
    return standardise_ranks(np.diff(standardise_ranks(A), axis=0))


def compute_least_correlation(n: int, peaks: Floats) -> Floats:
    """Return the smallest rank correlations that chance does not explain and that place persons.

    ``peaks``: the largest product of two values of each pair of columns. Ranks without ties have
    nearly normal correlations. Of rare values a few coincidences make a large correlation; the
    bound for them is that of Bernstein, with the part of the peak above that of uniform ranks.
    """
    rarity = MAX_DEVIATIONS**2 / 6 * np.maximum(peaks - UNIFORM_PEAK, 0.0)
    bound = (rarity + np.sqrt(rarity**2 + MAX_DEVIATIONS**2 * n)) / (n - 1)
    return np.maximum(MIN_CORRELATION, bound)


def list_complete_columns(table: Table, label: str | None) -> list[str]:
    """Return the numeric columns without empty cells that vary, except the label."""
    return [
        name
        for name in table.numeric()
        if name != label
        and np.isfinite(table.columns[name]).all()
        and np.ptp(table.columns[name]) > 0
    ]


def standardise_ranks(A: Floats) -> Floats:
    """Return the ranks of each column with mean 0 and deviation 1."""
    from scipy.stats import rankdata

    return standardise(rankdata(A, axis=0))


def standardise(A: Floats) -> Floats:
    """Return columns with mean 0 and deviation 1; constant ones become 0."""
    centred = A - A.mean(axis=0)
    return np.asarray(centred / np.maximum(centred.std(axis=0), 1e-300))

"""Rows that hold more values of one record than chance explains, with values that others share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._gamma_tail import fit_gamma
from ppdm_core.metrics._release import sample_indices
from ppdm_core.model.arrays import Bools, Floats, Ints

MAX_VALUE_SHARE = 0.02  # of the rows: a value that more of them hold tells little
_LEAST_SHARE = 0.25  # of the columns: a row must hold more than these of a record
_LEAST_RECORDS = 3  # one or two records may be equal to a row by chance
_MAX_CANDIDATES = 1_000  # rows that are compared with all records
_MAX_CHANCE_ROWS = 500  # rows drawn by chance, which are compared as well
_BLOCK = 200_000  # cells compared at a time: more do not fit into the cache
_CHANCE_FACTOR = 2.0  # a release may agree so many times oftener than rows drawn by chance
_UNSEEN = 3.0  # what is expected less often than this may not be seen at all
# How values count, and by how much the logarithm of an unseen share falls for each unit of it.
_DECAYS = {"rare": 0.25, "information": 0.25, "number": 0.7}
_PROBABILITY = 1e-6  # of a false alarm


@dataclass(frozen=True)
class Cells:
    """Cells of a table as codes, and how much each of them tells about a record."""

    codes: Ints  # (n, d) equal values of a column have the same one in all tables
    weight: Floats  # (n, d) minus the logarithm of the share of records with this value
    is_rare: Bools  # (n, d) few rows of the release hold this value

    def take(self, rows: Ints) -> Cells:
        """Return some of the rows."""
        return Cells(self.codes[rows], self.weight[rows], self.is_rare[rows])


def find_equal_cells(X: Floats, Y: Floats, rng: np.random.Generator) -> tuple[Bools, Ints]:
    """Return the rows that hold many values of one record, and that record.

    A row is found if it shares more values with a record than chance explains, in more than a
    quarter of the columns. Chance is what is larger: how well records agree with each other, or how
    well rows agree with records when the cells of each column are exchanged. Values are compared in
    three ways: those that few rows hold, by their information; all, by their information; and all,
    by their number. In the last two, chance is also how well most rows agree.

    Of many rows, those are compared with all records that share most pairs of values with any. At
    least three records must be found, because one or two may be equal to a row by chance.
    """
    m, d = Y.shape
    found, record = np.zeros(m, dtype=np.bool_), np.full(m, -1, dtype=np.int64)
    if d < 2 or len(X) < 2:
        return found, record
    records, released = encode_cells(X, Y)
    candidates = np.flatnonzero((released.weight > 0).sum(axis=1) > _LEAST_SHARE * d)
    if not len(candidates):
        return found, record
    shared = sum_shared_pairs(records, released.take(candidates))
    order = np.lexsort((rng.random(len(candidates)), -shared))
    rows = np.sort(candidates[order[:_MAX_CANDIDATES]])
    chance_rows = draw_chance_rows(records, released, rng)
    for how in _DECAYS:
        score, nearest = match_rows(released.take(rows), records, how)
        expected = estimate_chance(score, chance_rows, records, (m, len(candidates)), how)
        equal = (released.codes[rows] == records.codes[nearest]) & (released.weight[rows] > 0)
        score = np.where(equal.sum(axis=1) > _LEAST_SHARE * d, score, 0.0)
        surprising = find_surprising(score, nearest, expected)
        found[rows[surprising]], record[rows[surprising]] = True, nearest[surprising]
    return found, record


def encode_cells(X: Floats, Y: Floats) -> tuple[Cells, Cells]:
    """Return the cells of both tables; in each, a value weighs by how many *other* records hold it.

    A released value that no record holds weighs nothing.
    """
    n, m = len(X), len(Y)
    codes = np.empty((n + m, X.shape[1]), dtype=np.int64)
    weight, is_rare = np.empty(codes.shape), np.empty(codes.shape, dtype=np.bool_)
    for j in range(X.shape[1]):
        _, code = np.unique(np.concatenate([X[:, j], Y[:, j]]), return_inverse=True)
        ours, theirs = (
            np.bincount(part, minlength=code.max() + 1) for part in (code[:n], code[n:])
        )
        codes[:, j] = code
        weight[:n, j] = np.log(n / np.maximum(ours - 1, 1))[code[:n]]
        weight[n:, j] = np.where(ours > 0, np.log(n / np.maximum(ours, 1)), 0.0)[code[n:]]
        is_rare[:, j] = (theirs <= MAX_VALUE_SHARE * m + 1)[code]
    return (
        Cells(codes[:n], weight[:n], is_rare[:n]),
        Cells(codes[n:], weight[n:], is_rare[n:]),
    )


def sum_shared_pairs(records: Cells, rows: Cells) -> Floats:
    """Return how much information pairs of values of each row share with any record."""
    n, d = records.codes.shape
    found = np.zeros(len(rows.codes))
    for j in range(d):
        k = (j + 1) % d
        size = int(max(records.codes[:, k].max(), rows.codes[:, k].max())) + 1
        ours = np.sort(records.codes[:, j] * size + records.codes[:, k])
        theirs = rows.codes[:, j] * size + rows.codes[:, k]
        count = np.searchsorted(ours, theirs, "right") - np.searchsorted(ours, theirs, "left")
        found += np.where(count > 0, np.log(n / np.maximum(count, 1)), 0.0)
    return found


def match_rows(
    rows: Cells, records: Cells, how: str, own: Ints | None = None
) -> tuple[Floats, Ints]:
    """Return how much each row shares with one record at most, and that record.

    ``own`` is the record of each row that is left out.
    """
    most, nearest = np.zeros(len(rows.codes)), np.zeros(len(rows.codes), dtype=np.int64)
    weights = rows.weight
    if how != "information":
        weights = np.where(rows.is_rare, weights, 0.0) if how == "rare" else np.sign(weights)
    n, size = len(records.codes), max(1, _BLOCK // len(records.codes))
    columns = [np.ascontiguousarray(column, dtype=np.int32) for column in records.codes.T]
    codes, weights = rows.codes.astype(np.int32), weights.astype(np.float32)
    equal, shared = np.empty((size, n), dtype=np.bool_), np.empty((size, n), dtype=np.float32)
    for start in range(0, len(codes), size):
        part = slice(start, start + size)
        count = len(codes[part])
        agree = np.zeros((count, n), dtype=np.float32)
        for j, column in enumerate(columns):
            np.equal(codes[part, j, None], column, out=equal[:count])
            agree += np.multiply(equal[:count], weights[part, j, None], out=shared[:count])
        if own is not None:
            agree[np.arange(count), own[part]] = 0.0
        nearest[part] = agree.argmax(axis=1)
        most[part] = agree.max(axis=1)
    return most, nearest


@dataclass(frozen=True)
class ChanceRows:
    """Rows that show how well rows and records agree by chance."""

    records: Ints  # some of the records, which are compared with the others
    mixed: Cells  # rows of the release whose cells were exchanged within each column
    released: Cells  # some rows of the release


def draw_chance_rows(records: Cells, released: Cells, rng: np.random.Generator) -> ChanceRows:
    """Draw rows that agree with records by chance."""
    m, d = released.codes.shape
    some = rng.integers(0, m, (min(m, _MAX_CHANCE_ROWS), d))
    columns = np.arange(d)
    mixed = Cells(
        released.codes[some, columns],
        released.weight[some, columns],
        released.is_rare[some, columns],
    )
    chosen = sample_indices(len(records.codes), _MAX_CHANCE_ROWS, rng)
    return ChanceRows(chosen, mixed, released.take(sample_indices(m, _MAX_CHANCE_ROWS, rng)))


def estimate_chance(
    score: Floats, chance: ChanceRows, records: Cells, counts: tuple[int, int], how: str
) -> Floats:
    """Return how many rows reach each score by chance; ``counts`` are all rows, and candidates."""
    m, candidates = counts
    of_records, _ = match_rows(records.take(chance.records), records, how, chance.records)
    of_mixed, _ = match_rows(chance.mixed, records, how)
    expected = np.maximum(
        candidates * extend_share(of_records, score, _DECAYS[how]),
        m * extend_share(of_mixed, score, _DECAYS[how]),
    )
    if how != "rare":
        of_rows, _ = match_rows(chance.released, records, how)
        expected = np.maximum(expected, m * fit_share(of_rows, score))
    return np.asarray(_CHANCE_FACTOR * expected)


def extend_share(by_chance: Floats, levels: Floats, decay: float) -> Floats:
    """Return an upper bound of the share of rows drawn by chance that reach each level.

    It falls slowly above the highest levels that were seen.
    """
    ordered = np.sort(by_chance)
    seen = len(by_chance) - np.searchsorted(ordered, levels, side="left")
    last = ordered[-min(len(ordered), int(_UNSEEN))]
    share = np.minimum(1.0, (seen + _UNSEEN) / len(by_chance))
    return np.asarray(share * np.exp(-decay * np.maximum(0.0, levels - last)))


def fit_share(scores: Floats, levels: Floats) -> Floats:
    """Return the share of rows that reach each level, of a gamma distribution of most scores.

    It is fitted to the median and the 90th percentile; 0 if half of the rows agree with no record.
    """
    from scipy.special import gammaincc

    middle, high = np.quantile(scores, (0.5, 0.9)).tolist()
    shape, scale = fit_gamma(middle, high) if 0 < middle < high else (0.0, 1.0)
    return np.asarray(gammaincc(shape, levels / scale)) if shape > 0 else np.zeros(len(levels))


def find_surprising(score: Floats, record: Ints, expected: Floats) -> Bools:
    """Return the rows down to the last score that too many different records reach by chance."""
    from scipy.special import pdtrc

    order = np.argsort(-score, kind="stable")
    is_new = np.zeros(len(score), dtype=np.int64)
    is_new[np.unique(record[order], return_index=True)[1]] = 1
    seen = np.cumsum(is_new)
    rare = (seen >= _LEAST_RECORDS) & (pdtrc(seen - 1, expected[order]) < _PROBABILITY)
    rare &= score[order] > 0
    found = np.zeros(len(score), dtype=np.bool_)
    if rare.any():
        found[order[: int(np.flatnonzero(rare)[-1]) + 1]] = True
    return found

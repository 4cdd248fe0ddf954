"""Rows that agree with one record in more cells than chance explains, with shared values too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._release import sample_indices
from ppdm_core.model.arrays import Bools, Floats, Ints

_MAX_VALUE_SHARE = 0.02  # of the rows: a value that more of them hold identifies nobody
_MAX_ROWS = 2_000  # that are compared with all records
_BLOCK = 10_000_000  # cells compared at a time
_CHANCE_FACTOR = 2.0  # a row may agree so many times oftener than the rows of the null do
_UNSEEN = 3.0  # events that are expected less often may not be seen at all
_DECAY = 0.25  # of the logarithm of an unseen share, for each unit of information
_LEAST = 3  # records: fewer may have a twin
_PROBABILITY = 1e-6  # of a false alarm


@dataclass(frozen=True)
class EqualCells:
    """Values of both tables as codes: equal values of a column have the same one."""

    X: Ints  # (n, d)
    Y: Ints  # (m, d)
    weight_X: Floats  # information in a cell: by how many other records hold its value
    weight_Y: Floats  # by how many records hold its value; 0 if none does, or many rows


def find_equal_cells(X: Floats, Y: Floats, rng: np.random.Generator) -> tuple[Bools, Ints]:
    """Return the rows that agree with one record more often than chance explains, and that record.

    Each equal cell counts by its information. Chance is the larger one of two: how well records
    agree with each other, for each row that holds original values; and how well rows agree with
    records when the cells of each column are exchanged.
    """
    m, d = Y.shape
    found, record = np.zeros(m, dtype=np.bool_), np.full(m, -1, dtype=np.int64)
    if d < 2 or len(X) < 2:
        return found, record
    cells = encode_cells(X, Y)
    candidates = np.flatnonzero((cells.weight_Y > 0).sum(axis=1) >= 2)
    weights = cells.weight_Y[candidates].sum(axis=1)
    order = np.lexsort((rng.random(len(candidates)), -weights))
    rows = np.sort(candidates[order[:_MAX_ROWS]])
    if not len(rows):
        return found, record
    score, record[rows] = match_rows(cells.Y[rows], cells.weight_Y[rows], cells.X)
    of_records, of_mixed = draw_chance_scores(cells, rng)
    expected = _CHANCE_FACTOR * np.maximum(
        len(candidates) * extend_share(of_records, score), m * extend_share(of_mixed, score)
    )
    order = np.argsort(-score, kind="stable")
    seen = count_different(record[rows[order]])  # a record in many rows is one event
    surprising = (seen >= _LEAST) & is_surprising(seen, expected[order])
    if surprising.any():
        found[rows[order[: int(np.flatnonzero(surprising)[-1]) + 1]]] = True
    return found, record


def encode_cells(X: Floats, Y: Floats) -> EqualCells:
    """Return the cells as codes, and how much each one tells about a record."""
    n, m = len(X), len(Y)
    codes = np.empty((n + m, X.shape[1]), dtype=np.int64)
    weight = np.empty(codes.shape)
    for j in range(X.shape[1]):
        _, code = np.unique(np.concatenate([X[:, j], Y[:, j]]), return_inverse=True)
        ours, theirs = (
            np.bincount(part, minlength=code.max() + 1) for part in (code[:n], code[n:])
        )
        tells = (ours > 0) & (theirs <= _MAX_VALUE_SHARE * m + 1)
        codes[:, j] = code
        weight[n:, j] = np.where(tells, np.log(n / np.maximum(ours, 1)), 0.0)[code[n:]]
        weight[:n, j] = np.where(tells, np.log(n / np.maximum(ours - 1, 1)), 0.0)[code[:n]]
    return EqualCells(codes[:n], codes[n:], weight[:n], weight[n:])


def match_rows(
    rows: Ints, weights: Floats, records: Ints, own: Ints | None = None
) -> tuple[Floats, Ints]:
    """Return for each row the information in which it agrees with one record at most, and which.

    ``own`` is the record of each row that is left out.
    """
    most, nearest = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
    size = max(1, _BLOCK // len(records))
    columns = np.ascontiguousarray(records.T)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        agree = np.zeros((len(rows[part]), len(records)), dtype=np.float32)
        for j, column in enumerate(columns):
            agree += (rows[part, j, None] == column) * weights[part, j, None].astype(np.float32)
        if own is not None:
            agree[np.arange(len(agree)), own[part]] = 0.0
        nearest[part] = agree.argmax(axis=1)
        most[part] = agree.max(axis=1)
    return most, nearest


def draw_chance_scores(cells: EqualCells, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return how well records agree with another record, and exchanged cells of rows with one."""
    chosen = sample_indices(len(cells.X), _MAX_ROWS, rng)
    of_records, _ = match_rows(cells.X[chosen], cells.weight_X[chosen], cells.X, own=chosen)
    rows = sample_indices(len(cells.Y), _MAX_ROWS, rng)
    places = rng.permuted(np.broadcast_to(np.arange(len(cells.Y)), cells.Y.T.shape), axis=1).T
    mixed = np.take_along_axis(cells.Y, places, 0)[rows]
    weights = np.take_along_axis(cells.weight_Y, places, 0)[rows]
    of_mixed, _ = match_rows(mixed, weights, cells.X)
    return of_records, of_mixed


def extend_share(null: Floats, levels: Floats) -> Floats:
    """Return an upper bound of the share of the null that reaches each level.

    It falls slowly above the highest levels that were seen.
    """
    ordered = np.sort(null)
    seen = len(null) - np.searchsorted(ordered, levels, side="left")
    last = ordered[-min(len(ordered), int(_UNSEEN))]
    share = np.minimum(1.0, (seen + _UNSEEN) / len(null))
    return np.asarray(share * np.exp(-_DECAY * np.maximum(0.0, levels - last)))


def count_different(values: Ints) -> Ints:
    """Return how many different values occur up to each place."""
    is_first = np.zeros(len(values), dtype=np.int64)
    is_first[np.unique(values, return_index=True)[1]] = 1
    return np.cumsum(is_first)


def is_surprising(seen: Ints, expected: Floats) -> Bools:
    """Return whether so many events are too many by chance."""
    from scipy.special import pdtrc

    return np.asarray(pdtrc(seen - 1, expected) < _PROBABILITY)

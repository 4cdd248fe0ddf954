"""Whether an audit would notice that released rows are in an order of the original."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.two_tables.row_order import (
    MAX_ARRANGED_DEVIATIONS,
    MAX_COMPARED_ROWS,
    MIN_ROWS,
    correlate_columns,
    list_complete_columns,
    measure_chance,
    standardise,
    standardise_ranks,
    weigh_pairs,
)
from ppdm_core.two_tables.tables import Table

MAX_TIED_SHARE = 0.01  # of adjacent rows in the column that rows are sorted by
MIN_POWER_DEVIATIONS = 2.0  # by which a sorted release must exceed the limit: 98 of 100 do
TRIALS = 5


def is_order_certain(original: Table, released: Table, label: str | None) -> bool:
    """Return whether the rows can have no order by the original that is not noticed.

    Rows that are sorted by a released column have no other order. Otherwise the noise must be so
    small that rows sorted by a column of the original would be noticed: releases of records in a
    known order, with noise of the size that is seen, are compared with these records.
    """
    ours, theirs = (list_complete_columns(table, label) for table in (original, released))
    if min(original.n, released.n) < MIN_ROWS or not ours or not theirs:
        return False
    X, Y = original.numbers(ours), released.numbers(theirs)
    if has_own_order(Y):
        return True
    weights = weigh_pairs(original, released, ours, theirs)
    if not weights.any():
        return False
    rows = np.arange(released.n)[:: -(-released.n // MAX_COMPARED_ROWS)]
    place = np.minimum(rows * original.n // released.n, original.n - 1)
    R, rng = standardise_ranks(X)[place], np.random.default_rng(len(rows))
    # The column with the most noise counts: others may hold nothing of the records.
    kept = weights.max(axis=0)[weights.any(axis=0)].min()  # spread of the original by the release's
    source = weights.argmax(axis=0)
    found, chance = [], 0.0
    for _ in range(TRIALS):
        noise = standardise(rng.permuted(Y, axis=0)[rows])
        signal = standardise(X[place])[:, source]
        S = standardise_ranks(kept * signal + np.sqrt(1.0 - kept**2) * noise)
        found.append(float((weights * correlate_columns(R, S)).sum()))
        chance = chance or measure_chance(R, S, correlate_columns, weights)
    return float(np.mean(found)) >= (MAX_ARRANGED_DEVIATIONS + MIN_POWER_DEVIATIONS) * chance


def has_own_order(Y: Floats) -> bool:
    """Return whether the rows are sorted by one of their columns, hardly ever tied."""
    steps = np.diff(Y, axis=0)
    is_sorted = (steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)
    return bool((is_sorted & ((steps == 0).mean(axis=0) <= MAX_TIED_SHARE)).any())

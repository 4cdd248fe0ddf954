"""Statements about records: closed intervals of all columns, all of which must hold."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats, Ints


def count_matches(statements: Floats, table: Floats) -> Ints:
    """Return for how many persons each statement holds, (p,).

    Persons are selected by the narrowest interval, and only those are tried on the next one.
    """
    p, width, _ = statements.shape
    columns = np.ascontiguousarray(table.T)
    order = np.argsort(columns, axis=1)  # (width, n)
    first, last = np.empty((p, width), dtype=np.int64), np.empty((p, width), dtype=np.int64)
    for j in range(width):
        values = columns[j, order[j]]
        first[:, j] = np.searchsorted(values, statements[:, j, 0], side="left")
        last[:, j] = np.searchsorted(values, statements[:, j, 1], side="right")
    held = last - first  # persons inside each interval alone
    count = np.zeros(p, dtype=np.int64)
    for i, (narrowest, *others) in enumerate(np.argsort(held, axis=1).tolist()):
        persons = order[narrowest, first[i, narrowest] : last[i, narrowest]]
        for j in others:
            if len(persons) == 0 or held[i, j] == len(table):
                break
            values, (low, high) = columns[j, persons], statements[i, j]
            persons = persons[(values >= low) & (values <= high)]
        count[i] = len(persons)
    return count

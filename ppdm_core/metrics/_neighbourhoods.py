"""Who is near whom, before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._comparison import Compared
from ppdm_core.metrics._release import some_of
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.neighbours import Near, nearest

NEIGHBOURS = 10
ASKED = 2_000  # rows whose neighbours are looked for, among all


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    asked: Ints  # rows of the release
    same_class: Floats  # (asked,) share of the neighbours with the label of the row itself
    kept: Floats | None  # (asked,) share that were neighbours before; None: rows of no record


def neighbourhoods(compared: Compared) -> Neighbourhoods:
    """Of the asked rows; both metrics of neighbourhoods use them."""

    def found() -> Neighbourhoods:
        asked = some_of(len(compared.Y), ASKED, compared.rng("asked"))
        return looked_at(compared, asked, min(NEIGHBOURS, len(compared.Y) - 1))

    return compared.once("neighbourhoods", found)


def looked_at(compared: Compared, asked: Ints, k: int) -> Neighbourhoods:
    label, Y = compared.row_label, compared.rows
    same, kept = np.empty(len(asked)), np.empty(len(asked))
    is_new = compared.source is None and compared.original is not compared
    before = nearest(compared.X[asked], compared.X, k, asked) if is_new else None
    for after in nearest(Y[asked], Y, k, asked):
        is_same = label[after.column] == label[asked[after.rows]][after.row]
        same[after.rows] = totals(after, after.weight * is_same) / k
        if before is not None:
            kept[after.rows] = kept_of(next(before), after, len(Y)) / k
    return Neighbourhoods(asked, same, kept if is_new else None)


def kept_of(before: Near, after: Near, n: int) -> Floats:
    """How many of the places near each row hold somebody who was near before.

    Whoever was nearer than the k-th counts in full; those that were as far as the k-th fill no
    more than the places that were left for them. So ties of the original cost nothing, and a
    release that puts everybody in one place gains nothing.
    """
    old, new = before.row * n + before.column, after.row * n + after.column
    order = np.argsort(old)
    place = order[np.minimum(np.searchsorted(old, new, sorter=order), len(old) - 1)]
    weight = np.where(old[place] == new, after.weight, 0.0)
    was_tied = before.is_tied[place]
    sure, tied = (totals(after, weight * each) for each in (~was_tied, was_tied))
    return sure + np.minimum(tied, before.room)


def totals(near: Near, values: Floats) -> Floats:
    count = near.rows.stop - near.rows.start
    return np.bincount(near.row, values, minlength=count).astype(np.float64)

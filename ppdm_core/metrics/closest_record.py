from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.metrics._metric import Better, Kind, Told, percent
from ppdm_core.metrics._release import OfRelease, check_compared, some_of
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.neighbours import nearest

_ROWS = 2_000  # released rows, and originals, whose closest original is looked for


@dataclass(frozen=True)
class ClosestRecord(OfRelease):
    """Chance that a released row is closer to its closest original than an original to another.

    A tie counts half, so that further people of the same population would score one half. A copy
    scores 1. A low figure says little: a row may be far from everybody and still tell whose it
    is. So it is for screening, and no limit may stand on it. Above 2,000 rows a random sample of
    them is measured, against all originals.
    """

    name: ClassVar[str] = "closest_record"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    most: ClassVar[int] = _ROWS
    is_rate: ClassVar[bool] = True  # shares between 0 and 1: its interval is wide enough for them
    gateable: ClassVar[bool] = False
    needs_alignment: ClassVar[bool] = False
    must_notice: ClassVar[Mapping[str, float]] = {"verbatim rows": 0.85}
    describe: ClassVar[str] = "chance that a row is closer to an original than originals are"

    def measure(self, compared: Compared) -> Measured:
        check_compared(self.name, compared)
        P = compared.clean(np.arange(len(compared.X)))
        if P is None:
            raise NotApplicable(f"{self.name} needs the original columns or a public map.")
        value = _chance(P, compared.rows, compared.rng(self.name))
        return Measured(value, lambda keep: value)  # a rate, whose interval counts its records

    def original(self, compared: Compared) -> float:
        """The same for one half of the originals against the other."""
        rng = compared.rng(self.name)
        order = rng.permutation(len(compared.X))
        half = len(order) // 2
        return _chance(compared.X[order[:half]], compared.X[order[half:]], rng)

    def baseline(self, compared: Compared) -> float:
        """Further people of the same population."""
        return 0.5

    def sentence(self, told: Told) -> str:
        held_out = (
            "" if told.original is None else f", and of held-out originals {percent(told.original)}"
        )
        return (
            f"In {percent(told.value)} of the comparisons a released row is closer to an "
            "original than "
            f"two originals are; of other people it would be {percent(told.baseline)}{held_out}."
        )


def _chance(P: Floats, Y: Floats, rng: np.random.Generator) -> float:
    if len(P) < 2:
        raise NotApplicable("closest_record needs two records or more.")
    rows, some = some_of(len(Y), _ROWS, rng), some_of(len(P), _ROWS, rng)
    between = np.sort(_to_closest(P[some], P, some))
    gap = _to_closest(Y[rows], P, None)
    farther = len(between) - np.searchsorted(between, gap, side="right")
    equal = len(between) - farther - np.searchsorted(between, gap, side="left")
    return float(np.mean(farther + equal / 2.0) / len(between))


def _to_closest(A: Floats, P: Floats, own: Ints | None) -> Floats:
    """Squared distances to the closest of P, but for ``own``: the place of each row itself."""
    closest = np.empty(len(A), dtype=np.int64)
    for near in nearest(A, P, 1, own):
        first = np.searchsorted(near.row, np.arange(near.rows.stop - near.rows.start))
        closest[near.rows] = near.column[first]
    gap = A - P[closest]
    found = np.einsum("ij,ij->i", gap, gap)
    # In units of the table and rounded, so that equal distances are equal.
    return np.asarray(np.round(found / max(float(np.max(P**2)), 1e-300), 11))

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.distances import squared_distances
from ppdm_core.errors import NotApplicable
from ppdm_core.metrics._metric import Better, Kind, Told, check_finite, check_tables, percent
from ppdm_core.public_map import has_map, invert, project
from ppdm_core.types import Codes, Floats, Ints, Public

_ROWS = 2_000  # released rows, and originals, whose closest original is looked for


@dataclass(frozen=True)
class ClosestRecord:
    """Chance that a released row is closer to its closest original than an original to another.

    A tie counts half, so that further people of the same population would score one half. A copy
    scores 1. A low figure says little: a row may be far from everybody and still tell whose it
    is. So it is for screening, and no limit may stand on it. Above 5,000 rows a random sample of
    them is measured, against all originals.
    """

    name: ClassVar[str] = "closest_record"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["release"]] = "release"
    most: ClassVar[int] = _ROWS
    is_rate: ClassVar[bool] = True  # shares between 0 and 1: its interval is wide enough for them
    gateable: ClassVar[bool] = False
    describe: ClassVar[str] = "chance that a row is closer to an original than originals are"

    def measure(
        self,
        X: Floats,
        label: Codes,
        Y: Floats,
        public: Public,
        rng: np.random.Generator,
        source: Ints | None = None,
    ) -> float:
        check_tables(self.name, X if source is None else X[source], Y, same_shape=False)
        check_finite(self.name, X)
        return _chance(_in_space(self.name, X, Y, public), Y, rng)

    def original(self, X: Floats, label: Codes, rng: np.random.Generator) -> float:
        """The same for one half of the originals against the other."""
        order = rng.permutation(len(X))
        half = len(X) // 2
        return _chance(X[order[:half]], X[order[half:]], rng)

    def baseline(self, label: Codes) -> float:
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


def _in_space(name: str, X: Floats, Y: Floats, public: Public) -> Floats:
    """The originals where the rows are."""
    if has_map(public):
        T = project(public, X)
        return invert(public, T) if public.space == "original" else T
    if public.space == "original" and X.shape[1] == Y.shape[1]:
        return X
    raise NotApplicable(f"{name} needs the original columns or a public map.")


def _chance(P: Floats, Y: Floats, rng: np.random.Generator) -> float:
    if len(P) < 2:
        raise NotApplicable("closest_record needs two records or more.")
    rows = np.arange(len(Y)) if len(Y) <= _ROWS else rng.choice(len(Y), _ROWS, replace=False)
    some = np.arange(len(P)) if len(P) <= _ROWS else rng.choice(len(P), _ROWS, replace=False)
    between = np.sort(_to_closest(P[some], P, some))
    gap = _to_closest(Y[rows], P, None)
    farther = len(between) - np.searchsorted(between, gap, side="right")
    equal = len(between) - farther - np.searchsorted(between, gap, side="left")
    return float(np.mean(farther + equal / 2.0) / len(between))


def _to_closest(A: Floats, P: Floats, own: Ints | None) -> Floats:
    """Squared distances to the closest of P, but for ``own``: the place of each row itself."""
    found = np.empty(len(A))
    for rows, D in squared_distances(A, P):
        if own is not None:
            D[np.arange(len(D)), own[rows]] = np.inf
        found[rows] = D.min(axis=1)
    # In units of the table and rounded, so that equal distances are equal.
    return np.round(found / max(float(np.max(P**2)), 1e-300), 11)

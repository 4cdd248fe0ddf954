"""A release, people who may be in it and people who are not; and what tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.attacks._label_groups import OneClass
from ppdm_core.attacks._noise_likelihood_ratio import noise_odds
from ppdm_core.attacks.kernel_support import NOBODY, PRIOR, support
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Response
from ppdm_core.numerics.distances import squared_distances
from ppdm_core.numerics.distributions import DrawnLaw
from ppdm_core.numerics.kernel_model import Surroundings

NEIGHBOUR = 5
_NOWHERE = 1e6  # distance to rows that are not there, in units


@dataclass(frozen=True, eq=False)
class World:
    """All in one space. Somebody's row has somebody's label, so classes are looked at apart."""

    Z: Floats  # (m, s) the release
    label: Codes  # (m,)
    T: Floats  # (t, s) people who may be in it
    own: Codes  # (t,) their labels
    R: Floats  # (r, s) people who are not
    theirs: Codes  # (r,)
    unit: Floats  # (s,) in which distances are measured
    answers: Codes  # (m, c) released categories
    cells: Codes  # (t, c) true ones of T
    their_cells: Codes  # (r, c)

    def divided(self, unit: Floats) -> World:
        """In these units, distances too."""
        Z, T, R = (part / unit for part in (self.Z, self.T, self.R))
        return replace(self, Z=Z, T=T, R=R, unit=np.ones(len(unit)))

    def of_class(self, code: int) -> tuple[Ints, World]:
        """The people of a class, and what they are compared with."""
        people = np.flatnonzero(self.own == code)
        rows, others = self.label == code, self.theirs == code
        return people, replace(
            self,
            Z=self.Z[rows],
            label=self.label[rows],
            T=self.T[people],
            own=self.own[people],
            R=self.R[others],
            theirs=self.theirs[others],
            answers=self.answers[rows],
            cells=self.cells[people],
            their_cells=self.their_cells[others],
        )

    def by_class(self, measure: Callable[[World], Floats], lowest: float) -> Floats:
        """``measure`` of each class apart, ``lowest`` where there are no rows; (t,)."""
        found = np.full(len(self.T), lowest)
        for code in np.unique(self.own).tolist():
            people, world = self.of_class(code)
            if len(world.Z):
                found[people] = measure(world)
        return found


Odds = Callable[[World], Floats]
Features = dict[str, Floats]  # (t,) each


def noisy_odds(law: DrawnLaw, responses: tuple[Response, ...]) -> Odds:
    """The world must be in scales of the noise."""

    def of_class(one: World) -> Floats:
        cells = one.answers, one.cells, one.their_cells
        return noise_odds(law, one.Z, one.T, one.R, cells, responses)

    return lambda world: world.by_class(of_class, -700.0)


def kernel_odds(around: Surroundings) -> Odds:
    def odds(world: World) -> Floats:
        def of_class(one: World) -> Floats:
            parts = OneClass(np.arange(0), np.arange(0), one.Z, one.T, world.Z, around)
            n = float(len(one.Z))
            kernel = around.from_records(one.T, one.Z, world.Z, n, PRIOR)
            return support(parts, kernel, n)[2]

        return world.by_class(of_class, NOBODY)

    return odds


def features(world: World, odds: Odds | None) -> Features:
    """The higher, the likelier a member; "isolation" alone says nothing of that."""
    near, far = np.full((2, len(world.T), 2), _NOWHERE)
    for code in np.unique(world.own).tolist():
        people, one = world.of_class(code)
        near[people] = _distances(one.T / one.unit, one.Z / one.unit)
        far[people] = _distances(one.T / one.unit, one.R / one.unit)
    logs = np.log(np.maximum(far, 1e-12)) - np.log(np.maximum(near, 1e-12))
    found = {
        "closest": -near[:, 0],
        "closest_ratio": logs[:, 0],
        "density_ratio": logs[:, 1],
    }
    if odds is not None:
        found["likelihood"] = odds(world)
    return found | {"isolation": np.log(np.maximum(far[:, 1], 1e-12))}


def _distances(T: Floats, Z: Floats) -> Floats:
    """To the closest and to the fifth closest row of Z (or the farthest, if fewer); (t, 2)."""
    found = np.full((len(T), 2), _NOWHERE)
    k = min(NEIGHBOUR, len(Z))
    if k:
        for people, D in squared_distances(T, Z):
            nearest = np.partition(D, k - 1, axis=1)[:, :k] if k < len(Z) else D
            found[people] = np.column_stack([nearest.min(axis=1), nearest.max(axis=1)])
        found = np.sqrt(found)
    return found

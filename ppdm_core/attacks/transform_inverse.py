"""Invert the map, published or leaked, and ignore the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.shrinkage import filter_with_sample
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows, RowMap
from ppdm_core.numerics.linear_map import (
    convert_to_components,
    get_centre_and_loadings,
    has_map,
    invert,
    project,
)


@dataclass(frozen=True)
class TransformInverse(Attack):
    """A recipient who has the release and its documentation maps every row back.

    Candidates: ``inverse``; ``clipped`` to the declared bounds, which are public too and never
    move an estimate away from a record inside them.

    The scenario ``leaked`` assumes that the key, or the secret matrix, has leaked. It has two
    more candidates: ``middle`` takes the middle of the bounds where the map keeps nothing, and
    ``sample`` what a sample of the population, if there is one, predicts there.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), the transform attack
    (Xhat = mean + Z A^T; with a leaked projection R, Xhat = Y pinv(R)).
    """

    name: ClassVar[str] = "transform_inverse"
    story: ClassVar[str] = "A recipient undoes the published linear map and takes the noise as is."
    title: ClassVar[str] = "Undoes the published map"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"map_or_leak"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85}
    in_every_audit: ClassVar[bool] = True
    file_story: ClassVar[str] = "A recipient takes the released values as they stand."

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        candidates = MappedRows(view.Y, make_inverses(view) if has_map(view.public) else {})
        if view.leaked_map is None or not has_map(view.leaked_map):
            return Estimate(candidates)
        leaked = replace(view, public=view.leaked_map)
        maps = {**make_inverses(leaked), **fill_dropped_directions(leaked)}
        return Estimate(candidates, scenarios={"leaked": MappedRows(view.Y, maps)})


def make_inverses(view: AttackerView) -> dict[str, RowMap]:
    """Return the inverse of the map, with and without clipping to the bounds."""
    public, low, high = view.public, view.schema.lows, view.schema.highs

    def invert_rows(Y: Floats) -> Floats:
        return invert(public, convert_to_components(public, Y))

    return {"inverse": invert_rows, "clipped": lambda Y: np.clip(invert_rows(Y), low, high)}


def fill_dropped_directions(view: AttackerView) -> dict[str, RowMap]:
    """Return inverses with an estimate for the directions that the map drops."""
    public, low, high = view.public, view.schema.lows, view.schema.highs
    middle = (low + high) / 2
    centre, loadings = get_centre_and_loadings(public)

    def take_middle(Y: Floats) -> Floats:
        missed = convert_to_components(public, Y) - project(public, middle)
        return np.clip(middle + missed @ np.linalg.pinv(loadings), low, high)

    found: dict[str, RowMap] = {"middle": take_middle}
    if view.sample is not None and len(view.sample) > 1:
        nothing = np.zeros(loadings.shape[1])
        predict = filter_with_sample(nothing, centre, loadings, view.sample)
        found["sample"] = lambda Y: np.clip(predict(convert_to_components(public, Y)), low, high)
    return found

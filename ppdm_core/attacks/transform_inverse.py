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
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.numerics.linear_map import (
    compute_components,
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
        candidates = invert_map(view) if has_map(view.public) else {}
        if view.leaked_map is None or not has_map(view.leaked_map):
            return Estimate(candidates)
        leaked = replace(view, public=view.leaked_map)
        return Estimate(
            candidates,
            scenarios={"leaked": {**invert_map(leaked), **fill_dropped_directions(leaked)}},
        )


def invert_map(view: AttackerView) -> dict[str, Floats]:
    """Return the inverse of the released rows, with and without clipping to the bounds."""
    X_hat = invert(view.public, compute_components(view))  # (n, d)
    return {"inverse": X_hat, "clipped": np.clip(X_hat, view.schema.lows, view.schema.highs)}


def fill_dropped_directions(view: AttackerView) -> dict[str, Floats]:
    """Return inverses with an estimate for the directions that the map drops."""
    Z, low, high = compute_components(view), view.schema.lows, view.schema.highs
    middle = (low + high) / 2
    loadings = get_centre_and_loadings(view.public)[1]
    missed = Z - project(view.public, middle)
    found = {"middle": middle + missed @ np.linalg.pinv(loadings)}
    if view.sample is not None and len(view.sample) > 1:
        nothing = np.zeros(Z.shape[1])
        found["sample"] = filter_with_sample(
            Z, nothing, *get_centre_and_loadings(view.public), view.sample
        )
    return {name: np.clip(X_hat, low, high) for name, X_hat in found.items()}

"""Undo the published map and ignore the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.attacks._needs import check_needs
from ppdm_core.public_map import components_of, invert
from ppdm_core.types import AttackerView, Estimate


@dataclass(frozen=True)
class TransformInverse:
    """A recipient who has the release and its documentation maps every row back.

    Candidates: ``inverse``; ``clipped`` to the declared bounds, which are public too and never
    move an estimate away from a record inside them.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), the transform attack
    (Xhat = mean + Z A^T).
    """

    name: ClassVar[str] = "transform_inverse"
    story: ClassVar[str] = "A recipient undoes the published linear map and takes the noise as is."
    goal: ClassVar[Literal["reconstruct", "link"]] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"public.map"})

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        X_hat = invert(view.public, components_of(view))  # (n, d)
        clipped = np.clip(X_hat, view.schema.lows, view.schema.highs)
        return Estimate({"inverse": X_hat, "clipped": clipped})

"""Checks and counts that the membership metrics share."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.errors import Defect


def check_scores(name: str, score: Floats, is_member: Bools) -> None:
    """Check that there is one finite score for each person, for members and non-members."""
    if score.ndim != 1 or score.shape != is_member.shape or is_member.dtype != np.bool_:
        raise Defect(f"{name} got scores of shape {score.shape} for {is_member.shape} persons.")
    bad = int(np.sum(~np.isfinite(score)))
    if bad:
        raise Defect(f"{name} got {bad} scores that are not finite.")
    if is_member.all() or not is_member.any():
        raise Defect(f"{name} needs members and non-members.")


def count_ties(score: Floats, is_member: Bools) -> tuple[Ints, Ints]:
    """Return the counts of members and non-members for each distinct score, highest first."""
    values, place = np.unique(-score, return_inverse=True)
    members = np.bincount(place[is_member], minlength=len(values))
    others = np.bincount(place[~is_member], minlength=len(values))
    return members, others

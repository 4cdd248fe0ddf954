from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ppdm_core.metrics._membership import check_scores, tie_counts
from ppdm_core.metrics._metric import Better, Kind, Told, percent
from ppdm_core.types import Floats


@dataclass(frozen=True)
class Auc:
    """Chance that a member scores higher than a non-member; a tie counts half."""

    name: ClassVar[str] = "auc"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["member"]] = "member"
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "chance that a member is told from a non-member"

    def measure(self, score: Floats, is_member: NDArray[np.bool_]) -> float:
        check_scores(self.name, score, is_member)
        members, others = tie_counts(score, is_member)  # of each value, falling
        below = others.sum() - np.cumsum(others)
        wins = float(np.sum(members * (below + others / 2.0)))
        return wins / (float(members.sum()) * float(others.sum()))

    def baseline(self, is_member: NDArray[np.bool_]) -> float:
        """A coin."""
        return 0.5

    def sentence(self, told: Told) -> str:
        return (
            f"{told.story} Of a member and a non-member that picks the member in "
            f"{percent(told.value)} of "
            f"the cases; a coin does so in {percent(told.baseline)}."
        ).strip()

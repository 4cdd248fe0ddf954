from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ppdm_core.metrics._membership import check_scores, tie_counts
from ppdm_core.metrics._metric import Better, Kind, Told, percent
from ppdm_core.types import Floats

_SHARE = 0.01
_COUNT = 5  # non-members: a rate of fewer is a matter of luck


@dataclass(frozen=True)
class TruePositiveRate:
    """Share of the members that are found when few others are taken for members.

    Few are 1 % of the non-members, or 5 of them if that is more. Where the threshold falls
    between people of equal score, each of them is taken with the same chance.

    References: Carlini, Chien, Nasr, Song, Terzis, Tramer (2022), on false positives of
    membership inference.
    """

    name: ClassVar[str] = "true_positive_rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["member"]] = "member"
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "share of members found at 1 % false alarms (5 people at least)"

    def measure(self, score: Floats, is_member: NDArray[np.bool_]) -> float:
        check_scores(self.name, score, is_member)
        members, others = tie_counts(score, is_member)  # of each value, falling
        found = np.append(0.0, np.cumsum(members) / members.sum())
        alarms = np.append(0.0, np.cumsum(others) / others.sum())
        allowed = self.baseline(is_member)
        last = int(np.searchsorted(alarms, allowed, side="right")) - 1  # alarms[last] <= allowed
        if last == len(alarms) - 1:
            return 1.0
        share = (allowed - alarms[last]) / (alarms[last + 1] - alarms[last])
        return float(found[last] + share * (found[last + 1] - found[last]))

    def baseline(self, is_member: NDArray[np.bool_]) -> float:
        """The share of false positives: whoever picks blindly finds as many members."""
        others = int(np.count_nonzero(~is_member))
        return min(1.0, max(_SHARE, _COUNT / max(others, 1)))

    def sentence(self, told: Told) -> str:
        return (
            f"{told.story} That finds {percent(told.value)} of the members while "
            f"{percent(told.baseline)} of the "
            "others are taken for members; picking blindly finds as many of both."
        ).strip()

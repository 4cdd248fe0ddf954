from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ppdm_core.metrics._membership import check_scores, tie_counts
from ppdm_core.metrics._metric import Better, Kind, MemberMetric, Told, percent
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.intervals import errors_together, wilson

_SHARE = 0.01
_COUNT = 5  # non-members: a rate of fewer is a matter of luck
_ANGLES = 13  # ways in which two errors are tried together


@dataclass(frozen=True)
class TruePositiveRate(MemberMetric):
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
        return _Curve.of(score, is_member).found_at(self.baseline(is_member))

    def interval(
        self,
        asked: Sequence[tuple[Floats, NDArray[np.bool_]]],
        members: int,
        others: int,
        level: float,
    ) -> tuple[float, float]:
        """Both the threshold, which hangs on few of the others, and the members above it vary.

        The threshold lies between two of the others, by the law of ranks, and the members above it
        within Wilson's interval. An end is the worst over all ways in which both may be off that
        are as unlikely together, so that it holds whatever the curve looks like.
        """
        from scipy.special import ndtr

        z = errors_together((1.0 - level) / 2.0)
        curves = [_Curve.of(*one) for one in asked]
        places = [
            _Places.of(self.baseline(is_member), int(np.sum(~is_member)), others)
            for _, is_member in asked
        ]
        low, high = 1.0, 0.0
        for angle in np.linspace(0.0, np.pi / 2, _ANGLES):
            tail, within = ndtr(-z * np.cos(angle)), 2.0 * ndtr(z * np.sin(angle)) - 1.0
            found = []
            for curve, place in zip(curves, places, strict=True):
                few, many, chance = place.ends(tail)
                found.append((chance, curve.found_at(few), curve.found_at(many)))
            chance, least, most = map(float, np.mean(found, axis=0))
            low = min(low, chance * wilson(least, members, within)[0])
            high = max(high, wilson(most, members, within)[1])
        return low, high

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


@dataclass(frozen=True, eq=False)
class _Curve:
    """Shares of members and of others that are taken, while the threshold falls."""

    found: Floats
    alarms: Floats

    @classmethod
    def of(cls, score: Floats, is_member: NDArray[np.bool_]) -> _Curve:
        members, others = tie_counts(score, is_member)  # of each value, falling
        found = np.append(0.0, np.cumsum(members) / members.sum())
        return cls(found, np.append(0.0, np.cumsum(others) / others.sum()))

    def found_at(self, allowed: float) -> float:
        found, alarms = self.found, self.alarms
        last = int(np.searchsorted(alarms, allowed, side="right")) - 1  # alarms[last] <= allowed
        if last == len(alarms) - 1:
            return 1.0
        share = (allowed - alarms[last]) / (alarms[last + 1] - alarms[last])
        return float(found[last] + share * (found[last + 1] - found[last]))


@dataclass(frozen=True, eq=False)
class _Places:
    """Where the threshold may be, of which ``share`` of all possible others are above.

    The share above the one of rank r of m others follows a beta law. With several releases, its
    mean over them is as sure as that of one with as many different ``people``.
    """

    share: float
    m: int
    weight: float
    above: Floats  # (m,) chance that more than the share are above each, from the highest
    below: Floats

    @classmethod
    def of(cls, share: float, m: int, people: int) -> _Places:
        from scipy.special import betainc, betaincc

        weight, rank = people / m, np.arange(1, m + 1)
        law = weight * rank, weight * (m + 1 - rank)
        return cls(share, m, weight, betaincc(*law, share), betainc(*law, share))

    def ends(self, tail: float) -> tuple[float, float, float]:
        """Shares of the m others above the highest and the lowest place, and a chance.

        The threshold is beyond either with the probability ``tail``. Above the highest of the
        others nothing is known of it: if too many may be above even that one, whoever wants fewer
        false alarms takes people with this chance only.
        """
        from scipy.special import betainccinv

        low = (self.m - int(np.sum(self.below <= tail))) / self.m
        rank = int(np.sum(self.above <= tail))
        if rank:
            return (rank - 1) / self.m, low, 1.0
        most = float(betainccinv(self.weight, self.weight * self.m, tail))
        return 0.0, low, min(1.0, self.share / most)

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._membership import check_scores, count_ties
from ppdm_core.metrics._metric import MemberMetric
from ppdm_core.model.arrays import Bools, Floats
from ppdm_core.numerics.intervals import clopper_pearson, joint_error_quantile

_FALSE_ALARM_SHARE = 0.01
_MIN_FALSE_ALARMS = 5  # non-members: a rate of fewer depends on chance
_ERROR_SPLITS = 48  # ways to divide the error between threshold and members


class TruePositiveRate(MemberMetric):
    """Share of the members that are found at a low false positive rate.

    The false positive rate is 1 % of the non-members, or 5 of them if that is more. If the
    threshold falls on a tie, each of the tied persons is taken with the same probability.

    References: Carlini, Chien, Nasr, Song, Terzis, Tramer (2022), on false positives of
    membership inference.
    """

    name = "true_positive_rate"
    describe = "share of members found at 1 % false positives (at least 5 persons)"
    template = (
        "{story} That finds {value} of the members, with {baseline} of the others taken for "
        "members; picking at random finds the same share of both."
    )

    def measure(self, score: Floats, is_member: Bools) -> float:
        check_scores(self.name, score, is_member)
        return _Curve.from_scores(score, is_member).find_rate(self.baseline(is_member))

    def interval(
        self, trials: Sequence[tuple[Floats, Bools]], members: int, others: int, level: float
    ) -> tuple[float, float]:
        """Return an interval for the errors of the threshold and of the members above it.

        The threshold depends on few of the others. It lies between two of them, by the distribution
        of ranks, and the share of members above it lies within the interval of Clopper and
        Pearson. An end is the worst over all combinations of both errors that are equally unlikely,
        so that it holds for every shape of the curve. Between two combinations that are tried, each
        error is taken at its larger one.
        """
        from scipy.special import ndtr

        z = joint_error_quantile((1.0 - level) / 2.0)
        curves = [_Curve.from_scores(*one) for one in trials]
        ranges = [
            _ThresholdRange.from_counts(self.baseline(is_member), int(np.sum(~is_member)), others)
            for _, is_member in trials
        ]
        low, high = 1.0, 0.0
        angles = np.linspace(0.0, np.pi / 2, _ERROR_SPLITS + 1)
        for first, last in itertools.pairwise(angles):
            tail, within = ndtr(-z * np.cos(first)), 2.0 * ndtr(z * np.sin(last)) - 1.0
            found = []
            for curve, threshold in zip(curves, ranges, strict=True):
                few, many, chance = threshold.find_ends(tail)
                found.append((chance, curve.find_rate(few), curve.find_rate(many)))
            chance, least, most = map(float, np.mean(found, axis=0))
            low = min(low, chance * clopper_pearson(least * members, members, within)[0])
            high = max(high, clopper_pearson(most * members, members, within)[1])
        return low, high

    def baseline(self, is_member: Bools) -> float:
        """Return the false positive rate: picking at random finds the same share of members."""
        others = int(np.count_nonzero(~is_member))
        return min(1.0, max(_FALSE_ALARM_SHARE, _MIN_FALSE_ALARMS / max(others, 1)))


@dataclass(frozen=True, eq=False)
class _Curve:
    """Shares of members and of others above the threshold, for descending thresholds."""

    found: Floats
    alarms: Floats

    @classmethod
    def from_scores(cls, score: Floats, is_member: Bools) -> _Curve:
        members, others = count_ties(score, is_member)  # for each score, descending
        found = np.append(0.0, np.cumsum(members) / members.sum())
        return cls(found, np.append(0.0, np.cumsum(others) / others.sum()))

    def find_rate(self, allowed: float) -> float:
        """Return the share of members found at an allowed false positive rate."""
        found, alarms = self.found, self.alarms
        last = int(np.searchsorted(alarms, allowed, side="right")) - 1  # alarms[last] <= allowed
        if last == len(alarms) - 1:
            return 1.0
        share = (allowed - alarms[last]) / (alarms[last + 1] - alarms[last])
        return float(found[last] + share * (found[last + 1] - found[last]))


@dataclass(frozen=True, eq=False)
class _ThresholdRange:
    """Range of the threshold above which a ``share`` of all possible others lies.

    The share above rank r of m others has a beta distribution. With several releases, its mean
    over them has the error of one release with as many different ``persons``.
    """

    share: float
    m: int
    weight: float
    above: Floats  # (m,) probability that more than the share are above each, from the highest
    below: Floats

    @classmethod
    def from_counts(cls, share: float, m: int, persons: int) -> _ThresholdRange:
        from scipy.special import betainc, betaincc

        weight, rank = persons / m, np.arange(1, m + 1)
        shape = weight * rank, weight * (m + 1 - rank)
        return cls(share, m, weight, betaincc(*shape, share), betainc(*shape, share))

    def find_ends(self, tail: float) -> tuple[float, float, float]:
        """Return the shares of the m others above both ends of the range, and a probability.

        The threshold is beyond either end with probability ``tail``. Above the highest of the
        others nothing is known of it: if too many may be above even that one, an attacker who
        wants fewer false positives takes persons with this probability only.
        """
        from scipy.special import betainccinv

        low = (self.m - int(np.sum(self.below <= tail))) / self.m
        rank = int(np.sum(self.above <= tail))
        if rank:
            return (rank - 1) / self.m, low, 1.0
        largest = float(betainccinv(self.weight, self.weight * self.m, tail))
        return 0.0, low, min(1.0, self.share / largest)

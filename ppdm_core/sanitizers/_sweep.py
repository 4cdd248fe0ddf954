"""What a tune varies of a method: values of its parameters along a few axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

# Changes of parameters by axis, the most promising first: a tune of few settings tries the first
# ones. A value of None removes a parameter.
Axes = Mapping[str, Sequence[Mapping[str, Any]]]

NOISE_FACTORS = (1.0, 2.25, 0.6, 1.5, 3.4, 5.0)  # of the noise that the limit on gamma asks for
COUNTS = (1, 2, 3, 5, 8, 12, 20, 30, 50)  # of components or dimensions
MIN_LN_GAMMA = 0.1


@dataclass(frozen=True)
class SweepScope:
    """What the table and the policy allow."""

    numeric: int  # features
    categorical: int
    gamma: float | None = None  # largest accepted gamma of a record; None: no limit
    has_ids: bool = False  # records can be set aside

    @property
    def features(self) -> int:
        return self.numeric + self.categorical

    def share_gamma(self, share: float) -> SweepScope:
        """Return the scope of a part that gets this share of ln gamma."""
        return self if self.gamma is None else replace(self, gamma=self.gamma**share)


def list_gammas(scope: SweepScope, present: float | None) -> list[float]:
    """Return gammas of a record: the limit first, then those of more noise.

    One is above the limit, to learn what the limit costs. Noise is inversely proportional to the
    logarithm of gamma for most distributions. Without a limit, ``present`` takes its place.
    """
    largest = scope.gamma or present
    if largest is None or largest <= 1:
        return []
    logs = [max(MIN_LN_GAMMA, math.log(largest) / factor) for factor in NOISE_FACTORS]
    return [round_down(math.exp(each)) for each in logs]


def list_noise_scales(present: float) -> list[float]:
    """Return scales of noise around the present one, which is the first."""
    return [round_up(present * factor) for factor in NOISE_FACTORS]


def list_counts(most: int) -> list[int]:
    """Return counts up to ``most``, at growing steps."""
    return [count for count in COUNTS if count <= most] or [1]


def round_down(value: float) -> float:
    """Return a number with three digits that is at most ``value``."""
    digits = 2 - math.floor(math.log10(value))
    return round(math.floor(value * 10.0**digits * (1 + 1e-12)) / 10.0**digits, max(0, digits))


def round_up(value: float) -> float:
    """Return a number with three digits that is at least ``value``."""
    digits = 2 - math.floor(math.log10(value))
    return round(math.ceil(value * 10.0**digits * (1 - 1e-12)) / 10.0**digits, max(0, digits))

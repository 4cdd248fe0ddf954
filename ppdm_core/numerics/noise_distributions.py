"""Distributions of noise around zero, in units of their scale.

A distribution gives the largest change of odds by a shift (``ln_gamma``) and its tails
(``tail_probability``), which is all that sampling on a grid needs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats

CLAMP_SCALES = 60  # bounded: outputs are clamped to this many scales beyond the far bound
MIN_NU, MAX_NU = 1, 20  # above, 127 bits are too few for the tail at 60 scales


@dataclass(frozen=True)
class NoiseDistribution(ABC):
    """A symmetric distribution with its mode at zero."""

    name: ClassVar[str]
    is_linear: ClassVar[bool] = False  # ln gamma is the distance
    max_scales: ClassVar[float] = CLAMP_SCALES  # largest sampled distance, in scales

    @property
    def unbounded_reason(self) -> str:
        """The condition of theorem 4 that fails; empty for a bounded distribution."""
        return ""

    @property
    def is_bounded(self) -> bool:
        return not self.unbounded_reason

    @abstractmethod
    def ln_gamma(self, distance: Floats) -> Floats:
        """Return sup over y of ln f(y) / f(y + distance): concave and increasing where finite."""

    @abstractmethod
    def tail_probability(self, x: Floats) -> Floats:
        """Return P(|noise| > x), x at least 0."""

    @property
    @abstractmethod
    def variance(self) -> float: ...

    @property
    @abstractmethod
    def fourth_moment(self) -> float: ...

    def grid_tail_probability(self, steps: Floats, ratio: float) -> Floats:
        """Return P(|G| >= steps) of noise rounded to the grid, ``steps`` at least 1.

        ``ratio`` is the grid step over the scale.
        """
        return self.tail_probability((steps - 0.5) * ratio)


@dataclass(frozen=True)
class Laplace(NoiseDistribution):
    """Laplace noise: bounded amplification, exp(R / b)."""

    name: ClassVar[str] = "laplace"
    is_linear: ClassVar[bool] = True
    variance: ClassVar[float] = 2.0
    fourth_moment: ClassVar[float] = 24.0

    def ln_gamma(self, distance: Floats) -> Floats:
        return distance

    def tail_probability(self, x: Floats) -> Floats:
        share: Floats = np.exp(-x)
        return share

    def grid_tail_probability(self, steps: Floats, ratio: float) -> Floats:
        # On the grid it is the two-sided geometric distribution, not rounded Laplace noise.
        share: Floats = 2.0 * np.exp(-steps * ratio) / (1.0 + math.exp(-ratio))
        return share


@dataclass(frozen=True)
class Logistic(NoiseDistribution):
    """Logistic noise: bounded amplification, exp(R / b)."""

    name: ClassVar[str] = "logistic"
    is_linear: ClassVar[bool] = True  # a supremum, approached in the tails
    variance: ClassVar[float] = math.pi**2 / 3
    fourth_moment: ClassVar[float] = 7 * math.pi**4 / 15

    def ln_gamma(self, distance: Floats) -> Floats:
        return distance

    def tail_probability(self, x: Floats) -> Floats:
        small = np.exp(-x)
        share: Floats = 2.0 * small / (1.0 + small)
        return share


@dataclass(frozen=True)
class StudentT(NoiseDistribution):
    """Student's t: ``nu`` = 1 is the Cauchy distribution; a larger one is closer to the normal."""

    nu: float

    name: ClassVar[str] = "student_t"

    @property
    def variance(self) -> float:
        return self.nu / (self.nu - 2) if self.nu > 2 else math.inf

    @property
    def fourth_moment(self) -> float:
        nu = self.nu
        return 3 * nu**2 / ((nu - 2) * (nu - 4)) if nu > 4 else math.inf

    def ln_gamma(self, distance: Floats) -> Floats:
        figure: Floats = (self.nu + 1) * np.arcsinh(distance / (2 * math.sqrt(self.nu)))
        return figure

    def tail_probability(self, x: Floats) -> Floats:
        from scipy.special import betainc

        # Each form is used where its argument loses no digits.
        nu, square = self.nu, x**2
        near = 1.0 - betainc(0.5, nu / 2, square / (nu + square))
        far = betainc(nu / 2, 0.5, nu / (nu + square))
        share: Floats = np.where(square < nu, near, far)
        return share


@dataclass(frozen=True)
class Normal(NoiseDistribution):
    """Normal noise: no bounded amplification."""

    name: ClassVar[str] = "normal"
    max_scales: ClassVar[float] = 12
    variance: ClassVar[float] = 1.0
    fourth_moment: ClassVar[float] = 3.0

    @property
    def unbounded_reason(self) -> str:
        return (
            "Normal noise has no worst-case bound: its tails fall faster than any exponential, "
            "so far values change the odds without limit."
        )

    def ln_gamma(self, distance: Floats) -> Floats:
        return _make_infinite(distance)

    def tail_probability(self, x: Floats) -> Floats:
        from scipy.special import erfc

        share: Floats = erfc(x / math.sqrt(2))
        return share


@dataclass(frozen=True)
class Uniform(NoiseDistribution):
    """Uniform noise; the scale is half the width of the interval."""

    name: ClassVar[str] = "uniform"
    max_scales: ClassVar[float] = 1
    variance: ClassVar[float] = 1 / 3
    fourth_moment: ClassVar[float] = 1 / 5

    @property
    def unbounded_reason(self) -> str:
        return (
            "Uniform noise has no worst-case bound: it never leaves its interval, so a value "
            "excludes every record that is farther away."
        )

    def ln_gamma(self, distance: Floats) -> Floats:
        return _make_infinite(distance)

    def tail_probability(self, x: Floats) -> Floats:
        share: Floats = np.maximum(1.0 - x, 0.0)
        return share


def _make_infinite(distance: Floats) -> Floats:
    ln_gamma: Floats = np.where(np.asarray(distance) > 0, math.inf, 0.0)
    return ln_gamma


LAPLACE = Laplace()
BOUNDED_DISTRIBUTIONS = ("laplace", "logistic", "student_t")
SAMPLED_DISTRIBUTIONS = (*BOUNDED_DISTRIBUTIONS, "normal", "uniform")


def find_distribution(name: str, nu: float | None = None) -> NoiseDistribution:
    """Return one of ``SAMPLED_DISTRIBUTIONS``; ``nu`` is for Student's t only."""
    if nu is not None:
        return StudentT(float(nu))
    plain: tuple[NoiseDistribution, ...] = (LAPLACE, Logistic(), Normal(), Uniform())
    return {distribution.name: distribution for distribution in plain}[name]

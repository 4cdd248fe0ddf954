"""Laws of noise around zero, in units of their scale.

A law says by how much a shift can change the odds (``ln_gamma``). One that noise is drawn from
also says how likely it is to go far (``beyond``), which is all that a draw on a grid needs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats

TAIL = 60  # bounded laws: outputs are clamped to this many scales beyond the far bound
LEAST_NU, MOST_NU = 1, 20  # above, 127 bits are too few for the law 60 scales out


@dataclass(frozen=True)
class Law(ABC):
    """One symmetric law with its mode at zero."""

    name: ClassVar[str]
    is_linear: ClassVar[bool] = False  # ln gamma is the distance itself

    @property
    def why_unbounded(self) -> str:
        """Which condition of theorem 4 fails; empty for a bounded law."""
        return ""

    @property
    def is_bounded(self) -> bool:
        return not self.why_unbounded

    @abstractmethod
    def ln_gamma(self, distance: Floats) -> Floats:
        """sup over y of ln f(y) / f(y + distance): concave and growing where it is finite."""


@dataclass(frozen=True)
class DrawnLaw(Law):
    """A law that noise can be drawn from; ``ratio`` is that of a grid step to the scale."""

    tail: ClassVar[float] = TAIL  # no draw goes farther, in scales

    @abstractmethod
    def beyond(self, x: Floats) -> Floats:
        """P(|noise| > x), x at least 0."""

    @property
    @abstractmethod
    def variance(self) -> float: ...

    @property
    @abstractmethod
    def fourth_moment(self) -> float: ...

    def at_least(self, steps: Floats, ratio: float) -> Floats:
        """P(|G| >= steps) of noise rounded to the grid, ``steps`` at least 1."""
        return self.beyond((steps - 0.5) * ratio)


@dataclass(frozen=True)
class Laplace(DrawnLaw):
    name: ClassVar[str] = "laplace"
    is_linear: ClassVar[bool] = True
    variance: ClassVar[float] = 2.0
    fourth_moment: ClassVar[float] = 24.0

    def ln_gamma(self, distance: Floats) -> Floats:
        return distance

    def beyond(self, x: Floats) -> Floats:
        share: Floats = np.exp(-x)
        return share

    def at_least(self, steps: Floats, ratio: float) -> Floats:
        # On the grid it is the two-sided geometric law itself, not rounded Laplace noise.
        share: Floats = 2.0 * np.exp(-steps * ratio) / (1.0 + math.exp(-ratio))
        return share


@dataclass(frozen=True)
class Logistic(DrawnLaw):
    name: ClassVar[str] = "logistic"
    is_linear: ClassVar[bool] = True  # a supremum, approached far out
    variance: ClassVar[float] = math.pi**2 / 3
    fourth_moment: ClassVar[float] = 7 * math.pi**4 / 15

    def ln_gamma(self, distance: Floats) -> Floats:
        return distance

    def beyond(self, x: Floats) -> Floats:
        small = np.exp(-x)
        share: Floats = 2.0 * small / (1.0 + small)
        return share


@dataclass(frozen=True)
class StudentT(DrawnLaw):
    """``nu`` = 1 is the Cauchy law; the larger, the closer to the normal law without a bound."""

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

    def beyond(self, x: Floats) -> Floats:
        from scipy.special import betainc

        # Each form where its argument keeps all its digits.
        nu, square = self.nu, x**2
        near = 1.0 - betainc(0.5, nu / 2, square / (nu + square))
        far = betainc(nu / 2, 0.5, nu / (nu + square))
        share: Floats = np.where(square < nu, near, far)
        return share


@dataclass(frozen=True)
class Normal(DrawnLaw):
    name: ClassVar[str] = "normal"
    tail: ClassVar[float] = 12
    variance: ClassVar[float] = 1.0
    fourth_moment: ClassVar[float] = 3.0

    @property
    def why_unbounded(self) -> str:
        return (
            "Normal noise has no worst-case bound: its tails fall faster than any exponential, "
            "so the odds that far values give grow without end."
        )

    def ln_gamma(self, distance: Floats) -> Floats:
        return _infinite(distance)

    def beyond(self, x: Floats) -> Floats:
        from scipy.special import erfc

        share: Floats = erfc(x / math.sqrt(2))
        return share


@dataclass(frozen=True)
class Uniform(DrawnLaw):
    """The scale is half the width of the interval."""

    name: ClassVar[str] = "uniform"
    tail: ClassVar[float] = 1
    variance: ClassVar[float] = 1 / 3
    fourth_moment: ClassVar[float] = 1 / 5

    @property
    def why_unbounded(self) -> str:
        return (
            "Uniform noise has no worst-case bound: it never leaves its interval, so a value "
            "rules out every record that is farther away."
        )

    def ln_gamma(self, distance: Floats) -> Floats:
        return _infinite(distance)

    def beyond(self, x: Floats) -> Floats:
        share: Floats = np.maximum(1.0 - x, 0.0)
        return share


@dataclass(frozen=True)
class GeneralisedNormal(Law):
    """Density proportional to exp(-|x|^beta): Laplace at 1, normal at 2."""

    beta: float

    name: ClassVar[str] = "generalised_normal"

    @property
    def why_unbounded(self) -> str:
        if self.beta <= 1:
            return ""
        return "With beta above 1 the tails fall faster than any exponential."

    def ln_gamma(self, distance: Floats) -> Floats:
        # |y + r|^beta - |y|^beta is largest at y = 0 for beta <= 1, and has no end above.
        return distance**self.beta if self.beta <= 1 else _infinite(distance)


def _infinite(distance: Floats) -> Floats:
    nowhere: Floats = np.where(np.asarray(distance) > 0, math.inf, 0.0)
    return nowhere


LAPLACE = Laplace()
BOUNDED = ("laplace", "logistic", "student_t")
DRAWN = (*BOUNDED, "normal", "uniform")


def law_named(name: str, nu: float | None = None) -> DrawnLaw:
    """One of ``DRAWN``; ``nu`` is for Student's t alone."""
    if nu is not None:
        return StudentT(float(nu))
    plain: tuple[DrawnLaw, ...] = (LAPLACE, Logistic(), Normal(), Uniform())
    return {law.name: law for law in plain}[name]

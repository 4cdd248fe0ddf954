"""Noise on linear scores, as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import check_choice, is_number, reject
from ppdm_core.numerics.amplification import figures
from ppdm_core.numerics.distributions import LEAST_NU, MOST_NU, TAIL, DrawnLaw, StudentT
from ppdm_core.numerics.noise import GridNoise, grid_step
from ppdm_core.numerics.rounding import outward

MOST_STEPS = 2.0**50  # of the grid in a range: beyond, floats cannot tell them apart


@dataclass(frozen=True, eq=False)
class Mechanism:
    """What the noise is made with; ``scaled`` gives the same with other noise."""

    law: DrawnLaw
    loadings: Floats  # (d, s)
    widths: Floats  # (d,)
    b: Floats  # (s,) noise scales
    ranges: Floats  # (s, 2) of the scores
    clips: bool

    def scaled(self, factor: float) -> Mechanism:
        return replace(self, b=self.b * factor)

    @property
    def g(self) -> Floats:
        return np.array([grid_step(scale) for scale in self.b.tolist()])

    def figures(self) -> tuple[float, float, float]:
        inside = self.clips
        return figures(self.law, self.loadings, self.widths, self.b, self.g, self.ranges, inside)

    def factor_for(self, gamma: Mapping[str, float]) -> float | None:
        """The smallest factor whose figures keep every asked gamma (they fall as it grows)."""
        asked = [(kind, math.log(value)) for kind, value in gamma.items()]

        def keeps(factor: float) -> bool:
            component, attribute, record = self.scaled(factor).figures()
            reached = {"component": component, "attribute": attribute, "record": record}
            return all(reached[kind] <= limit for kind, limit in asked)

        low, high = 1e-9, 1.0
        while not keeps(high):
            low, high = high, high * 2
            if high > 1e9:
                return None
        for _ in range(100):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if keeps(middle) else (middle, high)
        return high

    def noise(self, owner: object) -> GridNoise:
        """The noise itself, or a refusal where it could not hide its input."""
        half = (self.ranges[:, 1] - self.ranges[:, 0]) / 2
        name = type(owner).__name__
        if self.law.is_bounded and np.any(self.law.tail * self.b <= half + 2 * self.g):
            factor = outward(float(np.max((half + 2 * self.g) / self.b)) / self.law.tail)
            has_b = getattr(owner, "b", None) is not None
            raise BadInput(
                f"With so little noise some outputs of {name} cannot come from all inputs.",
                remedy=f"Raise 'b' to {factor:g} times its value." if has_b else "Lower 'gamma'.",
            )
        if np.any(half > MOST_STEPS * self.g):
            raise BadInput(
                f"The noise of {name} is lost in the rounding of its columns.",
                remedy="Raise 'b'.",
            )
        return GridNoise(self.law, self.b, self.g, self.ranges)

    def facts(
        self, variances: Floats, dropped_variance: float | None = None
    ) -> dict[str, float | str]:
        """What recipients need: mean and variance of d'^2 - d^2 over a random pair and the noise.

        d' is the distance of a clean query from a noisy record, as a recipient's classifier sees
        it; ``variances`` are those of the kept and then of the dropped components. Laplace noise
        gives equations 12 and 13 of P0, which takes dropped scores for normal and independent;
        with ``dropped_variance``, of squared distances in them, the exact variance is told, too.
        Where a law has no such moment, it is left out.
        """
        kept, dropped = variances[: len(self.b)], variances[len(self.b) :]
        noise = self.law.variance
        squares = self.law.fourth_moment - noise**2  # the variance of squared noise
        added = 8 * noise * sum_of(self.b**2 * kept) + squares * sum_of(self.b**4)
        found = {
            "distance_distortion_mean": noise * sum_of(self.b**2) - 2 * sum_of(dropped),
            "distance_distortion_variance": added + 8 * sum_of(dropped**2),
        }
        if dropped_variance is not None:
            found["distance_distortion_variance_exact"] = added + dropped_variance
        shape = {"nu": self.law.nu} if isinstance(self.law, StudentT) else {}
        moments = {key: outward(value) for key, value in found.items() if math.isfinite(value)}
        return {**shape, **moments}


def sum_of(values: Floats) -> float:
    return float(np.sum(values))


def check_hides(owner: object, b: float) -> None:
    """Of a 'b' that is a share of the range, what can be told before the range is known."""
    if b <= 1 / (2 * TAIL):
        wanted = f"above 1/{2 * TAIL}, because {TAIL} times the scale must exceed half the range"
        raise reject(owner, "b", wanted, b)


def check_law(owner: object, law: str, nu: float | None, choices: tuple[str, ...]) -> None:
    """The 'law' and 'nu' parameters of a method."""
    check_choice(owner, "law", choices)
    if (law == "student_t") != (nu is not None):
        raise reject(owner, "nu", 'a number exactly when law = "student_t"', nu)
    if nu is not None and not (is_number(nu) and LEAST_NU <= nu <= MOST_NU):
        raise reject(owner, "nu", f"a number from {LEAST_NU} to {MOST_NU}", nu)

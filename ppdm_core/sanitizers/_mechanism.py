"""The mechanism of noise on linear scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import check_choice, is_number, parameter_error
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.amplification import compute_ln_gammas
from ppdm_core.numerics.grid_noise import GridNoise, grid_step
from ppdm_core.numerics.noise_distributions import (
    CLAMP_SCALES,
    MAX_NU,
    MIN_NU,
    NoiseDistribution,
    StudentT,
)
from ppdm_core.numerics.rounding import round_outward

MAX_RANGE_STEPS = 2.0**50  # grid steps in half a range; floats cannot distinguish more


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Loadings, ranges and noise scales of linear scores."""

    distribution: NoiseDistribution
    loadings: Floats  # (d, s)
    widths: Floats  # (d,)
    b: Floats  # (s,) noise scales
    ranges: Floats  # (s, 2) of the scores
    clips: bool

    def scale_noise(self, factor: float) -> Mechanism:
        """Return the mechanism with all noise scales multiplied by the factor."""
        return replace(self, b=self.b * factor)

    @property
    def g(self) -> Floats:
        return np.array([grid_step(scale) for scale in self.b.tolist()])

    def compute_ln_gammas(self) -> tuple[float, float, float]:
        """Return ln gamma of component, attribute and record."""
        inside = self.clips
        return compute_ln_gammas(
            self.distribution, self.loadings, self.widths, self.b, self.g, self.ranges, inside
        )

    def find_factor(self, gamma: Mapping[str, float]) -> float | None:
        """Return the smallest factor whose figures meet every requested gamma, or None.

        The figures decrease with the factor.
        """
        asked = [(kind, math.log(value)) for kind, value in gamma.items()]

        def keeps(factor: float) -> bool:
            component, attribute, record = self.scale_noise(factor).compute_ln_gammas()
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

    def make_noise(self, owner: object, parameter: str = "b") -> GridNoise:
        """Return the noise, or raise BadInput if it could not hide its input.

        ``parameter`` of the owner is the scale of the noise.
        """
        half = (self.ranges[:, 1] - self.ranges[:, 0]) / 2
        name = type(owner).__name__
        if self.distribution.is_bounded and np.any(
            self.distribution.max_scales * self.b <= half + 2 * self.g
        ):
            factor = round_outward(
                float(np.max((half + 2 * self.g) / self.b)) / self.distribution.max_scales
            )
            has_scale = getattr(owner, parameter, None) is not None
            raised = f"Raise '{parameter}' to {factor:g} times its value."
            raise BadInput(
                f"With so little noise, some outputs of {name} cannot come from all inputs.",
                remedy=raised if has_scale else "Lower 'gamma'.",
            )
        if np.any(half > MAX_RANGE_STEPS * self.g):
            raise BadInput(
                f"The noise of {name} is lost in the rounding of its columns.",
                remedy=f"Raise '{parameter}'.",
            )
        return GridNoise(self.distribution, self.b, self.g, self.ranges)

    def describe_release(self, **more: Any) -> PublicParameters:
        """Return the public parameters of a release of scores with this noise."""
        law = self.distribution.name
        return PublicParameters(loadings=self.loadings, law=law, scales=self.b, grid=self.g, **more)

    def describe_distortion(
        self, variances: Floats, dropped_variance: float | None = None
    ) -> dict[str, float | str]:
        """Return the published moments of d'^2 - d^2 over a random pair of records and the noise.

        d' is the distance of a query without noise from a record with noise, as in a recipient's
        classifier; ``variances`` are those of the kept and then of the dropped components. Laplace
        noise gives equations 12 and 13 of P0, which assume normal and independent dropped scores;
        with ``dropped_variance``, of squared distances in them, the exact variance is added. A
        moment that the distribution does not have is left out.
        """
        kept, dropped = variances[: len(self.b)], variances[len(self.b) :]
        noise = self.distribution.variance
        squares = self.distribution.fourth_moment - noise**2  # the variance of squared noise
        added = 8 * noise * sum_values(self.b**2 * kept) + squares * sum_values(self.b**4)
        found = {
            "distance_distortion_mean": noise * sum_values(self.b**2) - 2 * sum_values(dropped),
            "distance_distortion_variance": added + 8 * sum_values(dropped**2),
        }
        if dropped_variance is not None:
            found["distance_distortion_variance_exact"] = added + dropped_variance
        shape = {"nu": self.distribution.nu} if isinstance(self.distribution, StudentT) else {}
        moments = {
            key: round_outward(value) for key, value in found.items() if math.isfinite(value)
        }
        return {**shape, **moments}


def sum_values(values: Floats) -> float:
    return float(np.sum(values))


def check_relative_scale(owner: object, b: float) -> None:
    """Check a relative scale `b` before the range is known."""
    if b <= 1 / (2 * CLAMP_SCALES):
        reason = f"{CLAMP_SCALES} times the scale must exceed half the range"
        wanted = f"above 1/{2 * CLAMP_SCALES}, because {reason}"
        raise parameter_error(owner, "b", wanted, b)


def check_distribution(
    owner: object, distribution: str, nu: float | None, choices: tuple[str, ...]
) -> None:
    """Check the 'law' and 'nu' parameters of a method."""
    check_choice(owner, "law", choices)
    if (distribution == StudentT.name) != (nu is not None):
        raise parameter_error(owner, "nu", 'a number exactly when law = "student_t"', nu)
    if nu is not None and not (is_number(nu) and MIN_NU <= nu <= MAX_NU):
        raise parameter_error(owner, "nu", f"a number from {MIN_NU} to {MAX_NU}", nu)

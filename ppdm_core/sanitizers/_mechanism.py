"""Laplace noise on linear scores, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.errors import BadInput
from ppdm_core.guarantee import laplace_figures
from ppdm_core.noise import TAIL, grid_step
from ppdm_core.types import Floats


@dataclass(frozen=True, eq=False)
class Mechanism:
    """What the noise is made with; ``scaled`` gives the same with other noise."""

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
        return laplace_figures(self.loadings, self.widths, self.b, self.g, self.ranges, inside)

    def check_reach(self) -> None:
        half = (self.ranges[:, 1] - self.ranges[:, 0]) / 2
        if np.any(TAIL * self.b <= half + 2 * self.g):
            factor = float(np.max(half / self.b)) / TAIL
            raise BadInput(
                "With so little noise some outputs of PcaLaplace cannot come from all inputs.",
                remedy=f"Raise 'b' to more than {factor:.2g} times its value.",
            )

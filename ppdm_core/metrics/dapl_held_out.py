from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._dapl import Dapl, Density
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.kernel_model import Rule

_LEAST = 8  # records of a class that can be cut in halves and quarters


@dataclass(frozen=True)
class DaplHeldOut(Dapl):
    """A lower bound of the total variation between the kernel density and the truth.

    The density is made of one half of a class; a set where it is high is chosen with a quarter of
    the records and as many draws, and the other quarter says by how much the draws are more often
    in it. Classes count by their sizes, at most 2,000 records of each are used, a class with a
    column that does not vary counts 1. It says how wrong the density is, not what it gives away:
    it is 1 for copies as it is for pure noise. No limit may stand on it.

    References: Tan, Ng (2007), DAPL, which takes the truth as known.
    """

    name: ClassVar[str] = "dapl_held_out"
    needs_method: ClassVar[bool] = True
    describe: ClassVar[str] = "least distance of the resampled density from the truth"

    def of_class(self, X: Floats, rule: Rule, widths: Floats, rng: np.random.Generator) -> float:
        return held_out(X, rule, widths, rng)

    def sentence(self, told: Told) -> str:
        return (
            f"By held-out records the resampled density is at least {percent(told.value)} "
            "away from "
            "the true one; that is an error of the density, no measure of what it discloses."
        )


def held_out(X: Floats, rule: Rule, widths: Floats, rng: np.random.Generator) -> float:
    if len(X) < _LEAST:
        return 0.0  # nothing can be shown
    order = rng.permutation(len(X))
    made, asked = np.array_split(order, 2)
    density = Density(X[made], rule, widths)
    if not density.exists:
        return 1.0
    true, drawn = density.log(X[asked]), density.log(density.draw(len(asked), rng))
    half = len(asked) // 2
    level = best_level(drawn[:half], true[:half])
    return float(np.mean(drawn[half:] > level) - np.mean(true[half:] > level))


def best_level(drawn: Floats, true: Floats) -> float:
    """Above it are most draws and fewest records; minus infinity is outside all kernels."""
    levels = np.unique(np.append(true, -np.inf))
    drawn, true = np.sort(drawn), np.sort(true)
    above = len(drawn) - np.searchsorted(drawn, levels, side="right")
    records = len(true) - np.searchsorted(true, levels, side="right")
    return float(levels[np.argmax(above / len(drawn) - records / len(true))])

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._dapl import Dapl, Density
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.kernel_model import BandwidthRule

_MIN_CLASS_RECORDS = 8  # enough for halves and quarters


class DaplHeldOut(Dapl):
    """Lower bound of the total variation distance between kernel density and true density.

    The density is estimated from one half of a class. A set where it is high is chosen with a
    quarter of the records and as many draws; on the other quarter, the share of draws minus the
    share of records in that set is the bound. Classes are weighted by size, at most 2,000 records
    of each are used, and a class with a constant column counts 1. The value is the error of the
    density, not what the release discloses: it is 1 for copies as well as for pure noise. So no
    limit may use it.

    References: Tan, Ng (2007), DAPL, which assumes that the true density is known.
    """

    name = "dapl_held_out"
    title = "Error of the density, held-out records"
    describe = "lower bound of the distance of the resampled from the true density"
    template = (
        "On held-out records, the resampled density is at least {value} away from the true one; "
        "this is an error of the density, not a measure of disclosure."
    )

    def measure_class(
        self, X: Floats, rule: BandwidthRule, widths: Floats, rng: np.random.Generator
    ) -> float:
        if len(X) < _MIN_CLASS_RECORDS:
            return 0.0  # too few to prove any distance
        fit_half, test_half = np.array_split(rng.permutation(len(X)), 2)
        density = Density(X[fit_half], rule, widths)
        if not density.exists:
            return 1.0
        true, drawn = density.log(X[test_half]), density.log(density.draw(len(test_half), rng))
        half = len(test_half) // 2
        level = find_best_level(drawn[:half], true[:half])
        return float(np.mean(drawn[half:] > level) - np.mean(true[half:] > level))


def find_best_level(drawn: Floats, true: Floats) -> float:
    """Return the level with most draws and fewest records above; -inf is outside all kernels."""
    levels = np.unique(np.append(true, -np.inf))
    drawn, true = np.sort(drawn), np.sort(true)
    above = len(drawn) - np.searchsorted(drawn, levels, side="right")
    records = len(true) - np.searchsorted(true, levels, side="right")
    return float(levels[np.argmax(above / len(drawn) - records / len(true))])

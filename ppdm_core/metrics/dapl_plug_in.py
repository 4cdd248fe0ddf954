from __future__ import annotations

import numpy as np

from ppdm_core.metrics._dapl import Dapl, Density
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.kernel_model import BandwidthRule

_DRAWS = 1_000  # of each of the two densities


class DaplPlugIn(Dapl):
    """Total variation distance between kernel density and true density, if classes are normal.

    For each class as many records are drawn from a normal distribution with its mean and
    covariance. The mean of |f - g| / (f + g) over draws from both densities is the distance
    (standard error below 0.02). Classes are weighted by size, at most 2,000 records of each are
    used, and a class with a singular covariance counts 1. As for ``dapl_held_out``, no limit may
    use it.

    References: Tan, Ng (2007), DAPL, which assumes that the true density is known.
    """

    name = "dapl_plug_in"
    title = "Error of the density, normal classes"
    describe = "distance of the resampled density from normal classes"
    template = (
        "If every class were normal, the resampled density would be {value} away from it; this is "
        "an error of the density, not a measure of disclosure."
    )

    def measure_class(
        self, X: Floats, rule: BandwidthRule, widths: Floats, rng: np.random.Generator
    ) -> float:
        n, d = X.shape
        if n <= d:
            return 1.0
        mean, centred = X.mean(axis=0), X - X.mean(axis=0)
        S = centred.T @ centred / (n - 1)
        spread = np.sqrt(np.diag(S))
        if not np.all(spread > 1e-9):
            return 1.0
        values = np.linalg.eigvalsh(S / np.outer(spread, spread))
        if values[0] < 1e-9:  # a column is a linear function of others
            return 1.0
        factor = np.linalg.cholesky(S)
        density = Density(mean + rng.standard_normal((n, d)) @ factor.T, rule, widths)
        draws = mean + rng.standard_normal((_DRAWS, d)) @ factor.T
        points = np.vstack([draws, density.draw(_DRAWS, rng)])
        W = np.linalg.solve(factor, (points - mean).T)
        f = -0.5 * (W**2).sum(axis=0) - 0.5 * d * np.log(2 * np.pi) - np.log(np.diag(factor)).sum()
        gap = density.log(points) - f
        return float(np.mean(np.abs(np.tanh(gap / 2.0))))  # |f - g| / (f + g), by their log ratio

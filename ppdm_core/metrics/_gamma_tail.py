"""A gamma distribution that is fitted to typical values, to judge how unusual others are."""

from __future__ import annotations

import numpy as np


def fit_gamma(median: float, upper: float) -> tuple[float, float]:
    """Return shape and scale of the gamma distribution with this median and 90 % quantile."""
    from scipy.optimize import brentq
    from scipy.special import gammaincinv

    def ratio(log_shape: float) -> float:
        shape = np.exp(log_shape)
        return float(np.log(gammaincinv(shape, 0.9) / gammaincinv(shape, 0.5)))

    if not 0 < median < upper:
        return 0.0, 1.0
    wanted, ends = float(np.log(upper / median)), (-2.0, 10.0)
    if not ratio(ends[1]) < wanted < ratio(ends[0]):
        return 0.0, 1.0
    shape = float(np.exp(brentq(lambda x: ratio(x) - wanted, *ends)))
    return shape, median / float(gammaincinv(shape, 0.5))

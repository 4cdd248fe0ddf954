"""A noise distribution approximated by a mixture of normal distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.noise_distributions import NoiseDistribution

_UNIFORM_PIECES = 8  # parts of a uniform distribution
_DEVIATIONS = np.geomspace(0.05, 40.0, 18)  # of the candidate parts, in units of the scale


@dataclass(frozen=True, eq=False)
class NoiseParts:
    """A mixture of normal distributions: part q has the probability ``share[q]``."""

    share: Floats  # (q,)
    shift: Floats  # (q,) mean
    variance: Floats  # (q,)

    def scale_by(self, scale: float) -> NoiseParts:
        """Return the mixture for noise times ``scale``."""
        return NoiseParts(self.share, self.shift * scale, self.variance * scale**2)


def fit_noise_parts(distribution: NoiseDistribution) -> NoiseParts:
    """Return the mixture for noise of scale 1.

    Laplace, logistic and Student noise is normal noise with a random variance, so that a few
    variances approximate it: the shares are those that fit tails and variance of the distribution
    best. Uniform noise is divided into equal pieces.
    """
    if distribution.name == "normal":
        return NoiseParts(np.ones(1), np.zeros(1), np.ones(1))
    if distribution.name == "uniform":
        middle = (2.0 * np.arange(_UNIFORM_PIECES) + 1.0) / _UNIFORM_PIECES - 1.0
        equal = np.full(_UNIFORM_PIECES, 1.0 / _UNIFORM_PIECES)
        return NoiseParts(equal, middle, np.full(_UNIFORM_PIECES, 1.0 / (3.0 * _UNIFORM_PIECES**2)))
    return _fit_scale_mixture(distribution)


def _fit_scale_mixture(distribution: NoiseDistribution) -> NoiseParts:
    from scipy.optimize import nnls
    from scipy.special import erfc

    x = np.concatenate([np.linspace(0.0, 4.0, 200), np.geomspace(4.0, 60.0, 60)])
    tails = distribution.tail_probability(x)
    weight = 1.0 / np.sqrt(tails + 1e-4)
    parts = erfc(x[:, None] / (_DEVIATIONS * math.sqrt(2.0)))  # (x, q)
    # The last two lines fit the variance of the distribution, and shares with sum 1.
    lines = [
        parts * weight[:, None],
        30.0 * _DEVIATIONS**2 / distribution.variance,
        np.full(len(_DEVIATIONS), 300.0),
    ]
    share, _ = nnls(np.vstack(lines), np.concatenate([tails * weight, [30.0, 300.0]]), maxiter=2000)
    used = share > 1e-9
    share = share[used] / share[used].sum()
    return NoiseParts(share, np.zeros(len(share)), _DEVIATIONS[used] ** 2)

"""A law of noise as a mixture of normal laws, with which everything can be computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.distributions import DrawnLaw

_PIECES = 8  # of the uniform law
_DEVIATIONS = np.geomspace(0.05, 40.0, 18)  # of the parts to choose from, in scales


@dataclass(frozen=True, eq=False)
class NoiseParts:
    """Noise is drawn from part q, a normal law, with probability ``share[q]``."""

    share: Floats  # (q,)
    shift: Floats  # (q,) mean
    variance: Floats  # (q,)

    def scaled(self, scale: float) -> NoiseParts:
        return NoiseParts(self.share, self.shift * scale, self.variance * scale**2)


def noise_parts(law: DrawnLaw) -> NoiseParts:
    """The mixture for scale 1.

    Laplace, logistic and Student noise is normal noise whose variance is itself random, so that a
    few variances come close: the shares are those that fit tails and variance of the law best.
    Uniform noise is cut into equal pieces.
    """
    if law.name == "normal":
        return NoiseParts(np.ones(1), np.zeros(1), np.ones(1))
    if law.name == "uniform":
        middle = (2.0 * np.arange(_PIECES) + 1.0) / _PIECES - 1.0
        equal = np.full(_PIECES, 1.0 / _PIECES)
        return NoiseParts(equal, middle, np.full(_PIECES, 1.0 / (3.0 * _PIECES**2)))
    return _random_variance(law)


def _random_variance(law: DrawnLaw) -> NoiseParts:
    from scipy.optimize import nnls
    from scipy.special import erfc

    x = np.concatenate([np.linspace(0.0, 4.0, 200), np.geomspace(4.0, 60.0, 60)])
    tails = law.beyond(x)
    weight = 1.0 / np.sqrt(tails + 1e-4)
    parts = erfc(x[:, None] / (_DEVIATIONS * math.sqrt(2.0)))  # (x, q)
    # The last two lines ask for the law's variance and for shares of 1 together.
    lines = [
        parts * weight[:, None],
        30.0 * _DEVIATIONS**2 / law.variance,
        np.full(len(_DEVIATIONS), 300.0),
    ]
    share, _ = nnls(np.vstack(lines), np.concatenate([tails * weight, [30.0, 300.0]]), maxiter=2000)
    used = share > 1e-9
    share = share[used] / share[used].sum()
    return NoiseParts(share, np.zeros(len(share)), _DEVIATIONS[used] ** 2)

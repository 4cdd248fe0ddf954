"""Independent components by FastICA, in numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.attacks._known_map import polar
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.random_orthogonal import haar

_RANK = 1e-10
# Weights of the two statistics in the approximate negentropy, and the second of a normal number.
_ODD, _EVEN = 36 / (8 * np.sqrt(3) - 9), 24 / (16 * np.sqrt(3) - 27)
_NORMAL = np.sqrt(0.5)
_STEPS, _TOLERANCE = 200, 1e-5


@dataclass(frozen=True, eq=False)
class Independent:
    """x = mean + u mixing, with components u that are as independent as can be, variance 1."""

    mean: Floats  # (d,)
    mixing: Floats  # (k, d)
    unmixing: Floats  # (d, k)
    strength: Floats  # (k,) negentropy: 0 for a normal component, larger the farther from it

    def components(self, X: Floats, origin: Floats) -> Floats:
        return np.asarray((X - origin) @ self.unmixing)


def independent_components(X: Floats, rng: np.random.Generator, *, starts: int = 4) -> Independent:
    """All components at once (symmetric FastICA), the farthest from normal of several starts.

    What is driven from normal is a negentropy with an odd and an even part, so that skewed as well
    as peaked, flat and bimodal components are seen, and far values count little. There are as many
    components as the table has directions; they come out in no order and with any sign.
    """
    mean = X.mean(axis=0)
    centred = X - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / (len(X) - 1))
    kept = values > _RANK * max(values[-1], np.finfo(np.float64).tiny)
    whitening = vectors[:, kept] / np.sqrt(values[kept])  # (d, k)
    white = centred @ whitening
    turns = [_turned(white, haar(white.shape[1], rng)) for _ in range(starts)]
    strengths = [strength(white @ turn) for turn in turns]
    best = int(np.argmax([each.sum() for each in strengths]))
    unmixing = whitening @ turns[best]
    mixing = turns[best].T @ (vectors[:, kept] * np.sqrt(values[kept])).T
    return Independent(mean, mixing, unmixing, strengths[best])


def strength(U: Floats) -> Floats:
    odd, even = _statistics(U, np.exp(-0.5 * U * U))
    return np.asarray(_ODD * odd**2 + _EVEN * even**2)


def _statistics(U: Floats, bell: Floats) -> tuple[Floats, Floats]:
    return np.mean(U * bell, axis=0), np.mean(bell, axis=0) - _NORMAL


def _turned(white: Floats, turn: Floats) -> Floats:
    """The orthogonal matrix (k, k) whose columns are directions of independent components."""
    for _ in range(_STEPS):
        U = white @ turn  # (n, k)
        square = U * U
        bell = np.exp(-0.5 * square)
        odd, even = _statistics(U, bell)
        odd, even = _ODD * odd, _EVEN * even
        slope = (odd * (1 - square) - even * U) * bell
        bend = np.mean((odd * U * (square - 3) + even * (square - 1)) * bell, axis=0)
        before, turn = turn, polar(white.T @ slope / len(white) - turn * bend)
        if 1.0 - np.abs(np.einsum("ij,ij->j", turn, before)).min() < _TOLERANCE:
            break
    return turn

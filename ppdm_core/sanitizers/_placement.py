"""Placing records among landmarks whose coordinates are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.distances import squared_distances

SLICE = 1024  # records at a time; always so many, because BLAS rounds otherwise for other counts
STEPS = 20
NEAR = 1e-12  # distances are at least this when they divide
LONGEST = 100.0  # a step, in majorisation steps


@dataclass(frozen=True, eq=False)
class Placement:
    X: Floats  # (l, d) records of the landmarks, no two equal
    Y: Floats  # (l, p) their coordinates
    knots: Floats  # (k, 2) the map from dissimilarity to distance

    def place(self, X: Floats) -> Floats:
        """Coordinates of records: a landmark's own where the values are equal, else its place."""
        parts = [self._slice(X[i : i + SLICE]) for i in range(0, len(X), SLICE)]
        return np.concatenate(parts) if parts else np.zeros((0, self.Y.shape[1]))

    def _slice(self, X: Floats) -> Floats:
        n = len(X)
        delta = distances(padded(X), self.X)  # (SLICE, l)
        nearest = delta[:n].argmin(axis=1)
        Y: Floats = self.Y[nearest]
        others = np.flatnonzero(np.any(self.X[nearest] != X, axis=1))
        if len(others):
            wanted = np.interp(delta[others], *self.knots.T)
            Y[others] = self._settled(padded(wanted))[: len(others)]
        return Y

    def _settled(self, wanted: Floats) -> Floats:  # (n, l) distance from each landmark
        """Least squares on squared distances, then descent; the best point on the way counts.

        One majorisation step leads to ``mean_l (y_l + wanted_l (y - y_l) / |y - y_l|)``. It never
        raises the stress but creeps, so that its length is adapted (Barzilai and Borwein 1988).
        """
        centre = self.Y.mean(axis=0)
        L = self.Y - centre
        back = np.linalg.pinv(L).T / 2  # (l, p)
        Y = (np.einsum("ij,ij->i", L, L) - wanted**2) @ back
        best, least = Y, np.full(len(Y), np.inf)
        moved = turned = np.zeros_like(Y)
        before = np.zeros_like(Y)
        for _ in range(STEPS):
            d = np.maximum(distances(Y, L), NEAR)
            error = wanted - d
            stress = np.einsum("ij,ij->i", error, error)
            is_better = stress < least
            best, least = np.where(is_better[:, None], Y, best), np.minimum(stress, least)
            pull = np.divide(error, d, out=error)
            step = pull.mean(axis=1)[:, None] * Y - pull @ L / len(L)  # of majorisation
            turned, before = before - step, step
            length = np.einsum("ij,ij->i", moved, moved)
            curve = np.einsum("ij,ij->i", moved, turned)
            ratio = np.divide(length, curve, out=np.ones(len(Y)), where=curve > 0)
            moved = np.clip(ratio, 1.0, LONGEST)[:, None] * step
            Y = Y + moved
        return np.asarray(best + centre)


def distances(A: Floats, B: Floats) -> Floats:
    parts = [D for _, D in squared_distances(A, B)]
    D = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.sqrt(D, out=D)


def padded(A: Floats) -> Floats:
    full = np.zeros((SLICE, A.shape[1]))
    full[: len(A)] = A
    return full

"""Placement of records among landmarks with known coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.distances import compute_distances

SLICE_ROWS = 1024  # always this many: BLAS rounds differently for other row counts
DESCENT_STEPS = 20
MIN_DISTANCE = 1e-12  # lower limit of a distance in a denominator
EPSILON = 2.0**-52  # rounding error of a singular value, as a share of the largest
MAX_STEP_FACTOR = 100.0  # longest step, in majorisation steps


@dataclass(frozen=True, eq=False)
class Placement:
    """Landmarks and the map from dissimilarity to distance, by which records are placed."""

    X: Floats  # (l, d) records of the landmarks, no two equal
    Y: Floats  # (l, p) their coordinates
    knots: Floats  # (k, 2) map from dissimilarity to distance

    def place(self, X: Floats) -> Floats:
        """Return coordinates of records; a record equal to a landmark gets its coordinates."""
        parts = [self._place_slice(X[i : i + SLICE_ROWS]) for i in range(0, len(X), SLICE_ROWS)]
        return np.concatenate(parts) if parts else np.zeros((0, self.Y.shape[1]))

    def _place_slice(self, X: Floats) -> Floats:
        n = len(X)
        delta = compute_distances(pad_rows(X), self.X)  # (SLICE, l)
        nearest = delta[:n].argmin(axis=1)
        Y: Floats = self.Y[nearest]
        others = np.flatnonzero(np.any(self.X[nearest] != X, axis=1))
        if len(others):
            wanted = np.interp(delta[others], *self.knots.T)
            Y[others] = self._descend(pad_rows(wanted))[: len(others)]
        return Y

    @cached_property
    def _squares_to_points(self) -> Floats:
        """Return the (l, p) map from squared distances to the point that fits them best.

        With singular values s of the coordinates, errors of sigma in the squared distances move the
        point by sigma / 2s in a direction along which landmarks are s / sqrt(l) from their mean.
        Directions in which the first is larger are left out. Sigma is estimated from landmarks.
        """
        from scipy.spatial.distance import pdist

        L = self.Y - self.Y.mean(axis=0)
        error = np.interp(pdist(self.X), *self.knots.T) ** 2 - pdist(L) ** 2
        sigma = np.sqrt(np.mean(error**2))
        U, s, V = np.linalg.svd(L, full_matrices=False)
        is_kept = s**2 > max(sigma * np.sqrt(len(L)) / 2, (max(L.shape) * EPSILON * s[0]) ** 2)
        return np.asarray(U[:, is_kept] / s[is_kept] @ V[is_kept] / 2)

    def _descend(self, wanted: Floats) -> Floats:  # (n, l) distance from each landmark
        """Return the best points of a descent that starts at least squares on squared distances.

        One majorisation step leads to ``mean_l (y_l + wanted_l (y - y_l) / |y - y_l|)``. It never
        raises the stress but converges slowly, so its length is adapted (Barzilai and Borwein
        1988).
        """
        centre = self.Y.mean(axis=0)
        L = self.Y - centre
        Y = (np.einsum("ij,ij->i", L, L) - wanted**2) @ self._squares_to_points
        best, least = Y, np.full(len(Y), np.inf)
        moved = turned = np.zeros_like(Y)
        before = np.zeros_like(Y)
        for _ in range(DESCENT_STEPS):
            d = np.maximum(compute_distances(Y, L), MIN_DISTANCE)
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
            moved = np.clip(ratio, 1.0, MAX_STEP_FACTOR)[:, None] * step
            Y = Y + moved
        return np.asarray(best + centre)


def pad_rows(A: Floats) -> Floats:
    """Return rows padded to a full block."""
    full = np.zeros((SLICE_ROWS, A.shape[1]))
    full[: len(A)] = A
    return full

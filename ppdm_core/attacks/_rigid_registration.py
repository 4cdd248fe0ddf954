"""Find the rotation and shift that lay a release over a sample of the same population.

The release, turned back and blurred by a normal kernel, is a density of the population. The
rotation under which the sample is likeliest is sought. Expectation-maximisation climbs from a
start with a shrinking kernel, and several starts compete by their likelihood, so that the original
records are not needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.attacks._secret_map import polar
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.neighbours import find_nearest_rows

SEARCH_ROWS = (150, 600)  # of sample and release, while starts compete
POLISH_ROWS = (500, 3_000)  # and at the end
_FIRST_KERNEL_SHARE, _KERNEL_DECAY = (
    0.25,
    0.7,
)  # first kernel, as a share of the variance, and its decay per step
_EXACT_TOLERANCE = 1e-4  # relative to the spread, for a record in the release


@dataclass(frozen=True, eq=False)
class RigidMap:
    """x = x0 + (y - y0) Q."""

    x0: Floats  # (d,)
    y0: Floats  # (s,)
    Q: Floats  # (s, d) part of an orthogonal matrix
    likelihood: float = -np.inf  # mean log likelihood of the sample, but for a constant

    def apply(self, Y: Floats) -> Floats:
        """Map released rows to original ones."""
        return np.asarray(self.x0 + (Y - self.y0) @ self.Q)


def find_rigid_map(
    starts: Iterable[Floats],
    sample: Floats,
    Y: Floats,
    rng: np.random.Generator,
    *,
    has_origin: bool,
) -> RigidMap:
    """Return the likeliest map that the starts (s, d) lead to.

    The search runs on random parts of both tables (``SEARCH_ROWS``, ``POLISH_ROWS``); at the end
    the complete release is searched for the sample's own records.
    """
    few, some = draw_rows(sample, SEARCH_ROWS[0], rng), draw_rows(Y, SEARCH_ROWS[1], rng)
    found = [run_em(Q, few, some, has_origin=has_origin, is_search=True) for Q in starts]
    found.sort(key=lambda overlay: -overlay.likelihood)
    few, some = draw_rows(sample, POLISH_ROWS[0], rng), draw_rows(Y, POLISH_ROWS[1], rng)
    finals = [run_em(one.Q, few, some, has_origin=has_origin, is_search=False) for one in found[:2]]
    best = max(finals, key=lambda overlay: overlay.likelihood)
    return snap_to_rows(best, few, Y, has_origin=has_origin)


def draw_rows(X: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return at most ``count`` random rows; all, if there are no more."""
    return X if len(X) <= count else X[rng.permutation(len(X))[:count]]


def run_em(
    Q: Floats, sample: Floats, Y: Floats, *, has_origin: bool, is_search: bool, steps: int = 30
) -> RigidMap:
    """Run expectation-maximisation from one start.

    A search starts with a wide kernel and uses single precision.
    """
    kind: Any = np.float32 if is_search else np.float64
    x0 = np.zeros(sample.shape[1]) if has_origin else sample.mean(axis=0)
    y0 = np.zeros(Y.shape[1]) if has_origin else Y.mean(axis=0)
    X, Y, Q, y0 = (np.asarray(each, dtype=kind) for each in (sample - x0, Y, Q, y0))
    spread = max(float(Y.var(axis=0).mean()), np.finfo(np.float64).tiny)
    heat, floor = _FIRST_KERNEL_SHARE * spread * is_search, 1e-9 * spread
    own, likelihood = 0.0, -np.inf
    for _ in range(steps):
        D = _squared_distances(X @ Q.T, Y - y0)  # (p, n)
        nearest = D.min(axis=1, keepdims=True)
        own = own or max(float(nearest.mean()) / Y.shape[1], floor)
        kernel, heat = max(own, heat), heat * _KERNEL_DECAY
        P = np.exp((nearest - D) * (0.5 / kernel))
        total = P.sum(axis=1, keepdims=True)
        fit = float(np.mean(np.log(total) - nearest * (0.5 / kernel)))
        likelihood = fit - 0.5 * Y.shape[1] * float(np.log(kernel))
        P /= total
        own = max(float(np.einsum("ij,ij->", P, D)) / D.shape[0] / Y.shape[1], floor)
        T = P @ Y  # (p, s) where the release expects each record
        y0 = y0 if has_origin else T.mean(axis=0)
        before, Q = Q, polar((T - y0).T @ X)
        if np.abs(Q - before).max() < (1e-4 if is_search else 1e-6) and heat <= own:
            break
    return RigidMap(x0, y0.astype(np.float64), Q.astype(np.float64), likelihood)


def snap_to_rows(overlay: RigidMap, sample: Floats, Y: Floats, *, has_origin: bool) -> RigidMap:
    """Return the map under which half of the sample are rows of the release, if there is one.

    Otherwise return the map as given.
    """
    sample = sample[: max(200, 6 * Y.shape[1])]
    current, before, exact = overlay, np.inf, _EXACT_TOLERANCE * float(sample.std(axis=0).max())
    for _ in range(30):
        places, residuals = _find_nearest(current, sample, Y)
        middle = float(np.median(residuals))
        near = residuals <= middle
        if middle <= exact and near.sum() > 2 * Y.shape[1]:  # fewer can be turned to fit anything
            return current
        if middle > 0.95 * before:
            break
        before = middle
        X, T = sample[near], Y[places[near]]
        x0 = current.x0 if has_origin else X.mean(axis=0)
        y0 = current.y0 if has_origin else T.mean(axis=0)
        current = RigidMap(x0, y0, polar((T - y0).T @ (X - x0)), overlay.likelihood)
    return overlay


def _find_nearest(overlay: RigidMap, sample: Floats, Y: Floats) -> tuple[Ints, Floats]:
    """Return the nearest row of each record of the sample, and the distances."""
    turned = overlay.y0 + (sample - overlay.x0) @ overlay.Q.T
    places, squares = find_nearest_rows(turned, Y, 1)
    return places[:, 0], np.sqrt(squares[:, 0])


def _squared_distances(A: Floats, B: Floats) -> Floats:
    """Return the squared distances of all pairs, at least 0."""
    D = A @ (-2 * B.T)
    D += np.square(A).sum(axis=1)[:, None]
    D += np.square(B).sum(axis=1)
    return np.maximum(D, 0, out=D)

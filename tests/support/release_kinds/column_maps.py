"""Maps of single columns without noise that are not linear."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import find_nearest, link_ranks, scale_with
from tests.support.release_kinds.classic import standardize
from tests.support.release_kinds.kinds import Family, Kind, Make
from tests.support.release_kinds.proofs import Proof, View

MAPS: Family = "nonlinear maps"


def bend(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a piecewise linear, increasing function of each column with random slopes."""
    Y = np.empty_like(X)
    for j, x in enumerate(X.T):
        knots = np.unique(np.quantile(x, [0, 0.2, 0.4, 0.6, 0.8, 1]))
        heights = np.cumsum(np.append(0.0, rng.uniform(0.2, 5, len(knots) - 1)))
        Y[:, j] = np.interp(x, knots, heights)
    return Y


def fold(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the distance of each value from a random point inside its column."""
    return np.abs(standardize(X) - rng.uniform(-0.5, 0.5, X.shape[1]))


def link_folded(view: View) -> Ints:
    """Find the point of each column that explains the known pairs, and link by the distance."""
    centre, unit = scale_with(view)
    Z, Zk, Yk = (view.persons - centre) / unit, (view.known - centre) / unit, view.Y[view.rows]
    points = np.linspace(-0.6, 0.6, 1201)
    error = np.abs(np.abs(Zk[:, :, None] - points) - Yk[:, :, None]).mean(axis=0)  # (d, points)
    return find_nearest(np.abs(Z - points[error.argmin(axis=1)]), view.Y)


def oscillate(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a fast oscillation of each column, with random frequency and phase."""
    d = X.shape[1]
    return np.sin(standardize(X) * rng.uniform(4, 7, d) + rng.uniform(0, 2 * np.pi, d))


def assign_codes(X: Floats, rng: np.random.Generator) -> Floats:
    """Replace the values of each of 30 intervals of a column by one random number."""
    Y = np.empty_like(X)
    for j, x in enumerate(X.T):
        edges = np.unique(np.quantile(x, np.linspace(0, 1, 31)[1:-1]))
        Y[:, j] = rng.standard_normal(len(edges) + 1)[np.searchsorted(edges, x, side="right")]
    return Y


def link_by_column(view: View) -> Ints:
    """Interpolate each released column between known values of the original; link the result."""
    cost = np.zeros((len(view.persons), len(view.Y)))
    for x, xk, y in zip(view.persons.T, view.known.T, view.Y.T, strict=True):
        order = np.argsort(xk, kind="stable")
        xs, ys = xk[order], y[view.rows][order]
        even, odd = slice(0, None, 2), slice(1, None, 2)
        error = np.mean((np.interp(xs[odd], xs[even], ys[even]) - ys[odd]) ** 2)
        # Most values are predicted well; those next to a jump are not.
        gap = (np.interp(x, xs, ys)[:, None] - y) ** 2 / (0.1 * error + 1e-12)
        cost += np.log1p(gap)
    return np.asarray(cost.argmin(axis=1))


def by_column(function: Callable[[Floats], Floats]) -> Make:
    return lambda X, rng: np.asarray(function(standardize(X)))


RANKS = Proof("full records", "link", link_ranks)
HALF_KNOWN = Proof("half known", "link", link_by_column)
COLUMN_MAPS = (
    Kind("tanh", MAPS, by_column(np.tanh), RANKS),
    Kind("cubes", MAPS, by_column(lambda Z: Z**3), RANKS),
    Kind("cubes, own columns", MAPS, by_column(lambda Z: Z**3), RANKS, columns="own"),
    Kind("bent columns", MAPS, bend, RANKS),
    Kind("folded columns", MAPS, fold, Proof("60 known pairs", "link", link_folded)),
    Kind("fast oscillations", MAPS, oscillate, HALF_KNOWN),
    Kind("code words", MAPS, assign_codes, HALF_KNOWN),
)

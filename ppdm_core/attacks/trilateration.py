"""Locate records by their distances to a few known records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._breach_claims import learn_claims, split_folds
from ppdm_core.attacks._needs import check_needs
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows
from ppdm_core.numerics.decompositions import decompose_singular
from ppdm_core.numerics.distances import compute_distances, compute_squared_distances

Distances = Callable[[Floats], Floats]  # from released to original distances

# Largest first: without evidence from left-out records the estimate stays near their mean.
_PENALTIES = (1.0, 1e-1, 1e-2, 1e-3, 1e-5, 1e-9)
_NEWTON_STEPS = {"quick": 2, "standard": 3, "thorough": 15}
_MAX_ANCHORS = 60
_BLOCK_NUMBERS = 2**18  # in one block of curvatures: fits the processor cache
_MAX_FOLDS = 10
_MIN_DISTANCE = 1e-9
_EXACT_TOLERANCE = 1e-6
_MIN_RELATIVE_LOSS = 1e-16  # of a squared distance: below, nothing is left to fit
_MIN_LOSS_DECREASE = 1e-6  # of any row, else the step is the last
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Trilateration(Attack):
    """An insider measures, in the release, how far each row is from the rows of known persons.

    ``metric`` takes released distances as original ones times one factor, fitted to the known
    pairs; ``ordinal`` relies on their order only, and fits a monotone map to the known pairs.
    Either way a record is where its distances to the known records agree best: linear least
    squares on squared distances, then Gauss-Newton on the distances themselves, held near the
    mean of the known records as much as serves best for known records that are left out. With too
    few known records to fix a point that is the one nearest to their mean. A point that
    the map does not move (zero, or the published centre) is one more known record if the lengths
    of the known ones fit.

    Of more than 60 known records the first 60 are used. ``view.effort`` sets the steps of
    Gauss-Newton: 2, 3 or 15. Claims are learned from left-out known records.

    References: Liu, Giannella, Kargupta (2006), on what distances tell; Kruskal (1964) for the
    monotone map.
    """

    name: ClassVar[str] = "trilateration"
    story: ClassVar[str] = "An insider knows {k} records and measures distances from their rows."
    title: ClassVar[str] = "Measures distances to known rows"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"known"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85, "rotation": 0.85}
    leak_variant: ClassVar[str] = "three columns"

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        known = view.known
        assert known is not None
        Xk, rows = known.X[:_MAX_ANCHORS], known.rows[:_MAX_ANCHORS]
        Xk, Yk = add_fixed_point(view, Xk, view.Y[rows])
        low, high = view.schema.lows, view.schema.highs
        steps = _NEWTON_STEPS[view.effort]
        found, maps, claims = {}, {}, {}
        for name, fit in (("metric", fit_scale), ("ordinal", fit_monotone)):
            penalty = choose_penalty(Xk, Yk, fit, steps)

            def learn(
                Ya: Floats,
                Xa: Floats,
                Y: Floats,
                fit: Callable[[Floats, Floats], Distances] = fit,
                penalty: float = penalty,
            ) -> Floats:
                return np.clip(locate_points(Xa, Ya, Y, fit(Xa, Ya), penalty, steps), low, high)

            X_hat = learn(Yk, Xk, view.Y)
            claims[name] = learn_claims(learn, Yk, Xk, view.Y, X_hat, view.epsilon)
            claims[name][known.rows] = 1.0
            X_hat[known.rows] = known.X
            found[name], maps[name] = X_hat, partial(learn, Yk, Xk)
        return Estimate(MappedRows(view.Y, maps, known, found), claims)


def add_fixed_point(view: AttackerView, Xk: Floats, Yk: Floats) -> tuple[Floats, Floats]:
    """Return the anchors and, if their lengths fit that, the point that the map leaves at zero."""
    zero = np.zeros(Xk.shape[1])
    upper = np.triu_indices(len(Xk), 1)
    for x0 in (zero, view.public.centre):
        if x0 is None:
            continue
        lengths = np.linalg.norm(Xk - x0, axis=1), np.linalg.norm(Yk, axis=1)
        if len(Xk) == 1:
            is_fixed = abs(lengths[0][0] - lengths[1][0]) <= _EXACT_TOLERANCE * lengths[0][0]
        else:
            pairs = compute_distances(Xk, Xk)[upper], compute_distances(Yk, Yk)[upper]
            is_fixed = misfit(*lengths, fit_factor(*pairs)) <= max(
                1.5 * misfit(*pairs), _EXACT_TOLERANCE
            )
        if is_fixed:
            return np.vstack([Xk, x0]), np.vstack([Yk, np.zeros((1, Yk.shape[1]))])
    return Xk, Yk


def fit_factor(original: Floats, released: Floats) -> float:
    """Return the factor that brings released distances nearest to the original ones."""
    square = float(released @ released)
    return float(released @ original) / square if square > 0 else 1.0


def misfit(original: Floats, released: Floats, factor: float | None = None) -> float:
    """Return the share of the original distances that the scaled released ones do not explain."""
    error = original - (fit_factor(original, released) if factor is None else factor) * released
    return float(np.sqrt(error @ error / max(float(original @ original), _TINY)))


def fit_scale(Xk: Floats, Yk: Floats) -> Distances:
    """Return the map of distances that multiplies by one factor."""
    upper = np.triu_indices(len(Xk), 1)
    factor = fit_factor(compute_distances(Xk, Xk)[upper], compute_distances(Yk, Yk)[upper])
    return lambda D: factor * D


def fit_monotone(Xk: Floats, Yk: Floats) -> Distances:
    """Return the isotonic map of distances, linear between its levels and beyond them."""
    from scipy.optimize import isotonic_regression

    upper = np.triu_indices(len(Xk), 1)
    original, released = compute_distances(Xk, Xk)[upper], compute_distances(Yk, Yk)[upper]
    if len(released) < 3 or np.ptp(released) == 0:
        return fit_scale(Xk, Yk)
    order = np.lexsort((original, released))
    fitted = isotonic_regression(original[order])
    starts = fitted.blocks[:-1]
    counts = np.diff(fitted.blocks)
    x = np.add.reduceat(released[order], starts) / counts
    y = fitted.x[starts]
    factor = fit_factor(original, released)
    first, last = (x[0], y[0]), (x[-1], y[-1])

    def mapped(D: Floats) -> Floats:
        inside = np.interp(D, x, y)
        below = D * (first[1] / first[0]) if first[0] > 0 else np.full(D.shape, first[1])
        beyond = last[1] + factor * (D - last[0])
        return np.where(first[0] > D, below, np.where(last[0] < D, beyond, inside))

    return mapped


def choose_penalty(
    Xk: Floats, Yk: Floats, fit: Callable[[Floats, Floats], Distances], steps: int
) -> float:
    """Return the penalty with which left-out known records are located best."""
    k = len(Xk)
    if k < 3:
        return _PENALTIES[-1]
    losses = np.zeros(len(_PENALTIES))
    for left in split_folds(k, _MAX_FOLDS):
        rest = np.setdiff1d(np.arange(k), left)
        distances = fit(Xk[rest], Yk[rest])
        for which, penalty in enumerate(_PENALTIES):
            X_hat = locate_points(Xk[rest], Yk[rest], Yk[left], distances, penalty, steps)
            losses[which] += float(np.linalg.norm(X_hat - Xk[left], axis=1).sum())
    return _PENALTIES[int(np.argmin(losses))]


def locate_points(
    Xk: Floats, Yk: Floats, Y: Floats, distances: Distances, penalty: float, steps: int
) -> Floats:
    """Return the points whose distances to the anchors ``Xk`` best fit those of the rows to ``Yk``.

    Anchors that do not span the space leave a direction open. How far a point is off their span
    is determined, and is one more coordinate while it is fitted; in which direction is not.
    """
    x0 = Xk.mean(axis=0)
    U, S, Vt = decompose_singular(Xk - x0)
    r = int(np.sum(1e-10 * S.max(initial=_MIN_DISTANCE) < S))
    is_open = r < Xk.shape[1]
    A = np.pad(U[:, :r] * S[:r], ((0, 0), (0, int(is_open))))  # (k, r) or (k, r + 1)
    X_hat = np.empty((len(Y), Xk.shape[1]))
    k, width = A.shape
    size = max(1, _BLOCK_NUMBERS // max(k, width * width))
    for start in range(0, len(Y), size):
        part = slice(start, start + size)
        wanted = distances(compute_distances(Y[part], Yk))
        X = solve_linear(U[:, :r], S[:r], wanted, penalty)
        if is_open:
            X = np.column_stack([X, distance_off_span(A[:, :r], X, wanted)])
        X_hat[part] = refine_points(A, wanted, X, penalty, steps)[:, :r] @ Vt[:r]
    return np.asarray(x0 + X_hat)


def solve_linear(U: Floats, S: Floats, wanted: Floats, penalty: float) -> Floats:
    """Return least squares solutions in the anchors' principal coordinates.

    |x - a|^2 = w^2, less the mean of all such equations, is linear in x.
    """
    A = U * S
    right = np.einsum("ij,ij->i", A, A) - wanted**2  # (n, k)
    right -= right.mean(axis=1, keepdims=True)
    gain = S / (S**2 + penalty * (S**2).max(initial=0.0)) / 2.0
    return np.asarray((right @ U) * gain)


def distance_off_span(A: Floats, X: Floats, wanted: Floats) -> Floats:
    """Return how far each point is off the span of the anchors."""
    D = compute_squared_distances(X, A)
    return np.asarray(np.sqrt(np.maximum(np.mean(wanted**2 - D, axis=1), 0.0)))


def refine_points(A: Floats, wanted: Floats, X: Floats, penalty: float, steps: int) -> Floats:
    """Run Gauss-Newton on the distances; a row keeps its best point.

    Errors of distances grow with the distance, so each counts by 1 / (1 + its ratio to the mean).
    """
    k, width = A.shape
    mean = np.maximum(wanted.mean(axis=1, keepdims=True), _MIN_DISTANCE)
    W = 1.0 / (1.0 + wanted / mean)  # (n, k)
    # The error of a squared distance is 2 w times that of the distance.
    weight = penalty * float(np.sum(A**2, axis=0).max()) / 2.0 / mean[:, 0] ** 2
    best, least = X, np.full(len(X), np.inf)
    squares = (A[:, :, None] * A[:, None, :]).reshape(k, width * width)
    for step in range(steps + 1):
        D = compute_distances(X, A)
        error = wanted - D
        loss = np.einsum("nk,nk,nk->n", W, error, error)
        loss += weight * np.einsum("nd,nd->n", X, X)
        is_better = loss < least * (1.0 - _MIN_LOSS_DECREASE)
        best, least = np.where(is_better[:, None], X, best), np.minimum(loss, least)
        is_open = is_better & (loss > _MIN_RELATIVE_LOSS * mean[:, 0] ** 2)
        if step == steps or not is_open.any():
            break
        pull = W * error / np.maximum(D, _MIN_DISTANCE)  # (n, k)
        slope = (pull.sum(axis=1) - weight)[:, None] * X - pull @ A
        X = (
            X
            + np.linalg.solve(_compute_curvature(A, squares, X, W, D, weight), slope[:, :, None])[
                :, :, 0
            ]
        )
    return best


def _compute_curvature(
    A: Floats, squares: Floats, X: Floats, W: Floats, D: Floats, weight: Floats
) -> Floats:
    """Return the sum over the anchors of W (x - a)(x - a)^T / D^2; (n, width, width).

    It is multiplied out, which is one product of matrices.
    """
    k, width = A.shape
    U = W / np.maximum(D, 1e-4 * D.mean(axis=1, keepdims=True) + _MIN_DISTANCE) ** 2
    UA = U @ A  # (n, width)
    H = (U @ squares).reshape(len(X), width, width)
    H += (U.sum(axis=1)[:, None] * X - UA)[:, :, None] * X[:, None, :]
    H -= X[:, :, None] * UA[:, None, :]
    H += (weight + _MIN_DISTANCE * k)[:, None, None] * np.eye(width)
    return np.asarray(H)

"""Approximate matching of known records to rows, if distances are kept roughly or up to a scale."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from ppdm_core.attacks._map_fitting import procrustes, ridge
from ppdm_core.attacks._seeded_matching import find_seeds
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.policy import Effort
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.numerics.distances import compute_squared_distances
from ppdm_core.numerics.neighbours import find_nearest_rows

_MAX_DISTANCES = {
    "quick": 1e8,
    "standard": 2e8,
    "thorough": 4e9,
}  # distances between records and rows
_FOLLOWED_STARTS = {
    "quick": 4,
    "standard": 8,
    "thorough": 48,
}  # starts that are followed to their end
_DECOY_COUNT = {"quick": 1, "standard": 1, "thorough": 5}
_LARGE_RELEASE_ROWS = 10_000  # above, a quarter of the starts is followed
_MAX_SIGNED_AXES = 8
_MAX_ROUNDS = 15
_CANDIDATES_PER_RECORD = 10  # nearest rows
_TRUSTED_SHARE = 0.7  # of the matches, best first, to which the map is fitted
_MAX_BELIEVED_RATIO = 0.3  # of the misfit to that of decoys
_MIN_SPARE_MATCHES = 3  # beyond those that any map fits
_MIN_RELATIVE_DEVIATION = 1e-9
_TINY = np.finfo(np.float64).tiny

Match = tuple[float, Ints]  # misfit, and the rows


def find_approximate_rows(
    X: Floats,
    sample: Floats,
    Y: Floats,
    public: PublicParameters,
    effort: Effort,
    rng: np.random.Generator,
) -> tuple[Ints, float]:
    """Return the likeliest row of each record, and the misfit relative to that of decoys.

    A small ratio means a good match. Starts are sets of rows at fitting distances (``find_seeds``),
    and the main axes of the attacker's records laid on those of the release, with every choice of
    signs on the longest. Then records are matched one to one with rows, the map is fitted to the
    better part of the matches, and so on. Decoys are records whose columns were shuffled, which
    belong to no person: only if they fit much worse, there is a match.
    """
    if int(_TRUSTED_SHARE * len(X)) < min(X.shape[1], Y.shape[1]) + _MIN_SPARE_MATCHES:
        return np.full(len(X), -1), np.inf
    found, rows = _find_best_match(X, sample, Y, public, effort)
    decoys = []
    for _ in range(_DECOY_COUNT[effort]):
        false = rng.permuted(X, axis=0)
        decoys.append(_find_best_match(false, sample, Y, public, effort)[0])
    return rows, found / max(min(decoys), _TINY)


def is_believable(ratio: float) -> bool:
    """Return whether the misfit is so far below that of decoys that the match is believed."""
    return ratio < _MAX_BELIEVED_RATIO


def _find_best_match(
    X: Floats, sample: Floats, Y: Floats, public: PublicParameters, effort: Effort
) -> Match:
    """Return the match of least misfit over all starts."""
    starts = _find_starts(X, sample, Y, effort)
    for placed, rows in find_seeds(X, Y, public, effort, _FOLLOWED_STARTS[effort]):
        starts.append(procrustes(X[placed], Y[rows], X))
    return min((_follow_start(X, Y, T) for T in starts), key=lambda match: match[0])


def _find_starts(X: Floats, sample: Floats, Y: Floats, effort: Effort) -> list[Floats]:
    """Return where the records would be among the rows, for the best-fitting choices of signs."""
    records = np.concatenate([X, sample])
    x0, y0 = records.mean(axis=0), Y.mean(axis=0)
    Sx, Vx = _main_axes(records - x0)
    Sy, Vy = _main_axes(Y - y0)
    r = min(len(Sx), len(Sy))
    scale = np.divide(
        Sy[:r], Sx[:r], out=np.zeros(r), where=Sx[:r] > _MIN_RELATIVE_DEVIATION * Sx.max()
    )
    A = (X - x0) @ Vx[:, :r] * scale  # (k, r)
    skew = _skewness((records - x0) @ Vx[:, :r]) * _skewness((Y - y0) @ Vy[:, :r])
    A *= np.where(skew < 0, -1.0, 1.0)
    free = int(np.log2(max(_MAX_DISTANCES[effort] / (len(X) * len(Y)), 1.0)))
    free = min(free, r, _MAX_SIGNED_AXES)
    signs = np.array(list(product((1.0, -1.0), repeat=free)))  # (choices, free)
    signs = np.hstack([signs, np.ones((len(signs), r - free))])
    T = y0 + (A * signs[:, None]) @ Vy[:, :r].T  # (choices, k, s)
    square = find_nearest_rows(T.reshape(-1, T.shape[2]), Y, 1)[1].reshape(T.shape[:2])
    best = np.argsort([_trimmed_mean(one) for one in square], kind="stable")
    kept = (
        _FOLLOWED_STARTS[effort]
        if len(Y) <= _LARGE_RELEASE_ROWS
        else max(2, _FOLLOWED_STARTS[effort] // 4)
    )
    return list(T[best[:kept]])


def _follow_start(X: Floats, Y: Floats, T: Floats) -> Match:
    """Match and fit in turns: with a rotation and a scale, then with any linear map."""
    rows = _match_one_to_one(T, Y)
    best: Match = (np.inf, rows)
    for learn in (procrustes, ridge):
        for _ in range(_MAX_ROUNDS):
            T = _fit_map(X, Y, rows, T, learn)
            before, rows = rows, _match_one_to_one(T, Y)
            misfit = _misfit(T, Y[rows])
            if misfit < best[0]:
                best = misfit, rows
            if np.array_equal(before, rows):
                break
    return best


def _fit_map(
    X: Floats, Y: Floats, rows: Ints, T: Floats, learn: Callable[[Floats, Floats, Floats], Floats]
) -> Floats:
    """Fit the map to the matches of least residual and return the mapped records."""
    residual = np.sum((T - Y[rows]) ** 2, axis=1)
    trusted = np.argsort(residual, kind="stable")[: max(3, int(_TRUSTED_SHARE * len(X)))]
    return learn(X[trusted], Y[rows[trusted]], X)


def _match_one_to_one(T: Floats, Y: Floats) -> Ints:
    """Return the rows nearest to the points, no row twice."""
    from scipy.optimize import linear_sum_assignment

    near = np.unique(find_nearest_rows(T, Y, _CANDIDATES_PER_RECORD)[0])
    cost = compute_squared_distances(T, Y[near])
    point, place = linear_sum_assignment(cost)
    rows = np.full(len(T), near[0])  # only where there are fewer rows than records
    rows[point] = near[place]
    return rows


def _trimmed_mean(residual: Floats) -> float:
    """Return the mean of the smaller residuals."""
    return float(np.sort(residual)[: max(3, int(_TRUSTED_SHARE * len(residual)))].mean())


def _misfit(T: Floats, matched: Floats) -> float:
    """Return the trimmed mean square of the residuals, relative to the spread of the rows.

    Otherwise a map that shrinks all records into the densest part of the release would fit best.
    """
    spread = float(np.sum(matched.var(axis=0)))
    return _trimmed_mean(np.sum((T - matched) ** 2, axis=1)) / max(spread, _TINY)


def _main_axes(V: Floats) -> tuple[Floats, Floats]:
    """Return standard deviations along the main axes, longest first, and the axes as columns."""
    values, vectors = decompose_symmetric(V.T @ V / max(len(V) - 1, 1))
    return np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1]


def _skewness(T: Floats) -> Floats:
    """Return the third moment of each column."""
    return np.asarray(np.mean(T**3, axis=0))

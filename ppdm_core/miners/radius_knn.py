"""Classification by the votes of all released rows within a radius."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ppdm_core.miners._classifier import Classifier, check_parameter
from ppdm_core.miners._voting import count_nearest_votes
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.parameter_checks import is_count, is_number
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.distances import row_slices
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS, find_distribution

MOMENTS = ("paper", "exact", "consistent")
_CANCELLATION_SHARE = 1e-6  # of the squared lengths: smaller distances are recomputed
_TILE_QUERIES, _TILE_ROWS = 100, 2_048
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RadiusReport:
    """Predictions for a set of queries, and how they were made."""

    answers: NDArray[Any]  # (t,)
    neighbours: Ints  # (t,) rows inside the ball of each query
    fallbacks: int  # queries with an empty ball, for which the nearest rows voted
    majority_rate: float  # share of the queries with the most common class of the release

    @property
    def mean_neighbours(self) -> float:
        return float(self.neighbours.mean())


@dataclass(frozen=True, eq=False)
class Tile:
    """Rows whose distances are computed at once, in the order of their classes."""

    rows: slice
    present: Ints  # classes of these rows
    first: Ints  # first row of each class

    @classmethod
    def of(cls, rows: slice, codes: Ints) -> Tile:
        present, first = np.unique(codes[rows], return_index=True)
        return cls(rows, present, first)


class RadiusKNN(Classifier):
    """Votes of all released rows within a radius of the query, with weight 1/d^2.

    The squared radius is ``mean`` + 2 sqrt(``variance``) of the distortion d'^2 - d^2 of squared
    distances by the release (P0, eq. 12 and 13). Rows that equal the query outvote all others. If
    the ball is empty, also if the squared radius is not above 0, the ``k`` nearest rows vote;
    ``report`` counts how often. The defaults are those of a release without distortion.

    With much noise the ball holds nearly all rows, and then small classes lose: ``report`` contains
    the mean number of neighbours and how often the prediction is the most common class.

    **References**: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), sections 5.3 and 5.4.
    """

    def __init__(self, *, mean: float = 0.0, variance: float = 0.0, k: int = 5) -> None:
        self.mean = mean
        self.variance = variance
        self.k = k

    @classmethod
    def from_public(cls, public: PublicParameters, *, moments: str = "paper", k: int = 5) -> Self:
        """Return the miner for the published moments of the distortion.

        ``moments``: those over a random pair, as in the "paper" or with the "exact" variance of the
        dropped components; or "consistent" ones, of two records that differ by noise only.
        """
        mean, variance = read_distortion(public, moments)
        return cls(mean=mean, variance=variance, k=k)

    def _check_parameters(self) -> None:
        check_parameter(is_number(self.mean), self, "mean", "a number")
        is_variance = is_number(self.variance) and self.variance >= 0
        check_parameter(is_variance, self, "variance", "a number of at least 0")
        check_parameter(is_count(self.k), self, "k", "a whole number of at least 1")

    @property
    def squared_radius(self) -> float:
        return self.mean + 2.0 * math.sqrt(self.variance)

    def report(self, X: ArrayLike) -> RadiusReport:
        """Return the predictions for the queries, and how they were made."""
        votes, neighbours = self._count_votes(self._check_queries(X))
        codes = votes.argmax(axis=1)
        return RadiusReport(
            answers=self.classes_[codes],
            neighbours=neighbours,
            fallbacks=int(np.count_nonzero(neighbours == 0)),
            majority_rate=float(np.mean(codes == np.bincount(self._codes).argmax())),
        )

    def _learn(self, X: Floats, codes: Ints) -> None:
        order = np.argsort(codes, kind="stable")  # contiguous classes are summed fast
        X, codes = X[order], codes[order]
        self._rows = X
        self._codes = codes
        self._origin = X.mean(axis=0)  # |a|^2 - 2ab + |b|^2 cancels badly far from the origin
        Z = X - self._origin
        lengths = np.einsum("ij,ij->i", Z, Z)
        self._longest = float(lengths.max())
        # The product of such a row with (q, 1, |q|^2) is the squared distance from q.
        self._lifted = np.column_stack([-2.0 * Z, lengths, np.ones(len(Z))])
        starts = range(0, len(Z), _TILE_ROWS)
        self._tiles = [Tile.of(slice(start, start + _TILE_ROWS), self._codes) for start in starts]

    def _compute_votes(self, X: Floats) -> Floats:
        return self._count_votes(X)[0]

    def _count_votes(self, X: Floats) -> tuple[Floats, Ints]:
        """Return votes, (t, classes), and sizes of the balls, (t,)."""
        votes = np.zeros((len(X), len(self.classes_)))
        neighbours = np.zeros(len(X), dtype=np.int64)
        if self.squared_radius > 0:
            parts = [X[start : start + _TILE_QUERIES] for start in range(0, len(X), _TILE_QUERIES)]
            found = run_on_all_cores(self._count_in_ball, parts)
            votes = np.vstack([part for part, _ in found])
            neighbours = np.concatenate([part for _, part in found])
        empty = np.flatnonzero(neighbours == 0)
        if len(empty):
            classes = len(self.classes_)
            votes[empty] = count_nearest_votes(X[empty], self._rows, self._codes, classes, self.k)
        return votes, neighbours

    def _count_in_ball(self, X: Floats) -> tuple[Floats, Ints]:
        """Return votes and sizes of the balls for a few queries, in tiles that fit in the cache."""
        Q = X - self._origin
        lengths = np.einsum("ij,ij->i", Q, Q)
        lifted = np.column_stack([Q, np.ones(len(Q)), lengths])
        near = _CANCELLATION_SHARE * (float(lengths.max()) + self._longest)
        votes = np.zeros((len(X), len(self.classes_)))
        same, neighbours = np.zeros_like(votes), np.zeros(len(X), dtype=np.int64)
        for tile in self._tiles:
            rows, present, first = tile.rows, tile.present, tile.first
            D = lifted @ self._lifted[rows].T  # (t, rows)
            if D.min() <= near:
                recompute_distances(D, np.argwhere(near >= D), X, self._rows[rows])
                is_same = D == 0.0
                same[:, present] += np.add.reduceat(is_same, first, axis=1, dtype=np.float64)
                neighbours += np.count_nonzero(is_same, axis=1)
                D[is_same] = np.inf  # counted already
            is_inside = self.squared_radius >= D
            neighbours += np.count_nonzero(is_inside, axis=1)
            np.divide(is_inside, D, out=D)
            votes[:, present] += np.add.reduceat(D, first, axis=1)
        return np.where(same.any(axis=1, keepdims=True), same, votes), neighbours


def run_on_all_cores(work: Callable[[Floats], T], parts: list[Floats]) -> list[T]:
    """Return the results of all parts, which do not depend on the cores; limits BLAS threads."""
    if len(parts) == 1:
        return [work(parts[0])]
    limited = get_thread_controller().limit(limits=1, user_api="blas")
    with limited, ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, parts))


@lru_cache(maxsize=1)
def get_thread_controller() -> Any:
    """Return the controller of BLAS threads, once: creating it is slow."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def recompute_distances(D: Floats, pairs: Ints, A: Floats, B: Floats) -> None:
    """Recompute squared distances of these pairs in ``D``, by differences."""
    for some in row_slices(len(pairs), 2 * max(A.shape[1], 1)):
        i, j = pairs[some].T
        D[i, j] = np.square(A[i] - B[j]).sum(axis=1)


def read_distortion(public: PublicParameters, moments: str) -> tuple[float, float]:
    """Return mean and variance of d'^2 - d^2, for a clean query and a released row."""
    if moments not in MOMENTS:
        raise ValueError(f"'moments' must be one of {', '.join(MOMENTS)}. Got {moments!r}.")
    if moments == "consistent":
        return compute_noise_distortion(public)
    names = ("distance_distortion_mean", "distance_distortion_variance")
    mean, variance = (public.facts.get(name) for name in names)
    if moments == "exact":
        variance = public.facts.get("distance_distortion_variance_exact")
    if mean is None or variance is None:
        raise NotApplicable(
            f"{public.method} publishes no such moments of the distance distortion."
        )
    return float(mean), float(variance)


def compute_noise_distortion(public: PublicParameters) -> tuple[float, float]:
    """Return the moments for two equal records: 2 sum b^2 and 20 sum b^4 for Laplace noise."""
    if public.scales is None or public.law not in SAMPLED_DISTRIBUTIONS:
        raise NotApplicable(f"{public.method} publishes no known noise distribution.")
    nu = public.facts.get("nu")
    law = find_distribution(public.law, None if nu is None else float(nu))
    if not math.isfinite(law.fourth_moment):
        raise NotApplicable(f"Squares of the noise of {public.method} have no variance.")
    squares = law.fourth_moment - law.variance**2
    b = public.scales
    return law.variance * float(np.sum(b**2)), squares * float(np.sum(b**4))

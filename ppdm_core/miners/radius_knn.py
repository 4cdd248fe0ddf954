"""The rows that noise may have scattered from a query's neighbourhood vote on its class."""

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

from ppdm_core.miners._classifier import Classifier, check, is_count
from ppdm_core.miners._voting import nearest_votes
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.parameter_checks import is_number
from ppdm_core.model.release import Public
from ppdm_core.numerics.distances import row_slices
from ppdm_core.numerics.distributions import DRAWN, law_named

MOMENTS = ("paper", "exact", "consistent")
_NEAR = 1e-6  # of the squared lengths: nearer rows are measured again without cancellation
_QUERIES, _ROWS = 100, 2_048  # of a tile
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RadiusReport:
    """How a set of queries was answered."""

    answers: NDArray[Any]  # (t,)
    neighbours: Ints  # (t,) rows inside the ball of each query
    fallbacks: int  # queries with an empty ball, answered by the nearest rows
    majority_rate: float  # share of the queries that are given the commonest class of the release

    @property
    def mean_neighbours(self) -> float:
        return float(self.neighbours.mean())


@dataclass(frozen=True, eq=False)
class Tile:
    """Rows that are measured at once, in the order of their classes."""

    rows: slice
    present: Ints  # classes of these rows
    first: Ints  # where each of them begins

    @classmethod
    def of(cls, rows: slice, codes: Ints) -> Tile:
        present, first = np.unique(codes[rows], return_index=True)
        return cls(rows, present, first)


class RadiusKNN(Classifier):
    """All released rows within a radius of the query vote, each with weight 1/d^2.

    The squared radius is ``mean`` + 2 sqrt(``variance``): of the distortion d'^2 - d^2 of squared
    distances by the release (P0, eq. 12 and 13). A row that equals the query outvotes all that do
    not. With an empty ball, also when the squared radius is not above 0, the ``k`` nearest rows
    vote; ``report`` counts how often. The defaults are those of a release without any distortion.

    With much noise the ball holds nearly all rows, and then small classes lose: ``report`` tells
    the mean number of neighbours and how often the answer is the commonest class.

    **References**: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), sections 5.3 and 5.4.
    """

    def __init__(self, *, mean: float = 0.0, variance: float = 0.0, k: int = 5) -> None:
        self.mean = mean
        self.variance = variance
        self.k = k

    @classmethod
    def from_public(cls, public: Public, *, moments: str = "paper", k: int = 5) -> Self:
        """``moments``: those over a random pair, as "paper" has them or with the "exact" variance
        of what was dropped; or "consistent" ones, of two records that are alike but for noise."""
        mean, variance = distortion(public, moments)
        return cls(mean=mean, variance=variance, k=k)

    def _check_parameters(self) -> None:
        check(is_number(self.mean), self, "mean", "a number")
        is_variance = is_number(self.variance) and self.variance >= 0
        check(is_variance, self, "variance", "a number of at least 0")
        check(is_count(self.k), self, "k", "a whole number of at least 1")

    @property
    def squared_radius(self) -> float:
        return self.mean + 2.0 * math.sqrt(self.variance)

    def report(self, X: ArrayLike) -> RadiusReport:
        votes, neighbours = self._counted(self._checked(X))
        codes = votes.argmax(axis=1)
        return RadiusReport(
            answers=self.classes_[codes],
            neighbours=neighbours,
            fallbacks=int(np.count_nonzero(neighbours == 0)),
            majority_rate=float(np.mean(codes == np.bincount(self._codes).argmax())),
        )

    def _learn(self, X: Floats, codes: Ints) -> None:
        order = np.argsort(codes, kind="stable")  # a class in one piece is summed up quickly
        X, codes = X[order], codes[order]
        self._rows = X
        self._codes = codes
        self._origin = X.mean(axis=0)  # |a|^2 - 2ab + |b|^2 cancels badly far from the origin
        Z = X - self._origin
        lengths = np.einsum("ij,ij->i", Z, Z)
        self._longest = float(lengths.max())
        # The product of such a row with (q, 1, |q|^2) is the squared distance from q.
        self._lifted = np.column_stack([-2.0 * Z, lengths, np.ones(len(Z))])
        starts = range(0, len(Z), _ROWS)
        self._tiles = [Tile.of(slice(start, start + _ROWS), self._codes) for start in starts]

    def _votes(self, X: Floats) -> Floats:
        return self._counted(X)[0]

    def _counted(self, X: Floats) -> tuple[Floats, Ints]:
        """(t, classes) votes and (t,) sizes of the balls."""
        votes = np.zeros((len(X), len(self.classes_)))
        neighbours = np.zeros(len(X), dtype=np.int64)
        if self.squared_radius > 0:
            parts = [X[start : start + _QUERIES] for start in range(0, len(X), _QUERIES)]
            found = on_all_cores(self._ball, parts)
            votes = np.vstack([part for part, _ in found])
            neighbours = np.concatenate([part for _, part in found])
        alone = np.flatnonzero(neighbours == 0)
        if len(alone):
            classes = len(self.classes_)
            votes[alone] = nearest_votes(X[alone], self._rows, self._codes, classes, self.k)
        return votes, neighbours

    def _ball(self, X: Floats) -> tuple[Floats, Ints]:
        """The same for a few queries, with tiles of distances that a processor keeps at hand."""
        Q = X - self._origin
        lengths = np.einsum("ij,ij->i", Q, Q)
        lifted = np.column_stack([Q, np.ones(len(Q)), lengths])
        near = _NEAR * (float(lengths.max()) + self._longest)
        votes = np.zeros((len(X), len(self.classes_)))
        same, neighbours = np.zeros_like(votes), np.zeros(len(X), dtype=np.int64)
        for tile in self._tiles:
            rows, present, first = tile.rows, tile.present, tile.first
            D = lifted @ self._lifted[rows].T  # (t, rows)
            if D.min() <= near:
                correct(D, np.argwhere(near >= D), X, self._rows[rows])
                is_same = D == 0.0
                same[:, present] += np.add.reduceat(is_same, first, axis=1, dtype=np.float64)
                neighbours += np.count_nonzero(is_same, axis=1)
                D[is_same] = np.inf  # counted already
            is_inside = self.squared_radius >= D
            neighbours += np.count_nonzero(is_inside, axis=1)
            np.divide(is_inside, D, out=D)
            votes[:, present] += np.add.reduceat(D, first, axis=1)
        return np.where(same.any(axis=1, keepdims=True), same, votes), neighbours


def on_all_cores(work: Callable[[Floats], T], parts: list[Floats]) -> list[T]:
    """Parts are the same for any number of cores; BLAS must not start threads of its own."""
    if len(parts) == 1:
        return [work(parts[0])]
    limited = thread_controller().limit(limits=1, user_api="blas")
    with limited, ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, parts))


@lru_cache(maxsize=1)
def thread_controller() -> Any:
    """To find the libraries takes as long as a tenth of the queries."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def correct(D: Floats, pairs: Ints, A: Floats, B: Floats) -> None:
    """Measure these pairs again, by differences."""
    for some in row_slices(len(pairs), 2 * max(A.shape[1], 1)):
        i, j = pairs[some].T
        D[i, j] = np.square(A[i] - B[j]).sum(axis=1)


def distortion(public: Public, moments: str) -> tuple[float, float]:
    """Mean and variance of d'^2 - d^2, of a clean query and a released row."""
    if moments not in MOMENTS:
        raise ValueError(f"'moments' must be one of {', '.join(MOMENTS)}. Got {moments!r}.")
    if moments == "consistent":
        return of_noise_alone(public)
    names = ("distance_distortion_mean", "distance_distortion_variance")
    mean, variance = (public.facts.get(name) for name in names)
    if moments == "exact":
        variance = public.facts.get("distance_distortion_variance_exact")
    if mean is None or variance is None:
        raise NotApplicable(
            f"{public.method} publishes no such moments of the distance distortion."
        )
    return float(mean), float(variance)


def of_noise_alone(public: Public) -> tuple[float, float]:
    """Of two records that are equal in what is kept: 2 sum b^2 and 20 sum b^4 for Laplace noise."""
    if public.scales is None or public.law not in DRAWN:
        raise NotApplicable(f"{public.method} publishes no noise law that is known here.")
    nu = public.facts.get("nu")
    law = law_named(public.law, None if nu is None else float(nu))
    if not math.isfinite(law.fourth_moment):
        raise NotApplicable(f"Squares of the noise of {public.method} have no variance.")
    squares = law.fourth_moment - law.variance**2
    b = public.scales
    return law.variance * float(np.sum(b**2)), squares * float(np.sum(b**4))

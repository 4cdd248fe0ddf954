"""Classification by the votes of the nearest released rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import Classifier, check_parameter
from ppdm_core.miners._voting import (
    compute_weights,
    find_nearest,
    sum_first_votes,
    sum_votes,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.parameter_checks import is_count
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.folds import assign_folds

# For the choice of k. The standard error of a share is at most 0.8 %, with 1,000 rows 1.6 %.
_MIN_TEST_ROWS, _MAX_TEST_ROWS = 1_000, 4_000
_MAX_TEST_NEIGHBOURS = 4_000_000  # of all test rows; more only for the minimum of rows
_CANDIDATES = (1, 3, 5, 7, 11, 15, 21, 31, 45, 65, 95)  # for k, in every table
_MAX_NEIGHBOUR_SHARE = 0.1  # of the rows: larger candidates, in larger tables


class KNN(Classifier):
    """Votes of the ``k`` nearest rows with weight 1/d^2, or 1 if ``weights`` is "uniform".

    ``k`` = "cv" chooses the one of ``candidates`` that classifies most of the released rows
    correctly, each by the rows of the other ``folds`` (of equally good ones, the smallest). At most
    4,000 rows are classified, in tables of more than 10,000 rows fewer, but at least 1,000. These
    are noisy and the queries are not, so the choice is a heuristic. The default candidates are odd
    numbers with a ratio of about sqrt(2), from 1 to 95, or to a tenth of the rows if that is more.
    If weights depend on distance, rows that equal the query outvote all others.
    """

    k_: int

    def __init__(
        self,
        *,
        k: int | str = 5,
        weights: str = "distance",
        candidates: Sequence[int] | None = None,
        folds: int = 5,
    ) -> None:
        self.k = k
        self.weights = weights
        self.candidates = candidates
        self.folds = folds

    @classmethod
    def from_public(
        cls, public: PublicParameters, *, k: int | str = 5, weights: str = "distance"
    ) -> Self:
        """Return the miner, which needs no published parameters."""
        return cls(k=k, weights=weights)

    def _check_parameters(self) -> None:
        check_parameter(
            self.k == "cv" or is_count(self.k), self, "k", 'a whole number above 0 or "cv"'
        )
        is_known = self.weights in ("distance", "uniform")
        check_parameter(is_known, self, "weights", '"distance" or "uniform"')
        are_counts = self.candidates is None or (
            len(self.candidates) > 0 and all(map(is_count, self.candidates))
        )
        check_parameter(are_counts, self, "candidates", "None or whole numbers above 0")
        is_split = is_count(self.folds) and self.folds >= 2
        check_parameter(is_split, self, "folds", "a whole number of at least 2")

    def _learn(self, X: Floats, codes: Ints) -> None:
        self._rows = X
        self._codes = codes
        self.k_ = int(self.k) if self.k != "cv" else self._choose_k()

    def _compute_votes(self, X: Floats) -> Floats:
        votes = [
            sum_votes(self._compute_weights(square), self._codes[place], len(self.classes_))
            for _, place, square in find_nearest(X, self._rows, self.k_)
        ]
        return np.concatenate(votes)

    def _compute_weights(self, square: Floats) -> Floats:
        return compute_weights(square) if self.weights == "distance" else np.ones_like(square)

    def _choose_k(self) -> int:
        n = len(self._rows)
        if n < 2:
            return 1
        fold = assign_folds(self._codes, self.folds, np.random.default_rng(0))
        counts = list_candidates(n) if self.candidates is None else sorted(set(self.candidates))
        wanted = max(_MIN_TEST_ROWS, _MAX_TEST_NEIGHBOURS // counts[-1])
        test_rows = np.random.default_rng(0).permutation(n)[: min(wanted, _MAX_TEST_ROWS)]
        right = np.zeros(len(counts), dtype=np.int64)
        for held_out in np.unique(fold[test_rows]):
            others = np.flatnonzero(fold != held_out)
            right += self._count_correct(test_rows[fold[test_rows] == held_out], others, counts)
        return counts[int(right.argmax())]

    def _count_correct(self, test_rows: Ints, others: Ints, counts: Sequence[int]) -> Ints:
        """Return for each count of neighbours how many test rows are classified correctly."""
        classes, true = len(self.classes_), self._codes[test_rows]
        right = np.zeros(len(counts), dtype=np.int64)
        for part, place, square in find_nearest(
            self._rows[test_rows], self._rows[others], counts[-1]
        ):
            # The weight of a row is the same for every k: an equal row comes first for all of them.
            weights = self._compute_weights(square)
            votes = sum_first_votes(weights, self._codes[others[place]], classes, np.array(counts))
            right += np.count_nonzero(votes.argmax(axis=2) == true[part, None], axis=0)
        return right


def list_candidates(n: int) -> list[int]:
    """Return the numbers of neighbours among which the default chooses for ``n`` rows."""
    counts = list(_CANDIDATES)
    while (larger := int(counts[-1] * 2**0.5) | 1) <= n * _MAX_NEIGHBOUR_SHARE:
        counts.append(larger)
    return counts

"""Classification by the votes of the nearest released rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import Classifier, check_parameter
from ppdm_core.miners._voting import (
    compute_weights,
    encode_one_hot,
    find_nearest,
    sum_votes,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.parameter_checks import is_count
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.distances import row_slices
from ppdm_core.numerics.folds import assign_folds

CANDIDATES = (1, 3, 5, 7, 11, 15, 21, 31, 45, 65, 95)
_MAX_TEST_ROWS = 4_000  # for the choice of k: the standard error of a share is below 0.8 %


class KNN(Classifier):
    """Votes of the ``k`` nearest rows with weight 1/d^2, or 1 if ``weights`` is "uniform".

    ``k`` = "cv" chooses the one of ``candidates`` that classifies most of the released rows
    correctly, each by the rows of the other ``folds`` (of equally good ones, the smallest). At most
    4,000 rows are classified. These are noisy and the queries are not, so the choice is a
    heuristic. If weights depend on distance, rows that equal the query outvote all others.
    """

    k_: int

    def __init__(
        self,
        *,
        k: int | str = 5,
        weights: str = "distance",
        candidates: Sequence[int] = CANDIDATES,
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
        are_counts = len(self.candidates) > 0 and all(map(is_count, self.candidates))
        check_parameter(are_counts, self, "candidates", "whole numbers above 0")
        is_split = is_count(self.folds) and self.folds >= 2
        check_parameter(is_split, self, "folds", "a whole number of at least 2")

    def _learn(self, X: Floats, codes: Ints) -> None:
        self._rows = X
        self._codes = codes
        self.k_ = int(self.k) if self.k != "cv" else self._choose_k()

    def _compute_votes(self, X: Floats) -> Floats:
        place, square = find_nearest(X, self._rows, self.k_)
        return sum_votes(self._compute_weights(square), self._codes[place], len(self.classes_))

    def _compute_weights(self, square: Floats) -> Floats:
        return compute_weights(square) if self.weights == "distance" else np.ones_like(square)

    def _choose_k(self) -> int:
        n = len(self._rows)
        if n < 2:
            return 1
        fold = assign_folds(self._codes, self.folds, np.random.default_rng(0))
        test_rows = np.random.default_rng(0).permutation(n)[:_MAX_TEST_ROWS]
        counts = sorted(set(self.candidates))
        right = np.zeros(len(counts), dtype=np.int64)
        for held_out in np.unique(fold[test_rows]):
            others = np.flatnonzero(fold != held_out)
            right += self._count_correct(test_rows[fold[test_rows] == held_out], others, counts)
        return counts[int(right.argmax())]

    def _count_correct(self, test_rows: Ints, others: Ints, counts: Sequence[int]) -> Ints:
        """Return for each count of neighbours how many test rows are classified correctly."""
        classes = len(self.classes_)
        place, square = find_nearest(self._rows[test_rows], self._rows[others], counts[-1])
        last = np.minimum(counts, place.shape[1]) - 1
        right = np.zeros(len(counts), dtype=np.int64)
        for part in row_slices(len(test_rows), place.shape[1] * classes):
            codes = self._codes[others[place[part]]]  # (t, k)
            sides = encode_one_hot(codes.ravel(), classes).reshape(*codes.shape, classes)
            # The weight of a row is the same for every k: an equal row comes first for all of them.
            votes = np.cumsum(self._compute_weights(square[part])[:, :, None] * sides, axis=1)[
                :, last
            ]
            predicted = votes.argmax(axis=2)  # (t, counts)
            right += np.count_nonzero(predicted == self._codes[test_rows[part], None], axis=0)
        return right

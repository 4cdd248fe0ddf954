"""The nearest released rows vote on the class of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import Classifier, check, is_count
from ppdm_core.miners._voting import nearest, one_hot, stratified_folds, summed, weights_of
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.release import Public
from ppdm_core.numerics.distances import row_slices

CANDIDATES = (1, 3, 5, 7, 11, 15, 21, 31, 45, 65, 95)
_ASKED = 4_000  # rows that a choice of k is tried on: a share of them is within 0.8 % of the truth


class KNN(Classifier):
    """The ``k`` nearest rows vote, with weight 1/d^2 or, if ``weights`` is "uniform", alike.

    ``k`` = "cv" takes the one of ``candidates`` that classifies most of the released rows
    correctly, each by the rows of the other ``folds`` (of equally good ones the smallest). At most
    4,000 rows are asked. Those are noisy and the queries will not be, so the choice is a guess.
    A row that equals the query outvotes all that do not, if weights depend on distance.
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
    def from_public(cls, public: Public, *, k: int | str = 5, weights: str = "distance") -> Self:
        """Neighbours need nothing of what is published."""
        return cls(k=k, weights=weights)

    def _check_parameters(self) -> None:
        check(self.k == "cv" or is_count(self.k), self, "k", 'a whole number above 0 or "cv"')
        is_known = self.weights in ("distance", "uniform")
        check(is_known, self, "weights", '"distance" or "uniform"')
        are_counts = len(self.candidates) > 0 and all(map(is_count, self.candidates))
        check(are_counts, self, "candidates", "whole numbers above 0")
        is_split = is_count(self.folds) and self.folds >= 2
        check(is_split, self, "folds", "a whole number of at least 2")

    def _learn(self, X: Floats, codes: Ints) -> None:
        self._rows = X
        self._codes = codes
        self.k_ = int(self.k) if self.k != "cv" else self._chosen()

    def _votes(self, X: Floats) -> Floats:
        place, square = nearest(X, self._rows, self.k_)
        return summed(self._weights(square), self._codes[place], len(self.classes_))

    def _weights(self, square: Floats) -> Floats:
        return weights_of(square) if self.weights == "distance" else np.ones_like(square)

    def _chosen(self) -> int:
        n = len(self._rows)
        if n < 2:
            return 1
        fold = stratified_folds(self._codes, min(self.folds, n))
        asked = np.random.default_rng(0).permutation(n)[:_ASKED]
        counts = sorted(set(self.candidates))
        right = np.zeros(len(counts), dtype=np.int64)
        for held_out in np.unique(fold[asked]):
            others = np.flatnonzero(fold != held_out)
            right += self._right(asked[fold[asked] == held_out], others, counts)
        return counts[int(right.argmax())]

    def _right(self, asked: Ints, others: Ints, counts: Sequence[int]) -> Ints:
        """How many of those asked each count of neighbours gets right."""
        classes = len(self.classes_)
        place, square = nearest(self._rows[asked], self._rows[others], counts[-1])
        last = np.minimum(counts, place.shape[1]) - 1
        right = np.zeros(len(counts), dtype=np.int64)
        for part in row_slices(len(asked), place.shape[1] * classes):
            codes = self._codes[others[place[part]]]  # (t, k)
            sides = one_hot(codes.ravel(), classes).reshape(*codes.shape, classes)
            # The weight of a row is the same for every k: an equal row comes first for all of them.
            votes = np.cumsum(self._weights(square[part])[:, :, None] * sides, axis=1)[:, last]
            answers = votes.argmax(axis=2)  # (t, counts)
            right += np.count_nonzero(answers == self._codes[asked[part], None], axis=0)
        return right

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ppdm_core.distances import squared_distances
from ppdm_core.errors import NotApplicable
from ppdm_core.metrics._metric import Better, Kind, Told, check_tables, percent
from ppdm_core.public_map import has_map, invert, project
from ppdm_core.types import Codes, Floats, Ints, Public

_NEIGHBOURS = 5
_FOLDS = 5
_ASKED = 2_000  # records that are classified, by all others


@dataclass(frozen=True)
class KnnAccuracy:
    """Share of records whose label the 5 nearest released rows of the other folds vote for.

    A recipient classifies own records. So with a public map the test records are the clean
    projections of the originals; otherwise they can only be released rows. Five stratified
    folds of the records; a row made from a record of the fold does not vote on it. A tied vote
    goes to the smallest label. Of more than 2,000 records that many random ones are classified,
    by all rows of the other folds.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008) and Mukherjee, Chen,
    Gangopadhyay (2008) use k = 5 as their baseline classifier.
    """

    name: ClassVar[str] = "knn_accuracy"
    kind: ClassVar[Kind] = "utility"
    better: ClassVar[Better] = "up"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["release"]] = "release"
    most: ClassVar[int] = _ASKED
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "share of records that 5 nearest neighbours classify correctly"

    def measure(
        self,
        X: Floats,
        label: Codes,
        Y: Floats,
        public: Public,
        rng: np.random.Generator,
        source: Ints | None = None,
    ) -> float:
        return float(np.mean(self.correct(X, label, Y, public, rng, source)))

    def correct(
        self,
        X: Floats,
        label: Codes,
        Y: Floats,
        public: Public,
        rng: np.random.Generator,
        source: Ints | None = None,
    ) -> NDArray[np.bool_]:
        """Which of the records that are asked about are classified correctly."""
        if source is None:
            source = np.arange(len(X))
        elif not has_map(public):
            raise NotApplicable(f"{self.name} needs a public map or a row for each record.")
        check_tables(self.name, X[source], Y, same_shape=False)
        return _cross_validated(Y, _test_records(X, Y, public), label, source, rng)

    def original(self, X: Floats, label: Codes, rng: np.random.Generator) -> float:
        check_tables(self.name, X, X, same_shape=True)
        return float(np.mean(_cross_validated(X, X, label, np.arange(len(X)), rng)))

    def baseline(self, label: Codes) -> float:
        """Always answer the commonest label."""
        _check_label(label)
        return float(np.bincount(label).max() / len(label))

    def sentence(self, told: Told) -> str:
        on_original = (
            "" if told.original is None else f", {percent(told.original)} on the original table"
        )
        return (
            f"Five nearest neighbours classify {percent(told.value)} of the records correctly"
            f"{on_original}; always answering the commonest label, {percent(told.baseline)}."
        )


def _test_records(X: Floats, Y: Floats, public: Public) -> Floats:
    if not has_map(public):
        return Y
    T = project(public, X)
    return invert(public, T) if public.space == "original" else T


def _cross_validated(
    train: Floats, test: Floats, label: Codes, source: Ints, rng: np.random.Generator
) -> NDArray[np.bool_]:
    _check_label(label)
    n = len(label)
    fold = _stratified_folds(label, rng)
    some = np.arange(n) if n <= _ASKED else np.sort(rng.choice(n, _ASKED, replace=False))
    correct = np.zeros(n, dtype=np.bool_)
    for held_out in np.unique(fold):
        asked = some[fold[some] == held_out]
        others = np.flatnonzero(fold[source] != held_out)
        if not len(others):  # few rows, all of them made from this fold
            continue
        answer = _vote(train[others], label[source[others]], test[asked])
        correct[asked] = answer == label[asked]
    return correct[some]


def _check_label(label: Codes) -> None:
    if len(label) < 2 or bool((label < 0).any()):
        raise NotApplicable("knn_accuracy needs two records or more, each with a label.")


def _stratified_folds(label: Codes, rng: np.random.Generator) -> Ints:
    """Deal the shuffled records of each class out in turn."""
    order = np.lexsort((rng.random(len(label)), label))
    fold = np.empty(len(label), dtype=np.int64)
    fold[order] = np.arange(len(label)) % min(_FOLDS, len(label))
    return fold


def _vote(train: Floats, label: Codes, asked: Floats) -> Ints:
    k = min(_NEIGHBOURS, len(train))
    answer = np.empty(len(asked), dtype=np.int64)
    classes = np.arange(label.max() + 1)
    for rows, D in squared_distances(asked, train):
        neighbours = np.argpartition(D, k - 1, axis=1)[:, :k]  # (rows, k)
        votes = (label[neighbours][:, :, None] == classes).sum(axis=1)  # (rows, classes)
        answer[rows] = votes.argmax(axis=1)  # the first largest is the smallest label
    return answer

"""Classifiers that are trained on a release and asked about records as they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Bools, Compared, Measured
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.metrics._placement import placed
from ppdm_core.metrics._release import (
    OfRelease,
    check_labelled,
    mean_of,
    on_original,
    some_of,
)
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import Public

FOLDS = 5
ASKED = 2_000  # records that are classified


@dataclass(frozen=True, eq=False)
class Answered:
    """What a classifier says of the records that it was asked about."""

    asked: Ints
    correct: Bools
    notes: Mapping[str, float]


class Accuracy(OfRelease):
    """Share of records that a classifier gets right, trained on rows of other records.

    Five stratified folds of the records, the same ones for every classifier, release and
    original; a row that was made from a record of the fold is not learned from. Of more than
    2,000 records that many random ones are asked about. A recipient classifies own records, so
    these are asked about without noise: as the public map shows them; where the map is secret, as
    the steward shows them who holds it (the recipient asks for that); where the columns are the
    original ones, as they are; else placed among the rows by their distances to the records
    behind them.
    """

    is_rate: ClassVar[bool] = True
    needs_label: ClassVar[bool] = True
    most: ClassVar[int] = ASKED
    most_rows: ClassVar[int | None] = None  # that are learned from
    name: ClassVar[str]
    describe: ClassVar[str]
    who: ClassVar[str]  # in the middle of a sentence
    verb: ClassVar[str] = "classifies"

    @abstractmethod
    def classify(
        self, public: Public, rows: Floats, label: Codes, asked: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        """The labels of the asked records, and what else can be told of them."""

    def answered(self, compared: Compared) -> Answered:
        check_labelled(self.name, compared)
        return compared.once(self.name, lambda: self._cross_validated(compared))

    def measure(self, compared: Compared) -> Measured:
        answered = self.answered(compared)
        measured = mean_of(answered.asked, answered.correct.astype(np.float64))
        return Measured(measured.value, measured.on, answered.notes)

    def original(self, compared: Compared) -> float:
        return float(np.mean(self.answered(compared.original).correct))

    def baseline(self, compared: Compared) -> float:
        """Always answer the commonest label."""
        check_labelled(self.name, compared)
        return float(np.bincount(compared.label).max() / len(compared.label))

    def sentence(self, told: Told) -> str:
        return (
            f"{self.who[0].upper()}{self.who[1:]} {self.verb} {percent(told.value)} of the "
            f"records correctly{on_original(told.original)}; always answering the commonest "
            f"label, {percent(told.baseline)}."
        )

    def _cross_validated(self, compared: Compared) -> Answered:
        fold, asked = exam(compared)
        rng = compared.rng(f"rows of {self.name}")
        correct = np.zeros(len(asked), dtype=np.bool_)
        notes: dict[str, float] = {}
        for held_out in np.unique(fold[asked]):
            mine = np.flatnonzero(fold[asked] == held_out)
            others = np.flatnonzero(fold[compared.records] != held_out)
            if not len(others):  # few rows, all of them made from this fold
                continue
            tests = in_space(self.name, compared, asked[mine], others)
            if self.most_rows is not None:
                others = others[some_of(len(others), self.most_rows, rng)]
            label = compared.row_label[others]
            told: Mapping[str, float] = {}
            answer = label[:1].astype(np.int64)
            if len(np.unique(label)) > 1:
                answer, told = self.classify(compared.public, compared.rows[others], label, tests)
            correct[mine] = answer == compared.label[asked[mine]]
            for key, value in told.items():
                notes[key] = notes.get(key, 0.0) + value * len(mine) / len(asked)
        return Answered(asked, correct, notes)


def exam(compared: Compared) -> tuple[Ints, Ints]:
    """The fold of each record, and the records that are asked about."""
    table = compared.original

    def drawn() -> tuple[Ints, Ints]:
        rng = table.rng("folds")
        return stratified_folds(table.label, rng), some_of(len(table.label), ASKED, rng)

    return table.once("exam", drawn)


def stratified_folds(label: Codes, rng: np.random.Generator) -> Ints:
    """Deal the shuffled records of each class out in turn."""
    order = np.lexsort((rng.random(len(label)), label))
    fold = np.empty(len(label), dtype=np.int64)
    fold[order] = np.arange(len(label)) % min(FOLDS, len(label))
    return fold


def in_space(name: str, compared: Compared, asked: Ints, others: Ints) -> Floats:
    """Records among rows; never a record's own row, which others would not have."""
    clean = compared.clean(asked, by_steward=True)
    if clean is not None:
        return clean
    if compared.source is not None:
        raise NotApplicable(f"{name} needs a public map, or one row for each record.")
    fold = f"placed {asked[0]}"  # one record names its fold, which all classifiers share
    return compared.once(fold, lambda: placed(compared, asked, others))

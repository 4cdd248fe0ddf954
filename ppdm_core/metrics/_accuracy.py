"""Accuracy of classifiers that are trained on a release and tested on records without noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric, SentenceValues
from ppdm_core.metrics._placement import place_records
from ppdm_core.metrics._release import check_labels, measure_mean, sample_indices
from ppdm_core.model.arrays import Bools, Codes, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.folds import assign_folds

FOLDS = 5
MAX_RECORDS = 2_000  # test records


@dataclass(frozen=True, eq=False)
class Predictions:
    """Which test records a classifier predicts correctly."""

    records: Ints
    correct: Bools
    notes: Mapping[str, float]


class Accuracy(ReleaseMetric):
    """Share of records that a classifier predicts correctly, trained on rows of other records.

    The records are split into five stratified folds, the same for every classifier, the release
    and the original. A row that was made from a record of the test fold is not used for training.
    If there are more than 2,000 records, a random sample of 2,000 is tested. A recipient
    classifies records of its own, so test records carry no noise. They are mapped by the public
    map; if the map is secret, by the map of the steward (whom the recipient asks for that); if the
    release has the original columns, they are used unchanged; otherwise they are placed among the
    rows by their distances to the records behind the rows.
    """

    template = (
        "{story} {value} of the records correctly{original}; always predicting the most common "
        "label, {baseline}."
    )
    interval_method = "mean"
    needs_label = True
    max_records = MAX_RECORDS
    max_training_rows: ClassVar[int | None] = None
    subject: ClassVar[str]  # of the sentence, in lower case
    verb: ClassVar[str] = "classifies"

    @abstractmethod
    def classify(
        self, public: PublicParameters, rows: Floats, label: Codes, queries: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        """Return the predicted labels of the queries, and notes about them by name."""

    def cross_validate(self, comparison: ReleaseComparison) -> Predictions:
        """Return the predictions for all test records, computed once for each comparison."""
        check_labels(self.name, comparison)
        return comparison.get_or_compute(self.name, lambda: self._cross_validate(comparison))

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        predictions = self.cross_validate(comparison)
        mean = measure_mean(predictions.records, predictions.correct.astype(np.float64))
        return replace(mean, notes=predictions.notes)

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the share of the most common label, which a constant prediction gets right."""
        check_labels(self.name, comparison)
        return float(np.bincount(comparison.label).max() / len(comparison.label))

    def sentence(self, values: SentenceValues) -> str:
        story = f"{self.subject[0].upper()}{self.subject[1:]} {self.verb}"
        return super().sentence(replace(values, story=story))

    def _cross_validate(self, comparison: ReleaseComparison) -> Predictions:
        fold, test_records = split_folds(comparison)
        rng = comparison.rng(f"rows of {self.name}")
        correct = np.zeros(len(test_records), dtype=np.bool_)
        notes: dict[str, float] = {}
        for held_out in np.unique(fold[test_records]):
            mine = np.flatnonzero(fold[test_records] == held_out)
            others = np.flatnonzero(fold[comparison.records] != held_out)
            if not len(others):  # few rows, all of them made from this fold
                continue
            queries = locate_queries(self.name, comparison, test_records[mine], others)
            if self.max_training_rows is not None:
                others = others[sample_indices(len(others), self.max_training_rows, rng)]
            label = comparison.row_label[others]
            fold_notes: Mapping[str, float] = {}
            predicted = label[:1].astype(np.int64)
            if len(np.unique(label)) > 1:
                predicted, fold_notes = self.classify(
                    comparison.public, comparison.rows[others], label, queries
                )
            correct[mine] = predicted == comparison.label[test_records[mine]]
            for key, value in fold_notes.items():
                notes[key] = notes.get(key, 0.0) + value * len(mine) / len(test_records)
        return Predictions(test_records, correct, notes)


def split_folds(comparison: ReleaseComparison) -> tuple[Ints, Ints]:
    """Return the fold of each record, and the test records."""
    table = comparison.original

    def draw() -> tuple[Ints, Ints]:
        rng = table.rng("folds")
        return assign_folds(table.label, FOLDS, rng), sample_indices(
            len(table.label), MAX_RECORDS, rng
        )

    return table.get_or_compute("folds", draw)


def locate_queries(
    name: str, comparison: ReleaseComparison, test_records: Ints, others: Ints
) -> Floats:
    """Return the test records in the space of the rows, without using the rows made from them."""
    clean = comparison.map_clean_records(test_records, by_steward=True)
    if clean is not None:
        return clean
    if comparison.source is not None:
        raise NotApplicable(f"{name} needs a public map, or one row for each record.")
    fold = f"placed {test_records[0]}"  # one record names its fold, which all classifiers share
    return comparison.get_or_compute(fold, lambda: place_records(comparison, test_records, others))

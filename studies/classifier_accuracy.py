"""Accuracy of classifiers on releases of public tables: the figures of mining.md.

The tables are not part of the project (see studies/public_tables.py). A draw splits the
records and releases the larger part by ``pca_laplace`` with half the components, noise in
proportion to the range of each component, and a basis from the released records. This is the method
of Mukherjee and others (2008). The records of the smaller part are the queries, without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestCentroid

from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.linear_map import project
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer
from studies.public_tables import (
    ADULT_CATEGORICAL,
    get_data_folder,
    load_into_memory,
    parse_numbers,
    read_columns,
    select_records,
)

NOISE_LEVELS = (0.2, 0.3)
TABLE_TITLES = {
    "wine": "Wine",
    "waveform": "Waveform",
    "wdbc": "WDBC",
    "pima": "Pima",
    "adult": "Adult",
    "magic": "Magic",
    "ionosphere": "Ionosphere",
    "svmguide1_train": "SVMguide1",
    "breast_cancer_wisconsin": "Breast cancer (original)",
    "segmentation_test": "Segmentation, thinned",
    "pendigits_test": "Pendigits, thinned",
    "optdigits_train": "Optdigits, thinned",
}
PAPER_TABLES = ("wine", "waveform", "wdbc")
UNBALANCED_TABLES = tuple(name for name in TABLE_TITLES if name not in ("wine", "waveform"))
# In these tables all classes except two keep a tenth of their records.
THINNED_TABLES = ("segmentation_test", "pendigits_test", "optdigits_train")
MAX_UNBALANCED_RECORDS = 2_000


@dataclass(frozen=True)
class ClassificationTask:
    """A release, and records to classify with it."""

    public: PublicParameters
    rows: Floats
    codes: Ints
    clean: Floats  # the rows' records, without noise
    queries: Floats
    true_classes: Ints  # (q,) of the queries


Classifier = Callable[[ClassificationTask], Any]
CLASSIFIERS: dict[str, Classifier] = {
    "radius": lambda task: MINERS["radius_knn"].from_public(task.public),
    "consistent": lambda task: MINERS["radius_knn"].from_public(task.public, moments="consistent"),
    "k = 5": lambda task: MINERS["knn"](k=5),
    "best k": lambda task: MINERS["knn"](k="cv"),
    "nearest centroid": lambda task: NearestCentroid(),
    "noise-aware": lambda task: MINERS["noise_aware"].from_public(task.public),
    "noise-aware, equal": lambda task: MINERS["noise_aware"].from_public(
        task.public, prior="equal"
    ),
}
# classifier: {"accuracy": [one value for each draw], ...}
Figures = dict[str, dict[str, list[float]]]


def load_table(name: str, folder: Path | None = None, max_records: int | None = None) -> ArrayRows:
    """Return the numeric columns that vary, and the label, with the rows in random order."""
    columns = read_columns(folder or get_data_folder(), name)
    rng = np.random.default_rng(0)
    some = rng.permutation(len(columns["label"]))
    label = columns.pop("label")[some]
    if name in THINNED_TABLES:
        common = np.unique(label)[:2]
        keep = np.isin(label, common) | (np.arange(len(label)) % 10 == 0)
        some, label = some[keep], label[keep]
    some, label = some[:max_records], label[:max_records]
    categorical = ADULT_CATEGORICAL if name == "adult" else []
    cells = {head: column[some] for head, column in columns.items() if head not in categorical}
    cells = {head: column for head, column in cells.items() if len(set(column.tolist())) > 1}
    numeric, X = parse_numbers(cells, len(some))
    codes = np.unique(label, return_inverse=True)[1]
    return ArrayRows(Schema(numeric), X, codes.astype(np.int32))


def draw_task(
    rows: ArrayRows, b: float, draw: int, query_share: float, component_share: float = 0.5
) -> ClassificationTask:
    """Split the records and release the larger part."""
    order = np.random.default_rng([draw, 1]).permutation(rows.n)
    count = max(1, int(rows.n * query_share))
    queries, released_records = order[:count], select_records(rows, np.sort(order[count:]))
    sanitizer = make_sanitizer(
        "pca_laplace",
        {
            "components": max(1, int(len(rows.schema.numeric) * component_share)),
            "b": b,
            "noise_shape": "per_component",
            "basis": "private",
        },
    )
    scaling = fit_scaling(released_records, sanitizer.scale)
    scaled = scaling.apply(released_records)
    fitted = {**sanitizer.fit(scaled), "scaling": scaling.as_dict()}
    key = np.random.default_rng([draw, 2]).bytes(32)
    released = sanitizer.sanitize(scaled, Noise(key), fitted)
    clean = load_into_memory(scaled).whole
    ours = (rows.whole.X[queries] - scaling.offset) / scaling.unit
    return ClassificationTask(
        public=released.public,
        rows=load_into_memory(released.rows).whole.X,
        codes=released_records.whole.label.astype(np.int64),
        clean=project(released.public, clean.X),
        queries=project(released.public, ours),
        true_classes=rows.whole.label[queries].astype(np.int64),
    )


def measure_classifiers(
    task: ClassificationTask, names: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Return the figures of some classifiers and of always predicting the most frequent class."""
    found = {name: measure_classifier(task, name) for name in names}
    most_frequent = int(np.bincount(task.codes).argmax())
    always = np.full(len(task.true_classes), most_frequent)
    return {**found, "commonest": compute_accuracy(always, task.true_classes)}


def measure_classifier(task: ClassificationTask, name: str) -> dict[str, float]:
    """Return the accuracy of a classifier; of a radius classifier also the size of its votes."""
    model = CLASSIFIERS[name](task).fit(task.rows, task.codes)
    if not name.startswith(("radius", "consistent")):
        return compute_accuracy(model.predict(task.queries), task.true_classes)
    report = model.report(task.queries)
    return {
        **compute_accuracy(report.answers, task.true_classes),
        "fallbacks": report.fallbacks / len(task.queries),
        "ball": report.mean_neighbours / len(task.rows),
        "majority": report.majority_rate,
    }


def compute_accuracy(predicted: Ints, true: Ints) -> dict[str, float]:
    """Return the accuracy, and the mean of the accuracies of the classes."""
    each = [float(np.mean(predicted[true == c] == c)) for c in np.unique(true)]
    return {"accuracy": float(np.mean(predicted == true)), "balanced": float(np.mean(each))}


def measure_without_noise(task: ClassificationTask) -> dict[str, dict[str, float]]:
    """Return the figures of the same components without noise.

    Without noise, the paper's radius rule takes five neighbours.
    """
    predicted = MINERS["knn"](k=5).fit(task.clean, task.codes).predict(task.queries)
    return {"no noise, k = 5": compute_accuracy(predicted, task.true_classes)}


def collect_figures(draws: list[Mapping[str, Mapping[str, float]]]) -> Figures:
    """Return the figures of all draws, rounded."""
    return {
        name: {key: [round(draw[name][key], 4) for draw in draws] for key in draws[0][name]}
        for name in draws[0]
    }


def measure_paper_table(name: str, b: float, draws: int, folder: Path | None = None) -> Figures:
    """Return the figures of a table of the paper; as there, a tenth of the records are queries."""
    rows = load_table(name, folder)
    names = ("radius", "consistent", "k = 5", "best k", "noise-aware")
    tasks = [draw_task(rows, b, draw, 0.1) for draw in range(draws)]
    return collect_figures(
        [{**measure_classifiers(task, names), **measure_without_noise(task)} for task in tasks]
    )


def measure_unbalanced_table(
    name: str, b: float, draws: int, folder: Path | None = None
) -> Figures:
    """Return the figures of an unbalanced table; three tenths of the records are queries."""
    rows = load_table(name, folder, MAX_UNBALANCED_RECORDS)
    names = ("radius", "consistent", "noise-aware", "noise-aware, equal")
    tasks = [draw_task(rows, b, draw, 0.3) for draw in range(draws)]
    return collect_figures([measure_classifiers(task, names) for task in tasks])


def compute_gain(figures: Figures, ours: str, other: str, key: str) -> tuple[float, float]:
    """Return the mean difference of two classifiers and its standard error over the draws."""
    difference = np.array(figures[ours][key]) - np.array(figures[other][key])
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))

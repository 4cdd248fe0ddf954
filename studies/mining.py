"""Classifiers on releases of public tables: the figures of mining.md.

The tables are not part of the project (see studies/risk.py). A draw is a split of the records and a
release of its larger part by ``pca_laplace`` with half the components, noise by the range of each
component and a basis from the released records: the method of Mukherjee and others (2008). The
records of the smaller part are asked about, without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.linear_map import project
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer
from studies.risk import ADULT_WORDS, as_numbers, data_folder, in_memory, only, read

LEVELS = (0.2, 0.3)
NAMES = {
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
PAPER = ("wine", "waveform", "wdbc")
UNBALANCED = tuple(name for name in NAMES if name not in ("wine", "waveform"))
# Of all classes but two a tenth of the records is left.
THINNED = ("segmentation_test", "pendigits_test", "optdigits_train")
MOST = 2_000  # records of an unbalanced table


@dataclass(frozen=True)
class Exam:
    """A release, and records to classify with it."""

    public: PublicParameters
    rows: Floats
    codes: Ints
    clean: Floats  # the rows' records, without noise
    asked: Floats
    answers: Ints  # right ones


Classifier = Callable[[Exam], Any]
CLASSIFIERS: dict[str, Classifier] = {
    "radius": lambda exam: MINERS["radius_knn"].from_public(exam.public),
    "consistent": lambda exam: MINERS["radius_knn"].from_public(exam.public, moments="consistent"),
    "k = 5": lambda exam: MINERS["knn"](k=5),
    "best k": lambda exam: MINERS["knn"](k="cv"),
    "noise-aware": lambda exam: MINERS["noise_aware"].from_public(exam.public),
    "noise-aware, equal": lambda exam: MINERS["noise_aware"].from_public(
        exam.public, prior="equal"
    ),
}
Figures = dict[str, dict[str, list[float]]]  # classifier: "accuracy" and so on, one a draw


def table(name: str, folder: Path | None = None, most: int | None = None) -> ArrayRows:
    """Numeric columns that vary, and the label; rows in random order."""
    columns = read(folder or data_folder(), name)
    rng = np.random.default_rng(0)
    some = rng.permutation(len(columns["label"]))
    label = columns.pop("label")[some]
    if name in THINNED:
        common = np.unique(label)[:2]
        keep = np.isin(label, common) | (np.arange(len(label)) % 10 == 0)
        some, label = some[keep], label[keep]
    some, label = some[:most], label[:most]
    words = ADULT_WORDS if name == "adult" else []
    cells = {head: column[some] for head, column in columns.items() if head not in words}
    cells = {head: column for head, column in cells.items() if len(set(column.tolist())) > 1}
    numeric, X = as_numbers(cells, len(some))
    codes = np.unique(label, return_inverse=True)[1]
    return ArrayRows(Schema(numeric), X, codes.astype(np.int32))


def examined(rows: ArrayRows, b: float, draw: int, asked_share: float) -> Exam:
    order = np.random.default_rng([draw, 1]).permutation(rows.n)
    count = max(1, int(rows.n * asked_share))
    asked, kept = order[:count], only(rows, np.sort(order[count:]))
    sanitizer = make_sanitizer(
        "pca_laplace",
        {
            "components": max(1, len(rows.schema.numeric) // 2),
            "b": b,
            "noise_shape": "per_component",
            "basis": "private",
        },
    )
    scaling = fit_scaling(kept, sanitizer.scale)
    scaled = scaling.apply(kept)
    fitted = {**sanitizer.fit(scaled), "scaling": scaling.as_dict()}
    key = np.random.default_rng([draw, 2]).bytes(32)
    released = sanitizer.sanitize(scaled, Noise(key), fitted)
    clean = in_memory(scaled).whole
    ours = (rows.whole.X[asked] - scaling.offset) / scaling.unit
    return Exam(
        public=released.public,
        rows=in_memory(released.rows).whole.X,
        codes=kept.whole.label.astype(np.int64),
        clean=project(released.public, clean.X),
        asked=project(released.public, ours),
        answers=rows.whole.label[asked].astype(np.int64),
    )


def scores(exam: Exam, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    found = {name: marks(exam, name) for name in names}
    commonest = int(np.bincount(exam.codes).argmax())
    always = np.full(len(exam.answers), commonest)
    return {**found, "commonest": marked(always, exam.answers)}


def marks(exam: Exam, name: str) -> dict[str, float]:
    model = CLASSIFIERS[name](exam).fit(exam.rows, exam.codes)
    if not name.startswith(("radius", "consistent")):
        return marked(model.predict(exam.asked), exam.answers)
    report = model.report(exam.asked)
    return {
        **marked(report.answers, exam.answers),
        "fallbacks": report.fallbacks / len(exam.asked),
        "ball": report.mean_neighbours / len(exam.rows),
        "majority": report.majority_rate,
    }


def marked(given: Ints, right: Ints) -> dict[str, float]:
    """Accuracy, and the mean of the classes' own accuracies."""
    each = [float(np.mean(given[right == c] == c)) for c in np.unique(right)]
    return {"accuracy": float(np.mean(given == right)), "balanced": float(np.mean(each))}


def clean_scores(exam: Exam) -> dict[str, dict[str, float]]:
    """The same components without noise; there the paper's radius rule takes five neighbours."""
    answers = MINERS["knn"](k=5).fit(exam.clean, exam.codes).predict(exam.asked)
    return {"no noise, k = 5": marked(answers, exam.answers)}


def gathered(draws: list[Mapping[str, Mapping[str, float]]]) -> Figures:
    return {
        name: {key: [round(draw[name][key], 4) for draw in draws] for key in draws[0][name]}
        for name in draws[0]
    }


def paper_contest(name: str, b: float, draws: int, folder: Path | None = None) -> Figures:
    """As in the paper: a tenth of the records is asked about."""
    rows = table(name, folder)
    names = ("radius", "consistent", "k = 5", "best k", "noise-aware")
    exams = [examined(rows, b, draw, 0.1) for draw in range(draws)]
    return gathered([{**scores(exam, names), **clean_scores(exam)} for exam in exams])


def unbalanced_contest(name: str, b: float, draws: int, folder: Path | None = None) -> Figures:
    """At most 2,000 records, of which three tenths are asked about."""
    rows = table(name, folder, MOST)
    names = ("radius", "consistent", "noise-aware", "noise-aware, equal")
    exams = [examined(rows, b, draw, 0.3) for draw in range(draws)]
    return gathered([scores(exam, names) for exam in exams])


def gain(figures: Figures, ours: str, other: str, key: str) -> tuple[float, float]:
    """Mean difference, and its standard error over the draws."""
    difference = np.array(figures[ours][key]) - np.array(figures[other][key])
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))

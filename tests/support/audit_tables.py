"""Tables for audits: records inside a release, and at least as many of the same kind outside."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from ppdm_core.model.arrays import Floats, Ints
from tests.support.generated_tables import GENERATED
from tests.support.release_kinds.kinds import make_rng

MIN_CLASS_RECORDS = 50
MAX_GENERATED = 10_000
MIN_VALUES = 3  # of a column among the records inside
MIN_VARIED_SHARE = 0.02  # of records that do not hold the most common value of a column
Origin = Literal["shared", "generated"]
# Files below PPDM_DATA, and the distance of the columns that are taken.
SHARED: dict[str, tuple[tuple[str, ...], int]] = {
    "wdbc": (("wdbc.csv",), 1),
    "pima": (("pima.csv",), 1),
    "svmguide1": (("svmguide1_train.csv", "svmguide1_test.csv"), 1),
    "ionosphere": (("ionosphere.csv",), 1),
    "waveform": (("waveform.csv",), 1),
    "pendigits": (("pendigits_train.csv", "pendigits_test.csv"), 1),
    "segmentation": (("segmentation_train.csv", "segmentation_test.csv"), 1),
    "magic": (("magic.csv.gz",), 1),
    "adult": (("adult.csv.gz",), 1),
    "mfeat": (("mfeat_fac.csv.gz",), 9),
    "optdigits": (("optdigits_train.csv", "optdigits_test.csv"), 3),
    "breast_cancer": (("breast_cancer_wisconsin.csv",), 1),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Records inside and outside of a release; no record is in both."""

    X: Floats  # (n, d)
    others: Floats  # (m, d), m >= n
    label: Ints | None  # (n,) of classes with at least MIN_CLASS_RECORDS records
    other_label: Ints | None


@dataclass(frozen=True)
class AuditTable:
    """A table from which samples of different sizes are drawn."""

    name: str
    origin: Origin

    def draw(self, n: int, seed: int) -> Sample:
        """Return ``n`` records inside a release and ``n`` outside; raise ValueError if too few."""
        rng = make_rng("table", self.name, n, seed)
        X, label = self._read(n, rng)
        X, first = np.unique(X, axis=0, return_index=True)
        if len(X) < 2 * n:
            raise ValueError(f"{self.name} has no {2 * n} different records.")
        some = rng.permutation(len(X))[: 2 * n]
        X, label = X[some], None if label is None else label[first[some]]
        X = X[:, find_varied(X[:n])]
        codes = None if label is None else merge_rare_classes(label, n)
        return Sample(
            np.ascontiguousarray(X[:n]),
            np.ascontiguousarray(X[n:]),
            None if codes is None else codes[:n],
            None if codes is None else codes[n:],
        )

    @property
    def max_records(self) -> int:
        """Return the largest number of records inside that leaves as many outside."""
        return MAX_GENERATED if self.origin == "generated" else count_different(self.name) // 2

    def _read(self, n: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
        if self.origin == "shared":
            return read_shared(self.name)
        return GENERATED[self.name](3 * n, rng)


def get_data_folder() -> Path:
    """Return the folder of the shared tables."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("PPDM_DATA", default))


@cache
def read_shared(name: str) -> tuple[Floats, Ints]:
    """Return the numeric columns and the classes of complete records."""
    files, step = SHARED[name]
    table = pd.concat([pd.read_csv(get_data_folder() / file) for file in files])
    table = table.drop(columns=["id", "fnlwgt"], errors="ignore")
    label = pd.factorize(table.pop("label"), sort=True)[0]
    numbers = table.select_dtypes("number").iloc[:, ::step]
    complete = numbers.notna().all(axis=1).to_numpy()
    return numbers.to_numpy(np.float64)[complete], label[complete].astype(np.int64)


@cache
def count_different(name: str) -> int:
    """Return the number of different records of a shared table."""
    return len(np.unique(read_shared(name)[0], axis=0))


def find_varied(X: Floats) -> Ints:
    """Return the columns whose values differ enough to be compared."""
    varied = []
    for j, column in enumerate(X.T):
        counts = np.unique(column, return_counts=True)[1]
        if len(counts) >= MIN_VALUES and 1 - counts.max() / len(X) >= MIN_VARIED_SHARE:
            varied.append(j)
    return np.array(varied, dtype=np.int64)


def merge_rare_classes(label: Ints, n: int) -> Ints | None:
    """Merge classes until each has enough of the first ``n`` records; None if one class is left."""
    codes = label.copy()
    while True:
        classes = np.unique(codes)
        counts = np.array([np.sum(codes[:n] == each) for each in classes])
        if len(classes) < 2:
            return None
        if counts.min() >= MIN_CLASS_RECORDS:
            return codes
        least, next_to_least = classes[np.argsort(counts, kind="stable")[:2]]
        codes[codes == least] = next_to_least


TABLES: dict[str, AuditTable] = {
    **{name: AuditTable(name, "shared") for name in SHARED},
    **{name: AuditTable(name, "generated") for name in GENERATED},
}

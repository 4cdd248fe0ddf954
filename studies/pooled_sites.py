"""The loss of a classifier and the error of the density when L sites resample and pool their rows.

    python -m studies.pooled_sites FOLDER

For each table of the folder, three quarters of the records are split between L sites, each site
resamples its own classes, and classifiers are trained on the pool. ``phi`` is their error on the
other records minus that of the same classifier on the original records (Tan, Ng 2007). ``DAPL`` is
the distance between the density that a site draws from and that of its class, if classes are
normal (plug-in) or for held-out records, as the mean over sites.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics.dapl_held_out import DaplHeldOut
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.kde_resample import KdeResample

DISTANCES = (DaplPlugIn(), DaplHeldOut())
SITES = (1, 2, 3, 4, 5)
REPETITIONS = 10
TRAINING_SHARE = 0.75
TABLES = {  # file -> label column, and columns that identify a record
    "iris.csv": ("label", ()),
    "pima.csv": ("label", ()),
    "breast_cancer_libsvm.csv": ("label", ("id",)),
}


@dataclass(frozen=True)
class PooledResult:
    """The figures of one number of sites, as means over repetitions."""

    sites: int
    phi: float  # of naive Bayes
    phi_knn: float
    plug_in: float
    held_out: float


def measure_pool(
    X: Floats, label: Codes, sites: int, seed: int, bandwidth: str = "paper"
) -> tuple[float, float, float, float]:
    """Return phi of naive Bayes and of 5-NN, and both DAPLs, for one random split."""
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, test = np.split(order, [round(TRAINING_SHARE * len(X))])
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = (X - low) / np.where(high > low, high - low, 1.0)
    schema = Schema(
        tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(X.shape[1])),
        label=Categorical("label", tuple(map(str, range(int(label.max()) + 1)))),
    )
    method = KdeResample(bandwidth=bandwidth, lonely="merge", scale="none")
    rows, labels, distances = [], [], []
    for part in np.array_split(train, sites):
        table = ArrayRows(schema, scaled[part], label[part].astype(np.int32))
        fitted = method.fit(table)
        noise = Noise(rng.bytes(32))
        released = method.sanitize(table, noise, fitted)
        blocks = list(released.rows.blocks())
        Y = np.concatenate([block.X for block in blocks])
        rows.append(Y)
        labels.append(np.concatenate([block.label for block in blocks]))
        compared = ReleaseComparison(
            table.whole.X, table.whole.label, Y, released.public, source=np.zeros(len(Y), dtype=int)
        )
        distances.append([each.measure(compared).value for each in DISTANCES])
    pool, classes = np.concatenate(rows), np.concatenate(labels)
    errors = []
    for model in (GaussianNB(), KNeighborsClassifier(5)):
        before = model.fit(scaled[train], label[train]).score(scaled[test], label[test])
        after = model.fit(pool, classes).score(scaled[test], label[test])
        errors.append(before - after)
    plug_in, held_out = np.mean(distances, axis=0)
    return errors[0], errors[1], float(plug_in), float(held_out)


def compare_sites(X: Floats, label: Codes, repetitions: int) -> Iterator[PooledResult]:
    """Yield the mean figures for each number of sites."""
    for sites in SITES:
        found = [measure_pool(X, label, sites, seed) for seed in range(repetitions)]
        yield PooledResult(sites, *(float(each) for each in np.mean(found, axis=0)))


def read_table(path: Path) -> tuple[Floats, Codes]:
    """Return the features and the classes of a table, without identifiers."""
    import pandas as pd

    name, identifiers = TABLES[path.name]
    frame = pd.read_csv(path).dropna()
    codes, _ = pd.factorize(frame[name])
    features = frame.drop(columns=[name, *identifiers])
    return features.to_numpy(dtype=np.float64), codes.astype(np.int32)


def main(folder: Path) -> None:
    """Print one line for each table and number of sites."""
    print("| table | sites | phi, naive Bayes | phi, 5-NN | DAPL, plug-in | DAPL, held-out |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in TABLES:
        X, label = read_table(folder / name)
        for result in compare_sites(X, label, REPETITIONS):
            figures = (result.phi, result.phi_knn, result.plug_in, result.held_out)
            cells = " | ".join(f"{figure:.3f}" for figure in figures)
            print(f"| {name.split('.')[0]} | {result.sites} | {cells} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

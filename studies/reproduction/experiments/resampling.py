"""P2: kernel resampling at several sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ppdm_core.attacks.norm_bounds import norm_bound
from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats, Ints
from studies.public_tables import get_data_folder, parse_numbers, read_columns
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import (
    Quantities,
    ReleasedTable,
    append,
    compute_pseudo_values,
    release,
)
from studies.reproduction.tables import Table, load, make_rows

TRAINING_RECORDS = {  # table 1 of the paper
    "iris_two": 120,
    "svmguide1": 3089,
    "pima": 576,
    "breast_cancer_libsvm": 512,
    "ionosphere": 263,
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "ann": lambda: MINERS["neural_network"](),
    "knn": lambda: MINERS["knn"](k=11, weights="uniform"),
    "nb": lambda: MINERS["naive_bayes"](floor=1e-9),  # as good as none, as in the paper
}
ROUNDING = 1e-9
KERNEL = {"bandwidth": "paper", "lonely": "merge", "scale": "none", "clip": False}


def split_sizes(job: Measurement) -> Quantities:
    """Compute the share of training records in table 1."""
    share = TRAINING_RECORDS[job.table] / load(job.table).n
    return {"training share of table 1": [share]}


def split_table(table: Table, draw: int) -> tuple[Floats, Ints, Ints]:
    """Return columns from -1 to 1, and the positions of training and test records."""
    low, high = table.X.min(axis=0), table.X.max(axis=0)
    X = 2 * (table.X - low) / (high - low) - 1
    order = np.arange(table.n)
    if table.training is None:
        order = np.random.default_rng([draw, 41]).permutation(table.n)
    count = TRAINING_RECORDS[table.name]
    return X, order[:count], order[count:]


def resample(X: Floats, label: Ints, seed: int, rows: int | None = None) -> ReleasedTable:
    """Return rows that one site draws around its records.

    Bounds have no effect with these settings, but must differ, also where a column is constant.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    bounds = np.vstack([low, np.where(low == high, high + 1.0, high)])
    return release(make_rows(X, label, bounds), "kde_resample", {**KERNEL, "rows": rows}, seed)


def pool_sites(X: Floats, label: Ints, sites: int, draw: int) -> tuple[Floats, Ints]:
    """Return the rows of all sites, each with an equal part of the records."""
    order = np.random.default_rng([draw, 42]).permutation(len(X))
    parts = [
        resample(X[part], label[part], 1_000 * sites + 10 * draw + place)
        for place, part in enumerate(np.array_split(order, sites))
    ]
    return np.vstack([each.Y for each in parts]), np.concatenate([each.row_label for each in parts])


def measure_errors(X: Floats, label: Ints, queries: Floats, true: Ints) -> dict[str, float]:
    """Return the errors of the three classifiers."""
    return {
        name: float(np.mean(make().fit(X, label).predict(queries) != true))
        for name, make in CLASSIFIERS.items()
    }


def pooled_classifiers(job: Measurement) -> Quantities:
    """Compare classifiers trained on pooled releases with those trained on the original."""
    table, found, sites = load(job.table), Quantities(), job.options["sites"]
    phi: dict[str, list[list[float]]] = {name: [] for name in CLASSIFIERS}
    for draw in range(job.draws):
        X, train, test = split_table(table, draw)
        label, task = table.label, (X[test], table.label[test])
        original = measure_errors(X[train], label[train], *task)
        pooled = [
            measure_errors(*pool_sites(X[train], label[train], count, draw), *task)
            for count in sites
        ]
        for name in CLASSIFIERS:
            append(found, f"original error {name}", original[name])
            losses = [errors[name] - original[name] for errors in pooled]
            phi[name].append(losses)
            for count, loss in zip(sites, losses, strict=True):
                append(found, f"phi {name}/L={count}", loss)
            append(found, f"slope of phi {name}", np.polyfit(sites, losses, 1)[0])
            append(found, f"mean phi {name}", float(np.mean(losses)))
    for other in ("nb", "ann"):
        both = np.array([phi["knn"], phi[other]]).transpose(1, 0, 2)  # (draws, 2, sites)
        sizes = compute_pseudo_values(compare_sizes, both)
        found[f"size of phi, knn minus {other}"] = sizes
    means = {name: found[f"mean phi {name}"] for name in CLASSIFIERS}
    for other in ("knn", "ann"):
        pairs = zip(means[other], means["nb"], strict=True)
        found[f"mean phi, {other} minus nb"] = [a - b for a, b in pairs]
    return found


def compare_sizes(both: Floats) -> float:
    """Return the mean size of one loss less that of another; (draws, 2, sites)."""
    one, other = np.abs(both.mean(axis=0)).mean(axis=1)
    return float(one - other)


def half_of_the_rows(job: Measurement) -> Quantities:
    """Compare a release of half as many rows as records with one of as many."""
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        X, train, test = split_table(table, draw)
        label = table.label
        errors = []
        for rows in (len(train) // 2, len(train)):
            made = resample(X[train], label[train], 7_000 + draw, rows)
            errors.append(measure_errors(made.Y, made.row_label, X[test], label[test]))
        for name in CLASSIFIERS:
            append(found, f"error of half minus all rows {name}", errors[0][name] - errors[1][name])
    return found


def length_bounds(job: Measurement, records: int = 200, matrices: int = 50) -> Quantities:
    """Count how often the bounds of lemmas 4.1 and 4.2 are above the truth, and say nothing.

    The second bound of an element is what the first leaves after the other elements of its column.
    """
    found = Quantities()
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 45])
        for directions in (20, 50, 100):
            A, B = rng.random((2, matrices, records, 10))
            length = np.linalg.norm(A, axis=1)
            R = rng.standard_normal((matrices, directions, records)) / np.sqrt(directions)
            product = np.sum((R @ A) * (R @ B), axis=1)  # (matrices, pairs)
            bound = norm_bound(product, np.linalg.norm(B, axis=1))
            share = float(np.mean(bound > length))
            append(found, f"bounds above the true length/directions={directions}", share)
            element = A[:, 0]
            of_element = bound_element(bound, length, element)
            share = float(np.mean(of_element > element + ROUNDING))
            append(found, f"bounds above the true element/directions={directions}", share)
        exact = norm_bound(np.sum(A * B, axis=1), np.linalg.norm(B, axis=1))
        share = float(np.mean(bound_element(exact, length, element) > 0))
        append(found, "bounds of elements above 0, exact product", share)
    return found


def bound_element(bound: Floats, length: Floats, element: Floats) -> Floats:
    """Return the lower bound of an element, given those of its column and the other elements."""
    return np.asarray(np.sqrt(np.maximum(bound**2 - (length**2 - element**2), 0.0)))


def constant_column(job: Measurement) -> Quantities:
    """Classify by naive Bayes as the formula is, with a constant column and variances of 0."""
    columns = read_columns(get_data_folder(), job.table)
    label = np.unique(columns.pop("label"), return_inverse=True)[1].astype(np.int64)
    X, found = parse_numbers(columns, len(label))[1], Quantities()
    table = Table(job.table, X[:, np.ptp(X, axis=0) > 0], label)
    for draw in range(job.draws):
        varied, train, test = split_table(table, draw)
        whole = np.column_stack([varied, np.zeros(len(varied))])  # it has no scale
        chances = compute_literal_chances(whole[train], label[train], whole[test])
        is_defined = ~np.isnan(chances).all(axis=1)
        answer = np.where(is_defined, np.argmax(np.nan_to_num(chances, nan=-np.inf), axis=1), 0)
        is_wrong = answer != label[test]
        append(found, "share of records with a defined probability", float(np.mean(is_defined)))
        append(found, "error nb, undefined is the first class", float(np.mean(is_wrong)))
        append(found, "error nb, undefined is no error", float(np.mean(is_wrong & is_defined)))
    return found


def compute_literal_chances(X: Floats, label: Ints, queries: Floats) -> Floats:
    """Return the log probability of each class for each query; 0 times infinity is undefined."""
    found = []
    for code in range(int(label.max()) + 1):
        own = X[label == code]
        mean, variance = own.mean(axis=0), own.var(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = -0.5 * np.log(variance) - (queries - mean) ** 2 / (2.0 * variance)
        found.append(terms.sum(axis=1) + np.log(len(own) / len(X)))
    return np.array(found).T

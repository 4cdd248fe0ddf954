"""P2: kernel resampling at several sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ppdm_core.attacks.norm_bounds import norm_bound
from ppdm_core.attacks.source_record import SourceRecord
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import RecordSet
from ppdm_core.numerics.kernel_model import BandwidthRule
from studies.pooled_sites import measure_pool
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
    """Return rows that one site draws around its records."""
    return release(make_rows(X, label), "kde_resample", {**KERNEL, "rows": rows}, seed)


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


def density_loss(job: Measurement) -> Quantities:
    """Measure the error of the density, as two readings of DAPL, over the number of sites."""
    table, found, sites = load(job.table), Quantities(), job.options["sites"]
    label = table.label.astype(np.int32)
    for draw in range(job.draws):
        for count in sites:
            *_, plug_in, held_out = measure_pool(table.X, label, count, draw)
            append(found, f"plug-in DAPL/L={count}", plug_in)
            append(found, f"held-out DAPL/L={count}", held_out)
    for name in ("plug-in DAPL", "held-out DAPL"):
        first, last = found[f"{name}/L={sites[0]}"], found[f"{name}/L={sites[-1]}"]
        found[f"{name}, most sites minus one"] = [b - a for a, b in zip(first, last, strict=True)]
    return found


def source_records(job: Measurement) -> Quantities:
    """Identify the record behind each row, and measure the bound that a row sets."""
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        X, train, _ = split_table(table, draw)
        made = resample(X[train], table.label[train], 8_000 + draw)
        no_codes = np.zeros((len(made.X), 0), dtype=np.int32)
        targets = RecordSet(made.X, no_codes, made.label.astype(np.int32))
        rng = np.random.default_rng([draw, 43])
        estimate = SourceRecord().attack(made.make_view(targets=targets), rng)
        guess, chance = estimate.candidates["known"], estimate.claims["known"]
        is_right = guess == made.source[:, None]
        append(found, "source identified", float(np.mean(is_right[:, 0])))
        append(found, "posterior of the source", float(np.mean(np.sum(chance * is_right, axis=1))))
        widths = made.sanitizer.compute_bandwidths(made.schema, made.fitted)
        reach = 2 * widths[made.row_label + 1] / np.ptp(made.X, axis=0)
        append(found, "width of the bound", float(np.mean(np.minimum(reach, 1.0))))
    return found


def density_limits(job: Measurement) -> Quantities:
    """Measure the distance of the kernel density from a normal one for few and many records."""
    found, measure = Quantities(), DaplPlugIn().measure_class
    rule = BandwidthRule(is_corrected=False, floor=0.0)
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 44])
        for d in (1, 2, 4):
            few, many = (
                measure(rng.standard_normal((n, d)), rule, np.ones(d), rng) for n in (100, 1_600)
            )
            append(found, f"distance, 100 minus 1600 records/d={d}", few - many)
        wide = BandwidthRule(is_corrected=False, floor=100.0)
        distance = measure(rng.standard_normal((400, 2)), wide, np.ones(2), rng)
        append(found, "distance, bandwidth of 100 deviations", distance)
    return found


def length_bounds(job: Measurement, records: int = 200, matrices: int = 50) -> Quantities:
    """Count how often the bound of lemma 4.1 is above the true length."""
    found = Quantities()
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 45])
        for directions in (20, 50, 100):
            A, B = rng.random((2, matrices, records, 10))
            R = rng.standard_normal((matrices, directions, records)) / np.sqrt(directions)
            product = np.sum((R @ A) * (R @ B), axis=1)  # (matrices, pairs)
            bound = norm_bound(product, np.linalg.norm(B, axis=1))
            share = float(np.mean(bound > np.linalg.norm(A, axis=1)))
            append(found, f"bounds above the true length/directions={directions}", share)
    return found

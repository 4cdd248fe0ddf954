"""P3: cosine coefficients chosen by fuzzy programming."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.fft import dct, idct

from ppdm_core.attacks._column_matching import match_by_value, transport_costs
from ppdm_core.metrics._clusters import run_kmeans
from ppdm_core.metrics._pairs import choose_pairs, pair_distances
from ppdm_core.metrics.cluster_f_measure import f_measure
from ppdm_core.metrics.distance_loss import loss
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.rows import ArrayRows
from ppdm_core.sanitizers._fuzzy_selection import Programme, choose_pruning
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from studies.public_tables import load_into_memory
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import (
    Quantities,
    append,
    measure_accuracy,
    measure_privacy,
    release,
    split_records,
)
from studies.reproduction.tables import Table, load

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)  # of b or p
CENTRAL = (0.1, 0.2)  # b and p of the paper's comparisons
TEST_SHARE = 0.2
GUESSES = 20
MAX_PRIVACY_RECORDS = 2_000
NORMAL_WIDTH, UNIFORM_WIDTH = 3.92, 1.9  # of the central 95 %, in deviations and half widths


def choose_kept(rows: ArrayRows, b: float, p: float, bounds: str = "shares") -> Ints:
    """Return the coefficients that are kept; all, if none can be pruned."""
    method = DctFuzzy(b=b, p=p, scale="none")
    m = len(rows.schema.numeric)
    if bounds == "shares":
        found = method.measure_bounds(rows)
        low, high = found.low, found.high
    else:
        C = transform(load_into_memory(rows).whole.X)
        low, high = C.min(axis=0), C.max(axis=0)
    choice = choose_pruning(Programme(low, high - low, b, p))
    pruned = choice.pruned if choice.loss_level > 0 else np.zeros(0, dtype=np.int64)
    return np.setdiff1d(np.arange(m), pruned)


def transform(X: Floats) -> Floats:
    """Return the cosine coefficients of records."""
    return np.asarray(dct(X, type=2, norm="ortho", axis=1))


def invert(C: Floats) -> Floats:
    """Return the records of coefficients."""
    return np.asarray(idct(C, type=2, norm="ortho", axis=1))


def scale_table(table: Table, scale: str) -> Table:
    """Return the table in its units, or with columns from 0 to 1."""
    if scale == "none":
        return table
    low = table.X.min(axis=0)
    return Table(table.name, (table.X - low) / np.ptp(table.X, axis=0), table.label)


def kept_coefficients(job: Measurement) -> Quantities:
    """Count kept coefficients over b and p; figures 4b and 5b."""
    found, options = Quantities(), job.options
    bounds = options.get("bounds", "shares")
    for draw in range(job.draws):
        table = scale_table(load(job.table, draw), options["scale"])
        rows, m = table.make_rows(), table.X.shape[1]
        by_b = [len(choose_kept(rows, level, 0.2, bounds)) for level in LEVELS]
        by_p = [len(choose_kept(rows, 0.1, level, bounds)) for level in LEVELS]
        for level, count, other in zip(LEVELS, by_b, by_p, strict=True):
            append(found, f"kept, p 0.2/b={level:g}", count)
            append(found, f"kept, b 0.1/p={level:g}", other)
            append(found, f"share kept, p 0.2/b={level:g}", count / m)
        append(found, "decrease of kept with b", -float(np.diff(by_b).max()))
        append(found, "decrease of kept with p", -float(np.diff(by_p).max()))
    return found


def guess_privacy(X: Floats, Y: Floats, rng: np.random.Generator) -> float:
    """Return the mean privacy if number and order of the coefficients are guessed."""
    m, kept = X.shape[1], Y.shape[1]
    return float(
        np.mean([measure_privacy(X, guess_records(Y, m, kept, rng)) for _ in range(GUESSES)])
    )


def guess_records(Y: Floats, m: int, kept: int, rng: np.random.Generator) -> Floats:
    """Return records from a random number of attributes and a random order."""
    wide = int(rng.integers(kept, 2 * m + 1))
    C = np.zeros((len(Y), wide))
    C[:, rng.permutation(wide)[:kept]] = Y
    X_hat = np.zeros((len(Y), max(m, wide)))
    X_hat[:, :wide] = invert(C)
    return X_hat[:, :m]


def reconstruct(C: Floats, kept: Ints) -> Floats:
    """Return records from the kept coefficients; the others are taken as zero."""
    known = np.zeros_like(C)
    known[:, kept] = C[:, kept]
    return invert(known)


def cosine_sweep(job: Measurement) -> Quantities:
    """Measure accuracy, distances and privacy over b and p; figures 4 and 5."""
    found = Quantities()
    for draw in range(job.draws):
        table = load(job.table, draw)
        X, label, C = table.X, table.label, transform(table.X)
        train, test = split_records(table.n, TEST_SHARE, draw)
        original = measure_accuracy(X, label, train, test)
        rng = np.random.default_rng([draw, 51])
        i, j = choose_pairs(table.n, rng)
        before = pair_distances(X, i, j)
        some = rng.permutation(table.n)[:MAX_PRIVACY_RECORDS]
        for b, p, name in list_settings():
            kept = choose_kept(table.make_rows(), b, p)
            Y = C[:, kept]
            change = measure_accuracy(Y, label, train, test) - original
            worst = measure_privacy(X, reconstruct(C, kept))
            average = guess_privacy(X[some], Y[some], rng)
            append(found, f"accuracy change, {name}", change)
            append(found, f"distance loss, {name}", loss(before, pair_distances(Y, i, j)))
            append(found, f"worst-case privacy, {name}", worst)
            append(found, f"average privacy, {name}", average)
            append(found, f"average minus worst-case privacy, {name}", average - worst)
        guess = np.broadcast_to(X.mean(axis=0), X.shape)
        append(found, "privacy of guessing the mean", measure_privacy(X, guess))
    return found


def list_settings() -> list[tuple[float, float, str]]:
    """Return b and p of both series, with their names."""
    by_b = [(level, 0.2, f"p 0.2/b={level:g}") for level in LEVELS]
    return by_b + [(0.1, level, f"b 0.1/p={level:g}") for level in LEVELS]


def cosine_rivals(job: Measurement) -> Quantities:
    """Compare with noise of the same privacy, projections and random coefficients; figure 6."""
    found = Quantities()
    for draw in range(job.draws):
        compare_rivals(found, load(job.table, draw), draw)
    return found


def compare_rivals(found: Quantities, table: Table, draw: int) -> None:
    """Append the figures of one draw."""
    X, label, C, rows = table.X, table.label, transform(table.X), table.make_rows()
    train, test = split_records(table.n, TEST_SHARE, draw)
    rng = np.random.default_rng([draw, 52])
    kept = choose_kept(rows, *CENTRAL)
    Y, m = C[:, kept], X.shape[1]

    def measure(method: str, parameters: dict[str, Any]) -> tuple[float, Floats]:
        made = release(rows, method, {**parameters, "scale": "none"}, draw)
        return measure_accuracy(made.Y, label, train, test), made.Y

    original, ours = (measure_accuracy(Z, label, train, test) for Z in (X, Y))
    some = rng.permutation(table.n)[:MAX_PRIVACY_RECORDS]
    worst = measure_privacy(X, reconstruct(C, kept))
    average = guess_privacy(X[some], Y[some], rng)
    for law, width in (("normal", NORMAL_WIDTH), ("uniform", UNIFORM_WIDTH)):
        for privacy, name in ((average, "average"), (worst, "worst-case")):
            rival, _ = measure("additive_noise", {"law": law, "b": privacy / width})
            append(found, f"gain at {name} privacy over {law}", ours - rival)
        rival, _ = measure("additive_noise", {"law": law, "b": 0.5 / width})
        append(found, f"accuracy change at half privacy {law}", rival - original)
    for count, name in ((len(kept), "as many columns"), (m - 1, "all but one")):
        rival, Z = measure("random_projection", {"components": count})
        append(found, f"gain over projection, {name}", ours - rival)
        if name == "as many columns":
            padded = np.pad(Z, ((0, 0), (0, m - Z.shape[1])))
            difference = worst - measure_privacy(X, padded)
            append(found, "worst-case privacy minus projection", difference)
    chosen = rng.permutation(m)[: len(kept)]
    rival = measure_accuracy(C[:, chosen], label, train, test)
    append(found, "gain over random coefficients", ours - rival)
    append(found, "change of F measure", measure_clusters(Y, X, label, train))


def measure_clusters(Y: Floats, X: Floats, label: Ints, some: Ints) -> float:
    """Return the F measure of K-means in the release less that in the original."""
    count = int(label.max()) + 1
    after, before = (f_measure(label[some], run_kmeans(Z[some], count)) for Z in (Y, X))
    return after - before


def secret_order(job: Measurement) -> Quantities:
    """Find the order of the columns with one known record, and time the choice."""
    found = Quantities()
    for draw in range(job.draws):
        rows = load(job.table, draw).make_rows()
        start = time.process_time()
        choose_kept(rows, *CENTRAL)
        append(found, "seconds", time.process_time() - start)
        b, p = CENTRAL
        made = release(rows, "dct_fuzzy", {"b": b, "p": p, "scale": "none"}, draw)
        assert made.secret_map is not None
        basis = transform(np.eye(made.X.shape[1]))
        truth = np.abs(basis.T @ made.secret_map[1]).argmax(axis=0)
        known = np.random.default_rng([draw, 53]).integers(0, len(made.X), 1)
        F = transform(made.X[known])
        order = match_by_value(F, made.Y[known], transport_costs(F, made.Y))
        append(found, "columns found with one record", float(np.mean(order == truth)))
    return found


def salary_example(job: Measurement) -> Quantities:
    """Compute the example of section 3.5."""
    first, second, third = transform(np.array([[5_000.0, 10_000.0, 50_000.0]]))[0]
    found = Quantities()
    for name, C in (("wrong order", (first, third, second)), ("pruned", (first, second, 0.0))):
        for place, value in enumerate(invert(np.array([C]))[0], start=1):
            append(found, f"{name}/place={place}", value)
    return found

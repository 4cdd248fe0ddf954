"""P3: cosine coefficients chosen by fuzzy programming."""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.fft import dct, idct

from ppdm_core.attacks._column_matching import match_by_value, transport_costs
from ppdm_core.metrics._pairs import choose_pairs, pair_distances
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
        kept_b = [choose_kept(rows, level, 0.2, bounds) for level in LEVELS]
        kept_p = [choose_kept(rows, 0.1, level, bounds) for level in LEVELS]
        by_b, by_p = ([len(kept) for kept in series] for series in (kept_b, kept_p))
        shares = measure_energy(table.X)
        for (b, p, name), kept in zip(list_settings(), kept_b + kept_p, strict=True):
            append(found, f"kept, {name}", len(kept))
            append(found, f"share kept, {name}", len(kept) / m)
            lost = 1.0 - float(shares[:, kept].sum(axis=1).min())
            append(found, f"largest energy loss, {name}", lost)
            append(found, f"largest energy loss less its limit, {name}", lost - b - p)
            chance = compute_guess_chance(len(kept), 2 * m)
            append(found, f"chance of guessing the order, {name}", chance)
        compact = share_of_best_half(shares) - share_of_best_half(table.X**2)
        append(found, "energy in half of the coefficients minus columns", compact)
        append(found, "decrease of kept with b", -float(np.diff(by_b).max()))
        append(found, "decrease of kept with p", -float(np.diff(by_p).max()))
    return found


def measure_energy(X: Floats) -> Floats:
    """Return the share of each coefficient in the energy of each record that is not zero."""
    energy = transform(X) ** 2
    total = energy.sum(axis=1, keepdims=True)
    return np.asarray((energy / np.where(total > 0, total, 1.0))[total[:, 0] > 0])


def share_of_best_half(energy: Floats) -> float:
    """Return the mean share of a record's energy in the half of the columns that has the most."""
    total = energy.sum(axis=1, keepdims=True)
    means = (energy / np.where(total > 0, total, 1.0))[total[:, 0] > 0].mean(axis=0)
    return float(np.sort(means)[::-1][: len(means) // 2].sum())


def compute_guess_chance(kept: int, most: int) -> float:
    """Return the probability of guessing number and order of the columns, section 3.5."""
    return 1.0 / sum(math.perm(i, kept) for i in range(kept, most + 1))


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
        table = scale_table(load(job.table, draw), job.options.get("scale", "none"))
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

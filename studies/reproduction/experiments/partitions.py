"""P3: coefficients chosen by several sites that hold different records or different columns."""

from __future__ import annotations

from functools import reduce

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.sanitizers._fuzzy_selection import (
    EnergyBounds,
    Programme,
    choose_pruning,
    count_membership,
)
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from studies.reproduction.experiments.cosines import (
    CENTRAL,
    MAX_PRIVACY_RECORDS,
    TEST_SHARE,
    choose_kept,
    guess_privacy,
    transform,
)
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import Quantities, append, measure_accuracy, split_records
from studies.reproduction.tables import Table, load, make_rows

STEP = 1e-9  # by which the next choice must be better


def partitions(job: Measurement) -> Quantities:
    """Compare the choices of several sites with that of one; figures 7 and 8."""
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        compare_partitions(found, table, draw)
    return found


def compare_partitions(found: Quantities, table: Table, draw: int) -> None:
    """Append the figures of one random partition of each kind."""
    C, m = transform(table.X), table.X.shape[1]
    central = choose_kept(table.make_rows(), *CENTRAL)
    rng = np.random.default_rng([draw, 54])
    train, test = split_records(table.n, TEST_SHARE, draw)
    some = rng.permutation(table.n)[:MAX_PRIVACY_RECORDS]

    def measure(kept: Ints) -> tuple[float, float]:
        accuracy = measure_accuracy(C[:, kept], table.label, train, test)
        guesses = np.random.default_rng([draw, 55])
        return accuracy, guess_privacy(table.X[some], C[some][:, kept], guesses)

    accuracy, privacy = measure(central)
    for sites in (2, 3, 4, 5):
        kept = choose_horizontally(table, rng.integers(0, sites, table.n))
        same = np.isin(np.arange(m), kept) == np.isin(np.arange(m), central)
        append(found, f"horizontal, same coefficients/sites={sites}", float(np.mean(same)))
        one, other = measure(kept)
        append(found, f"horizontal, accuracy minus central/sites={sites}", one - accuracy)
        append(found, f"horizontal, privacy/sites={sites}", other)
    vertical = {}
    for sites in (2, 3):
        kept = choose_vertically(table.X, rng.permutation(m) % sites, *CENTRAL)
        one, other = measure(kept)
        append(found, f"vertical, kept/sites={sites}", len(kept))
        append(found, f"vertical, accuracy minus central/sites={sites}", one - accuracy)
        append(found, f"vertical, privacy minus central/sites={sites}", other - privacy)
        append(found, f"vertical, privacy/sites={sites}", other)
        vertical[sites] = one, other
        lost = 1.0 - np.sum(C[:, kept] ** 2, axis=1) / np.sum(C**2, axis=1)
        append(found, f"vertical, largest energy loss/sites={sites}", float(lost.max()))
    for name, two, three in zip(("accuracy", "privacy"), *vertical.values(), strict=True):
        append(found, f"vertical, {name} of 3 minus 2 sites", three - two)


def choose_horizontally(table: Table, site: Ints) -> Ints:
    """Return the kept coefficients if each site holds some records."""
    bounds = [
        DctFuzzy(scale="none").measure_bounds(
            make_rows(table.X[site == each], table.label[site == each], table.X)
        )
        for each in np.unique(site)
    ]
    return choose_merged(bounds)


def choose_merged(bounds: list[EnergyBounds]) -> Ints:
    """Return the kept coefficients, given the bounds of all sites."""
    whole = reduce(EnergyBounds.merge, bounds)
    b, p = CENTRAL
    pruned = choose_pruning(Programme(whole.low, whole.high - whole.low, b, p)).pruned
    return np.setdiff1d(np.arange(len(whole.low)), pruned)


def choose_vertically(X: Floats, site: Ints, b: float, p: float) -> Ints:
    """Return the kept coefficients if each site holds some columns and pads the others.

    For a fixed level all constraints are linear in the pruned coefficients, so that the level is
    raised past that of the last choice until no choice is left.
    """
    programmes = []
    for each in np.unique(site):
        padded = np.where(site == each, X, 0.0)
        found = DctFuzzy(scale="none").measure_bounds(
            make_rows(padded, np.zeros(len(X), dtype=np.int64), X)
        )
        programmes.append(Programme(found.low, found.high - found.low, b, p))
    pruned, level = np.zeros(0, dtype=np.int64), compute_level(programmes, np.zeros(0, dtype=int))
    while (better := find_choice(programmes, level + STEP)) is not None:
        reached = compute_level(programmes, better)
        if reached <= level:  # within the tolerance of the solver
            break
        pruned, level = better, reached
    return np.setdiff1d(np.arange(X.shape[1]), pruned)


def compute_level(programmes: list[Programme], pruned: Ints) -> float:
    """Return how well a choice meets both goals at all sites."""
    levels = []
    for each in programmes:
        largest = float(np.sum(each.low[pruned] + each.spread[pruned]))
        levels.append(1.0 if largest <= each.b else each.loss_level(pruned))
        levels.append(count_membership(len(pruned), each.min_pruned, each.max_pruned))
    return min(levels)


def find_choice(programmes: list[Programme], level: float) -> Ints | None:
    """Return coefficients whose pruning reaches a level at all sites, or None."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    m = len(programmes[0].low)
    if level > 1.0:
        return None
    lines, most = [], []
    least = 0.0
    for each in programmes:
        lines.append(each.low + level * each.spread)
        most.append(each.b + each.p - level * each.p)
        least = max(least, each.min_pruned + level * (each.max_pruned - each.min_pruned))
    result = milp(
        np.sum(lines, axis=0),
        constraints=[
            LinearConstraint(np.array(lines), -np.inf, np.array(most)),
            LinearConstraint(np.ones((1, m)), least, m - 1),
        ],
        integrality=np.ones(m),
        bounds=Bounds(0, 1),
    )
    return np.flatnonzero(result.x > 0.5) if result.success else None

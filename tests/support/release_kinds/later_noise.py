"""Strong noise that the record restricts: its length, its angle, its law, or its parameter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from ppdm_core.model.arrays import Bools, Floats, Ints
from tests.support.release_kinds.attackers import find_nearest, scale_with
from tests.support.release_kinds.classic import standardize
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.noise_holes import (
    DEVIATIONS,
    HOLES,
    add_scaled,
    draw_strong,
    turn,
)
from tests.support.release_kinds.proofs import Proof, View

GAP = (2.0, 3.0)  # between these lies the magnitude of noise with a gap, in deviations
ONE_SIDED = 1.0  # mean of one-sided noise, in deviations
FREQUENCIES = np.arange(4.0, 7.0, 0.005)  # of a wave, per deviation
Cost = Callable[[Floats, Floats], Floats]  # persons, rows, both standardized


def link_cheapest(cost: Cost) -> Proof:
    """Return a proof that links each person to the row of least cost."""

    def link(view: View) -> Ints:
        centre, unit = scale_with(view)
        Z, Zy = (view.persons - centre) / unit, (view.Y - centre) / unit
        return np.asarray(cost(Z, Zy).argmin(axis=1))

    return Proof("full records", "link", link)


def sum_cells(cost: Cost) -> Cost:
    """Return the sum of a cost over the cells."""
    return lambda Z, Zy: np.sum([cost(z[:, None], y) for z, y in zip(Z.T, Zy.T, strict=True)], 0)


def add_constant_length(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise in a random direction, of the same length for all records."""
    noise = rng.standard_normal(X.shape)
    size = DEVIATIONS * X.shape[1] ** 0.5 / np.linalg.norm(noise, axis=1, keepdims=True)
    return add_scaled(X, size * noise)


def compare_length(Z: Floats, Zy: Floats) -> Floats:
    return np.abs(cdist(Z, Zy) - DEVIATIONS * Z.shape[1] ** 0.5)


def add_orthogonal(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise that is orthogonal to the standardized record."""
    Z, noise = standardize(X), draw_strong(X, rng)
    share = np.sum(Z * noise, axis=1, keepdims=True) / np.sum(Z**2, axis=1, keepdims=True)
    return add_scaled(X, noise - share * Z)


def compare_products(Z: Floats, Zy: Floats) -> Floats:
    """Return how far the product of record and row is from the square of the record."""
    square = np.sum(Z**2, axis=1, keepdims=True)
    return np.asarray(np.abs(Z @ Zy.T - square) / np.sqrt(square))


def add_proportional(X: Floats, rng: np.random.Generator) -> Floats:
    """Multiply the distance of each value from the mean by a random factor of either sign."""
    factor = np.exp(0.7 * rng.standard_normal(X.shape)) * rng.choice([-1.0, 1.0], X.shape)
    return np.asarray(X.mean(axis=0) + (X - X.mean(axis=0)) * factor)


def compare_factors(z: Floats, y: Floats) -> Floats:
    return np.asarray(np.log(np.abs(y) + 1e-6) - np.log(np.abs(z) + 1e-6)) ** 2


def add_gap_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise that is never small: its magnitude lies in an interval."""
    return add_scaled(X, rng.uniform(*GAP, X.shape) * rng.choice([-1.0, 1.0], X.shape))


def compare_gap(z: Floats, y: Floats) -> Floats:
    """Return how far the noise is outside of its interval."""
    low, high = GAP
    return np.maximum(np.abs(np.abs(y - z) - (low + high) / 2) - (high - low) / 2, 0.0)


def add_one_sided(X: Floats, rng: np.random.Generator) -> Floats:
    """Add exponential noise: no value is less than the original."""
    return add_scaled(X, ONE_SIDED * rng.exponential(1.0, X.shape))


def compare_one_sided(z: Floats, y: Floats) -> Floats:
    """Return minus the logarithm of the density; noise below zero is impossible."""
    return np.where(y < z - 1e-9, 1e3, (y - z) / ONE_SIDED)


def compute_one_parameter(t: Floats, j: int) -> Floats:
    return np.asarray(DEVIATIONS * np.sin((j + 1) * t))


def add_one_parameter(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise of which one random number decides all columns: sines of its multiples."""
    t = rng.uniform(0, 2 * np.pi, len(X))
    return add_scaled(X, np.column_stack([compute_one_parameter(t, j) for j in range(X.shape[1])]))


def compare_one_parameter(Z: Floats, Zy: Floats) -> Floats:
    """Solve for the number in the first column, and return how far the others are from it."""
    t = np.arcsin(np.clip((Zy[:, 0] - Z[:, :1]) / DEVIATIONS, -1, 1))

    def compare(t: Floats) -> Floats:
        columns = zip(Z.T, Zy.T, strict=True)
        return np.sum(
            [
                np.abs(y - z[:, None] - compute_one_parameter(t, j))
                for j, (z, y) in enumerate(columns)
            ],
            axis=0,
        )

    return np.minimum(compare(t), compare(np.pi - t))


def add_waves(X: Floats, rng: np.random.Generator) -> Floats:
    """Add a secret wave of the next column to each column."""
    d, Z = X.shape[1], np.roll(standardize(X), -1, axis=1)
    phase = Z * rng.uniform(FREQUENCIES[0], FREQUENCIES[-1], d) + rng.uniform(0, 2 * np.pi, d)
    return add_scaled(X, DEVIATIONS * np.sin(phase))


def link_waves(view: View) -> Ints:
    """Fit the wave of each column to the known pairs, and compute the rows of all persons."""
    centre, unit = scale_with(view)
    Z, Zk = (view.persons - centre) / unit, (view.known - centre) / unit
    Zy, predicted = (view.Y - centre) / unit, Z.copy()
    for j in range(Z.shape[1]):
        k = (j + 1) % Z.shape[1]
        residual = Zy[view.rows, j] - Zk[:, j]
        waves = np.exp(1j * FREQUENCIES * Zk[:, k, None])
        design = np.stack([waves.real, waves.imag], axis=2).transpose(1, 0, 2)  # (f, k, 2)
        weights = np.linalg.pinv(design) @ residual
        best = np.linalg.norm(residual - (design @ weights[..., None])[..., 0], axis=1).argmin()
        angle = FREQUENCIES[best] * Z[:, k]
        predicted[:, j] += weights[best, 0] * np.cos(angle) + weights[best, 1] * np.sin(angle)
    return find_nearest(predicted, Zy)


def place_in_range(X: Floats) -> Floats:
    """Return where each value lies between the least and the largest of its column."""
    return np.asarray((X - X.min(axis=0)) / (np.ptp(X, axis=0) + 1e-300))


def add_one_pad(X: Floats, rng: np.random.Generator) -> Floats:
    """Add one uniform number to all cells of a record, modulo the range of each column."""
    place = (place_in_range(X) + rng.random((len(X), 1))) % 1
    return np.asarray(X.min(axis=0) + np.ptp(X, axis=0) * place)


def link_one_pad(view: View) -> Ints:
    """Link by the differences of adjacent columns, on a circle."""
    low, width = view.persons.min(axis=0), np.ptp(view.persons, axis=0) + 1e-300
    return find_nearest(*(turn(np.diff((A - low) / width, axis=1)) for A in (view.persons, view.Y)))


def find_large(X: Floats) -> Bools:
    """Return which values are above the median of their column."""
    return np.asarray(X - np.median(X, axis=0) > 0)


def add_sized_by_next(X: Floats, rng: np.random.Generator) -> Floats:
    """Add strong noise to a cell if the next one is above its median, and slight noise if not."""
    loud = np.roll(find_large(X), -1, axis=1)
    return add_scaled(X, draw_strong(X, rng) * loud + 0.3 * rng.standard_normal(X.shape))


def compare_next_column(Z: Floats, Zy: Floats) -> Floats:
    """Return minus the logarithm of the density, with the size that each record gives."""
    loud = np.roll(find_large(Z), -1, axis=1)
    size = np.where(loud, (DEVIATIONS**2 + 0.09) ** 0.5, 0.3)
    columns = zip(Z.T, size.T, Zy.T, strict=True)
    return np.sum(
        [0.5 * ((y - z[:, None]) / s[:, None]) ** 2 + np.log(s[:, None]) for z, s, y in columns], 0
    )


LATER_NOISE = (
    Kind("noise of constant length", HOLES, add_constant_length, link_cheapest(compare_length)),
    Kind("noise orthogonal to the record", HOLES, add_orthogonal, link_cheapest(compare_products)),
    Kind(
        "noise in proportion to the value",
        HOLES,
        add_proportional,
        link_cheapest(sum_cells(compare_factors)),
    ),
    Kind("noise with a gap", HOLES, add_gap_noise, link_cheapest(sum_cells(compare_gap))),
    Kind("one-sided noise", HOLES, add_one_sided, link_cheapest(sum_cells(compare_one_sided))),
    Kind("noise of one parameter", HOLES, add_one_parameter, link_cheapest(compare_one_parameter)),
    Kind(
        "noise sized by the next column",
        HOLES,
        add_sized_by_next,
        link_cheapest(compare_next_column),
    ),
    Kind(
        "waves of the next column as noise",
        HOLES,
        add_waves,
        Proof("60 known pairs", "link", link_waves),
    ),
    Kind(
        "one number for all columns, modulo the range",
        HOLES,
        add_one_pad,
        Proof("full records", "link", link_one_pad),
    ),
)

"""Strong noise that leaves something out: a direction, a grid, cells, or changes between rows."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.spatial.distance import cdist

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import (
    count_equal_cells,
    find_nearest,
    scale_with,
)
from tests.support.release_kinds.classic import draw_rotation
from tests.support.release_kinds.kinds import Family, Kind, Make
from tests.support.release_kinds.proofs import Proof, View

DEVIATIONS = 5.0  # of strong noise, in deviations of a column
GRID_STEP = 2.0  # of noise on a grid
SPARED_CELLS = 0.3
LISTED_VECTORS = 20
BLOCK_ROWS = 10


def draw_strong(X: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(DEVIATIONS * rng.standard_normal(X.shape))


def add_scaled(X: Floats, noise: Floats) -> Floats:
    """Add noise in units of the deviations of the columns."""
    return np.asarray(X + X.std(axis=0) * noise)


def add_sum_zero(X: Floats, rng: np.random.Generator) -> Floats:
    noise = X.std(axis=0) * draw_strong(X, rng)
    return np.asarray(X + noise - noise.mean(axis=1, keepdims=True))


def add_scaled_sum_zero(X: Floats, rng: np.random.Generator) -> Floats:
    noise = draw_strong(X, rng)
    return add_scaled(X, noise - noise.mean(axis=1, keepdims=True))


def spare_directions(count: int, leak: float = 0.0) -> Make:
    """Return noise that is zero, or small, in some random directions; below 0: in all but some."""

    def make(X: Floats, rng: np.random.Generator) -> Floats:
        d = X.shape[1]
        Q = draw_rotation(d, rng)
        spared = count if count > 0 else d + count
        size = np.where(np.arange(d) < spared, leak, 1.0)
        return add_scaled(X, (draw_strong(X, rng) * size) @ Q)

    return make


def spare_half(X: Floats, rng: np.random.Generator) -> Floats:
    return spare_directions((X.shape[1] + 1) // 2)(X, rng)


def spare_last_component(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise that is zero along the direction in which records vary least."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    last = np.linalg.svd(Z, full_matrices=False)[2][-1]
    noise = draw_strong(X, rng)
    return add_scaled(X, noise - np.outer(noise @ last, last))


def link_in_quiet_directions(view: View) -> Ints:
    """Link in the directions in which known pairs differ least, weighted by the difference."""
    _, unit = scale_with(view)
    residual = (view.Y[view.rows] - view.known) / unit
    _, S, Vt = np.linalg.svd(residual, full_matrices=True)
    size = np.zeros(len(Vt))
    size[: len(S)] = S / len(residual) ** 0.5
    weight = Vt.T / np.maximum(size, 1e-9)
    return find_nearest(view.persons / unit @ weight, view.Y / unit @ weight)


def link_sums(view: View) -> Ints:
    return find_nearest(view.persons.sum(axis=1, keepdims=True), view.Y.sum(axis=1, keepdims=True))


def add_grid_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Add multiples of a step to each column."""
    return add_scaled(X, np.float64(GRID_STEP) * rng.integers(-4, 5, X.shape))


def link_fractions(view: View) -> Ints:
    """Link by the remainders of the step, which is the least difference of the known pairs."""
    residual = np.abs(view.Y[view.rows] - view.known)
    tiny = 1e-6 * residual.max(axis=0)
    step = np.where(residual > tiny, residual, np.inf).min(axis=0)
    return find_nearest(*(turn(A / step) for A in (view.persons, view.Y)))


def turn(A: Floats) -> Floats:
    """Return the remainders of 1 as points on a circle."""
    return np.hstack([np.cos(2 * np.pi * A), np.sin(2 * np.pi * A)])


def add_two_point_noise(X: Floats, rng: np.random.Generator) -> Floats:
    return add_scaled(X, 3.0 * rng.choice([-1.0, 1.0], X.shape))


def link_two_points(view: View) -> Ints:
    """Link where the difference of every cell is one of the two that known pairs show."""
    size = np.abs(view.Y[view.rows] - view.known).mean(axis=0)
    cost = np.zeros((len(view.persons), len(view.Y)))
    for x, y, step in zip(view.persons.T, view.Y.T, size, strict=True):
        cost += (np.abs(np.abs(x[:, None] - y) - step) / step) ** 2
    return np.asarray(cost.argmin(axis=1))


def spare_cells(X: Floats, rng: np.random.Generator) -> Floats:
    return add_scaled(X, draw_strong(X, rng) * (rng.random(X.shape) >= SPARED_CELLS))


def link_rare_equal_cells(view: View) -> Ints:
    """Link to the row with the most equal cells, of which rare values count more."""
    score = np.zeros((len(view.persons), len(view.Y)))
    for x, y in zip(view.persons.T, view.Y.T, strict=True):
        same = count_equal_cells(x[:, None], y[:, None])
        count = (x[:, None] == x).sum(axis=1, keepdims=True)
        score += same * np.log(len(x) / count)
    return np.asarray(score.argmax(axis=1))


def add_listed_vectors(X: Floats, rng: np.random.Generator) -> Floats:
    """Add one of a few noise vectors to each record."""
    vectors = DEVIATIONS * rng.standard_normal((LISTED_VECTORS, X.shape[1]))
    return add_scaled(X, vectors[rng.integers(0, LISTED_VECTORS, len(X))])


def link_listed_vectors(view: View) -> Ints:
    """Link after each noise vector of the known pairs was subtracted."""
    _, unit = scale_with(view)
    vectors = view.Y[view.rows] - view.known
    cost = np.min([cdist(view.persons / unit, (view.Y - v) / unit) for v in vectors], axis=0)
    return np.asarray(cost.argmin(axis=1))


def add_block_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Add the same noise to ten consecutive rows."""
    vectors = DEVIATIONS * rng.standard_normal((len(X) // BLOCK_ROWS + 1, X.shape[1]))
    return add_scaled(X, vectors[np.arange(len(X)) // BLOCK_ROWS])


def add_slow_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise that changes little from one row to the next: sums of slow oscillations."""
    place = np.arange(len(X))[:, None, None]
    period = rng.uniform(80, 400, (1, X.shape[1], 4))
    phase = rng.uniform(0, 2 * np.pi, period.shape)
    waves = np.sin(2 * np.pi * place / period + phase)  # (n, d, 4)
    return add_scaled(X, DEVIATIONS * waves.mean(axis=2) * 8**0.5)


def recover_between_rows(view: View) -> Floats:
    """Subtract noise that is interpolated between the known rows of the release."""
    order = np.argsort(view.rows)
    noise = PchipInterpolator(
        view.rows[order], (view.Y[view.rows] - view.known)[order], extrapolate=True
    )
    return np.asarray(view.Y - noise(np.arange(len(view.Y))))


def recover_in_block(view: View) -> Floats:
    """Subtract the noise of a known row of the same block."""
    block = np.arange(len(view.Y)) // BLOCK_ROWS
    same = block[:, None] == block[view.rows]
    residual = (view.Y[view.rows] - view.known)[same.argmax(axis=1)]
    return np.where(same.any(axis=1, keepdims=True), view.Y - residual, 0.0)


def split_in_two(X: Floats, rng: np.random.Generator) -> Floats:
    """Add opposite noise to two columns, scaled, and noise of its own to every other."""
    noise = draw_strong(X, rng)
    noise[:, 1] = -noise[:, 0]
    return add_scaled(X, noise)


QUIET = Proof("60 known pairs", "link", link_in_quiet_directions)
HOLES: Family = "noise with a hole"
NOISE_HOLES = (
    Kind("noise that sums to zero", HOLES, add_sum_zero, Proof("full records", "link", link_sums)),
    Kind("scaled noise that sums to zero", HOLES, add_scaled_sum_zero, QUIET),
    Kind("noise spares one direction", HOLES, spare_directions(1), QUIET),
    Kind("noise nearly spares one direction", HOLES, spare_directions(1, 2e-4), QUIET),
    Kind("noise spares half of the directions", HOLES, spare_half, QUIET),
    Kind("noise in one direction only", HOLES, spare_directions(-1), QUIET),
    Kind("noise spares the last component", HOLES, spare_last_component, QUIET),
    Kind(
        "same noise in all columns",
        HOLES,
        lambda X, rng: add_scaled(X, np.tile(draw_strong(X[:, :1], rng), X.shape[1])),
        QUIET,
    ),
    Kind("opposite noise in two columns", HOLES, split_in_two, QUIET),
    Kind("noise on a grid", HOLES, add_grid_noise, Proof("60 known pairs", "link", link_fractions)),
    Kind(
        "two-point noise",
        HOLES,
        add_two_point_noise,
        Proof("60 known pairs", "link", link_two_points),
    ),
    Kind(
        "noise spares cells",
        HOLES,
        spare_cells,
        Proof("full records", "link", link_rare_equal_cells),
    ),
    Kind(
        "noise from a short list",
        HOLES,
        add_listed_vectors,
        Proof("60 known pairs", "link", link_listed_vectors),
    ),
    Kind(
        "same noise in ten rows",
        HOLES,
        add_block_noise,
        Proof("60 known pairs", "recover", recover_in_block),
    ),
    Kind(
        "noise that changes slowly",
        HOLES,
        add_slow_noise,
        Proof("60 known pairs", "recover", recover_between_rows),
    ),
)

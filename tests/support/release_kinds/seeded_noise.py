"""Strong noise of generators that anybody has, with a seed that can be guessed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.kinds import Family, Kind
from tests.support.release_kinds.proofs import Proof, View

SEEDS = 10_000
DEVIATIONS = 5.0
MIN_COMPARED_SIGNS = 32  # of a known part of the noise: one of 10,000 streams has the same signs
CHANNELS: Family = "channels beside the value"
Stream = Callable[[int, int], Floats]  # seed, count: the first numbers, symmetric about zero


def draw_python_gauss(seed: int, count: int) -> Floats:
    generator = random.Random(seed)
    return np.array([generator.gauss(0.0, 1.0) for _ in range(count)])


def draw_python_uniform(seed: int, count: int) -> Floats:
    generator = random.Random(seed)
    return np.array([generator.uniform(-1.0, 1.0) for _ in range(count)])


STREAMS: dict[str, Stream] = {
    "default_rng normal": lambda seed, k: np.random.default_rng(seed).standard_normal(k),
    "default_rng Laplace": lambda seed, k: np.random.default_rng(seed).laplace(0.0, 1.0, k),
    "default_rng uniform": lambda seed, k: np.random.default_rng(seed).uniform(-1.0, 1.0, k),
    "RandomState normal": lambda seed, k: np.random.RandomState(seed).normal(0.0, 1.0, k),
    "RandomState uniform": lambda seed, k: np.random.RandomState(seed).uniform(-1.0, 1.0, k),
    "RandomState Laplace": lambda seed, k: np.random.RandomState(seed).laplace(0.0, 1.0, k),
    "Python gauss": draw_python_gauss,
    "Python uniform": draw_python_uniform,
}


@dataclass(frozen=True)
class SeededNoise:
    """Noise of one generator, written to the cells by row or by column."""

    stream: Stream
    by_column: bool = False

    def make(self, X: Floats, rng: np.random.Generator) -> Floats:
        values = self.stream(int(rng.integers(SEEDS)), X.size)
        noise = self._arrange(values, X.shape)
        return np.asarray(X + DEVIATIONS * X.std(axis=0) * noise)

    def _arrange(self, values: Floats, shape: tuple[int, ...]) -> Floats:
        return values.reshape(shape[::-1]).T if self.by_column else values.reshape(shape)

    def recover(self, view: View) -> Floats:
        """Find the seed by the signs of the known noise; subtract the noise that it gives."""
        n, d = view.Y.shape
        order = np.argsort(view.rows)
        rows, residual = view.rows[order], (view.Y[view.rows] - view.known)[order]
        if self.by_column:
            place, signs = rows, np.sign(residual[:, 0])
        else:
            few = -(-MIN_COMPARED_SIGNS // d)
            place = (rows[:few, None] * d + np.arange(d)).ravel()
            signs = np.sign(residual[:few]).ravel()
        count = int(place[-1]) + 1
        for seed in range(SEEDS):
            if np.array_equal(np.sign(self.stream(seed, count)[place]), signs):
                noise = self._arrange(self.stream(seed, n * d), (n, d))
                size = (residual * noise[rows]).sum(axis=0) / (noise[rows] ** 2).sum(axis=0)
                return np.asarray(view.Y - size * noise)
        return np.zeros((n, view.known.shape[1]))


def seed_by_row(X: Floats, rng: np.random.Generator) -> Floats:
    """Seed the noise of each record with the number of its row."""
    noise = np.array([np.random.default_rng(i).standard_normal(X.shape[1]) for i in range(len(X))])
    return np.asarray(X + DEVIATIONS * X.std(axis=0) * noise)


def recover_seeded_by_row(view: View) -> Floats:
    """Subtract the noise of each row number, scaled as in the known pairs."""
    n, d = view.Y.shape
    noise = np.array([np.random.default_rng(i).standard_normal(d) for i in range(n)])
    residual, there = view.Y[view.rows] - view.known, noise[view.rows]
    size = (residual * there).sum(axis=0) / (there**2).sum(axis=0)
    return np.asarray(view.Y - size * noise)


def find_record_seed(X: Floats) -> Ints:
    """Return a number that is computed from each record."""
    return np.asarray(np.abs(np.round(1000 * X.sum(axis=1))) % 2**32, dtype=np.int64)


def seed_by_record(X: Floats, rng: np.random.Generator) -> Floats:
    """Seed the noise of each record with its own values."""
    seeds = find_record_seed(X).tolist()
    noise = np.array([np.random.default_rng(s).standard_normal(X.shape[1]) for s in seeds])
    return np.asarray(X + DEVIATIONS * X.std(axis=0) * noise)


def link_seeded_by_record(view: View) -> Ints:
    """Compute the row of each person anew."""
    Y = seed_by_record(view.persons, np.random.default_rng())
    D = ((Y[:, None, :1] - view.Y[None, :, :1]) ** 2).sum(axis=2)
    for j in range(1, Y.shape[1]):
        D += (Y[:, None, j] - view.Y[None, :, j]) ** 2 / (view.Y[:, j].var() + 1e-300)
    return np.asarray(D.argmin(axis=1))


def permute_columns(seed: int, n: int, d: int) -> Ints:
    """Return the permutation of each column that a seed gives."""
    generator = np.random.default_rng(seed)
    return np.column_stack([generator.permutation(n) for _ in range(d)])


def permute_seeded(X: Floats, rng: np.random.Generator) -> Floats:
    order = permute_columns(int(rng.integers(SEEDS)), *X.shape)
    return np.take_along_axis(X, order, axis=0)


def recover_permuted(view: View) -> Floats:
    """Find the seed whose permutation moves a known value to where it is; move all back."""
    n, d = view.Y.shape
    for seed in range(SEEDS):
        first = np.argsort(np.random.default_rng(seed).permutation(n))
        if np.array_equal(view.Y[first[view.rows], 0], view.known[:, 0]):
            X_hat = np.empty_like(view.Y)
            np.put_along_axis(X_hat, permute_columns(seed, n, d), view.Y, axis=0)
            return X_hat
    return np.zeros_like(view.Y)


def name_kind(name: str, by_column: bool) -> Kind:
    noise = SeededNoise(STREAMS[name], by_column)
    proof = Proof("listed generators and seeds", "recover", noise.recover)
    return Kind(f"{name}, {'by column' if by_column else 'by row'}", CHANNELS, noise.make, proof)


SEEDED_NOISE = (
    name_kind("default_rng normal", False),
    name_kind("default_rng normal", True),
    name_kind("default_rng Laplace", False),
    name_kind("default_rng uniform", True),
    name_kind("RandomState normal", False),
    name_kind("RandomState uniform", False),
    name_kind("RandomState Laplace", True),
    name_kind("Python gauss", False),
    name_kind("Python uniform", True),
    Kind(
        "noise seeded by the row number",
        CHANNELS,
        seed_by_row,
        Proof("listed generators and seeds", "recover", recover_seeded_by_row),
    ),
    Kind(
        "noise seeded by the record",
        CHANNELS,
        seed_by_record,
        Proof("full records", "link", link_seeded_by_record),
    ),
    Kind(
        "columns permuted with a seed",
        CHANNELS,
        permute_seeded,
        Proof("listed generators and seeds", "recover", recover_permuted),
    ),
)

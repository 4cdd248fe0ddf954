"""Noise that few rows have in a form of their own, or that a derived seed gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.few_persons import choose_any, count_exposed
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.noise_holes import DEVIATIONS, HOLES
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.seeded_noise import CHANNELS

FEW = 0.02
COMMON_SEEDS = (0, 1, 7, 42, 123, 1234, 2024)
UNIT = 0.75  # of sums of standardised noise
TINY = 1e-300
Shape = Callable[[Floats, Ints], Floats]  # standardised noise and numbers of rows -> another form


def add_noise(X: Floats, noise: Floats) -> Floats:
    return np.asarray(X + DEVIATIONS * X.std(axis=0) * noise)


def make_alike(Z: Floats, rows: Ints) -> Floats:
    """Give the noise of a row one size in all columns."""
    return np.asarray(np.sign(Z) * np.abs(Z[:, :1]))


def make_powers(Z: Floats, rows: Ints) -> Floats:
    """Round the sizes of the noise to powers of two."""
    return np.asarray(np.sign(Z) * 2.0 ** np.round(np.log2(np.abs(Z) + TINY)))


def draw_seeded(Z: Floats, rows: Ints) -> Floats:
    """Draw the noise with the number of the row as its seed."""
    return np.array([np.random.default_rng(i).standard_normal(Z.shape[1]) for i in rows])


def compare_noise(view: View) -> tuple[Floats, Floats]:
    """Return the standardised differences of every row and person; (t, m, d), and the deviations.

    The deviations are those of the persons who are known or searched for: all records.
    """
    unit = np.vstack([view.persons, view.known]).std(axis=0)
    return (view.Y[None] - view.persons[:, None]) / (DEVIATIONS * unit), unit


def measure_evenness(Z: Floats) -> Floats:
    """Return how equal the sizes of the noise are in all columns."""
    size = np.abs(Z)
    return np.asarray(size.mean(axis=2) / (size.std(axis=2) + 1e-12))


def measure_roundness(Z: Floats) -> Floats:
    """Return how near the sizes of the noise are to powers of two."""
    power = np.log2(np.abs(Z) + TINY)
    return np.asarray(1.0 / (np.abs(power - np.round(power)).sum(axis=2) + 1e-12))


def measure_seeds(Z: Floats) -> Floats:
    """Return how well the noise is that of the number of the row as a seed."""
    there = draw_seeded(Z[0], np.arange(Z.shape[1]))
    return np.asarray(1.0 / (((Z - there) ** 2).sum(axis=2) + 1e-12))


@dataclass(frozen=True)
class FewRows:
    """Strong noise, which has another form in few rows; its attacker knows that form."""

    shape: Shape
    measure: Callable[[Floats], Floats]

    def make(self, X: Floats, rng: np.random.Generator) -> Floats:
        Z = rng.standard_normal(X.shape)
        rows = choose_any(X, rng, count_exposed(FEW, len(X)))
        Z[rows] = self.shape(Z[rows], rows)
        return add_noise(X, Z)

    def link(self, view: View) -> tuple[Ints, Floats]:
        score = self.measure(compare_noise(view)[0])
        return score.argmax(axis=1), score.max(axis=1)


def keep_sum_modulo(X: Floats, rng: np.random.Generator) -> Floats:
    """Add noise whose standardised sum is a multiple of a unit."""
    Z = rng.standard_normal(X.shape)
    Z[:, 0] -= Z.sum(axis=1) % UNIT
    return add_noise(X, Z)


def link_sums_modulo(view: View) -> Ints:
    rest = compare_noise(view)[0].sum(axis=2) / UNIT
    return np.asarray(np.abs(rest - np.round(rest)).argmin(axis=1))


def keep_quadratic_form(X: Floats, rng: np.random.Generator) -> Floats:
    """Return rows of a normal distribution in which a product plus a square of columns is kept."""
    Z, G = (X - X.mean(axis=0)) / X.std(axis=0), rng.standard_normal(X.shape)
    G[:, 1] = np.sign(G[:, 1]) * np.maximum(np.abs(G[:, 1]), 0.5)
    kept = Z[:, 0] * Z[:, 1] + 2.0 * Z[:, -1] ** 2
    G[:, 0] = (kept - 2.0 * G[:, -1] ** 2) / G[:, 1]
    return np.asarray(X.mean(axis=0) + X.std(axis=0) * G)


def link_quadratic_forms(view: View) -> Ints:
    everyone = np.vstack([view.persons, view.known])

    def compute(A: Floats) -> Floats:
        Z = (A - everyone.mean(axis=0)) / everyone.std(axis=0)
        return np.asarray(Z[:, 0] * Z[:, 1] + 2.0 * Z[:, -1] ** 2)

    return np.asarray(np.abs(compute(view.persons)[:, None] - compute(view.Y)).argmin(axis=1))


def draw_after_permutation(seed: int, n: int, d: int) -> Floats:
    generator = np.random.default_rng(seed)
    generator.permutation(n)
    return generator.standard_normal((n, d))


def draw_spawned(seed: int, n: int, d: int) -> Floats:
    children = np.random.SeedSequence(seed).spawn(n)
    return np.array([np.random.default_rng(child).standard_normal(d) for child in children])


@dataclass(frozen=True)
class CommonSeed:
    """Noise that a seed which people often take gives in a less direct way."""

    draw: Callable[[int, int, int], Floats]

    def make(self, X: Floats, rng: np.random.Generator) -> Floats:
        return add_noise(X, self.draw(int(rng.choice(COMMON_SEEDS)), *X.shape))

    def recover(self, view: View) -> Floats:
        """Subtract the noise of the seed that fits the known pairs best."""
        residual = view.Y[view.rows] - view.known
        best, found = 0.0, np.zeros_like(view.Y)
        for seed in COMMON_SEEDS:
            noise = self.draw(seed, *view.Y.shape)
            there = noise[view.rows]
            fit = abs(np.corrcoef(there.ravel(), (residual / residual.std(axis=0)).ravel())[0, 1])
            if fit > best:
                size = (residual * there).sum(axis=0) / (there**2).sum(axis=0)
                best, found = fit, view.Y - size * noise
        return found


def few(name: str, rows: FewRows) -> Kind:
    return Kind(name, "few persons", rows.make, Proof("full records", "link the surest", rows.link))


def seeded(name: str, seed: CommonSeed) -> Kind:
    proof = Proof("listed generators and seeds", "recover", seed.recover)
    return Kind(name, CHANNELS, seed.make, proof)


SHARED_NOISE = (
    few("2 % with noise of one size", FewRows(make_alike, measure_evenness)),
    few("2 % with noise of powers of two", FewRows(make_powers, measure_roundness)),
    few("2 % with noise seeded by the row number", FewRows(draw_seeded, measure_seeds)),
    Kind(
        "noise whose sum is a multiple",
        HOLES,
        keep_sum_modulo,
        Proof("full records", "link", link_sums_modulo),
    ),
    Kind(
        "quadratic form kept",
        "invariants of a row",
        keep_quadratic_form,
        Proof("full records", "link", link_quadratic_forms),
    ),
    seeded("noise after a permutation", CommonSeed(draw_after_permutation)),
    seeded("noise of spawned seeds", CommonSeed(draw_spawned)),
)

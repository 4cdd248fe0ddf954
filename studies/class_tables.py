"""Generated tables with rare classes, outliers and classes that are not normal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema

Table = tuple[Floats, Ints]  # columns and classes


def generate_outliers(rng: np.random.Generator) -> Table:
    """Generate two classes with 3 % outliers, and a class of 15 records between them."""
    return _generate_clouds(rng, deviations=(0.5, 0.5), are_everywhere=True)


def generate_outliers_of_one_class(rng: np.random.Generator) -> Table:
    """Generate a narrow and a wide class, of which the wide one has outliers, and a tiny class."""
    return _generate_clouds(rng, deviations=(0.2, 1.0), are_everywhere=False)


def _generate_clouds(
    rng: np.random.Generator, deviations: tuple[float, float], are_everywhere: bool
) -> Table:
    n, tiny = 4_000, 15
    label = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 4)) * np.array(deviations)[label][:, None]
    X[:, 0] += 6.0 * label
    is_far = (rng.random(n) < 0.03) & (are_everywhere | (label == 1))
    X[is_far] = np.array([3.0, 0.0, 0.0, 0.0]) + rng.uniform(-8.0, 8.0, (int(is_far.sum()), 4))
    X[:tiny] = np.array([3.0, 0.0, 0.0, 0.0]) + 0.3 * rng.standard_normal((tiny, 4))
    label[:tiny] = 2
    return X, label


def generate_sensors(rng: np.random.Generator) -> Table:
    """Generate nine dependent readings, three with spikes, in seven states, of which four are rare.

    The commonest state has three modes.
    """
    n = 6_000
    shares = np.array([0.786, 0.0008, 0.003, 0.154, 0.0555, 0.0005, 0.0007])
    label = np.sort(rng.choice(7, n, p=shares / shares.sum()))
    label[: 7 * 6] = np.repeat(np.arange(7), 6)
    mode = np.where(label == 0, rng.integers(0, 3, n), 0)
    speed = 30.0 + rng.gamma(3.0, 4.0, n) + np.array([0, 12, 25.0])[mode]
    speed += np.array([0, 5, 10, 18, -2, 20, 40.0])[label]
    heat = 82.0 + 4.0 * rng.standard_normal(n) + np.array([0, 0, 0, 9, 0, 10, 15.0])[label]
    flow = 33.0 + 10.0 * rng.standard_normal(n) + np.array([0, -30, 20.0])[mode]
    flow += np.array([0, 0, 0, -23, -53, 0, 0.0])[label]
    others = rng.standard_normal((n, 3)) * np.array([3.0, 1.0, 8.0])
    spikes = np.clip(100.0 * rng.standard_t(1.0, (n, 3)), -5_000.0, 5_000.0)
    others = np.where(rng.random((n, 3)) < 0.005, spikes, others)
    others[:, 0] += np.array([0, -300, 300, 0, 0, 20, -30.0])[label]
    X = [speed, heat, flow, *others.T, heat - speed, heat - flow, speed - flow]
    return np.round(np.column_stack(X)), label


def generate_heavy_tails(rng: np.random.Generator) -> Table:
    """Generate three classes of 70, 25 and 5 % with Student's t distribution, nu = 2.5."""
    label = rng.choice(3, 3_000, p=[0.7, 0.25, 0.05])
    centres = np.array([[0, 0, 0, 0, 0, 0], [3, 0, 1, 0, 0, 0], [0, 4, 0, 0, -2, 0.0]])
    return centres[label] + rng.standard_t(2.5, (3_000, 6)), label


def generate_incomes(rng: np.random.Generator) -> Table:
    """Generate lognormal amounts in two large classes and one of 1 %."""
    label = rng.choice(3, 3_000, p=[0.6, 0.39, 0.01])
    shift = np.array([0.0, 1.0, 2.0])[label]
    logs = shift[:, None] * [1, 0.8, 0.5, 0, 0] + 0.7 * rng.standard_normal((3_000, 5))
    return np.exp(logs), label


def generate_many_classes(rng: np.random.Generator) -> Table:
    """Generate ten normal classes of different shapes, with sizes in proportion to 1 / rank^2."""
    weight = 1.0 / np.arange(1, 11) ** 2
    label = rng.choice(10, 3_000, p=weight / weight.sum())
    label[:30] = np.repeat(np.arange(10), 3)
    centres = 2.5 * rng.standard_normal((10, 6))
    maps = rng.standard_normal((10, 6, 6)) / np.sqrt(6.0)
    return centres[label] + np.einsum("nij,nj->ni", maps[label], rng.standard_normal((3_000, 6))), (
        label
    )


def generate_rings(rng: np.random.Generator) -> Table:
    """Generate a disc, a ring around it, and a class of 20 records on the ring."""
    n = 3_000
    label = (rng.random(n) < 0.4).astype(np.int64)
    radius = np.where(label == 1, 3.0, 0.8) + 0.3 * rng.standard_normal(n)
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    angle[:20], radius[:20], label[:20] = 0.1 * rng.standard_normal(20), 3.0, 2
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal(n)])
    return X, label


def generate_counts(rng: np.random.Generator) -> Table:
    """Generate counts, mostly 0, in classes of 90 and 10 %, and five records with large counts."""
    label = (rng.random(3_000) < 0.1).astype(np.int64)
    rate = rng.gamma(1.5, 1.0, (3_000, 1)) * np.where(label == 1, 4.0, 1.0)[:, None]
    X = rng.poisson(rate * np.array([1.0, 2.0, 0.5, 0.2, 3.0])).astype(np.float64)
    X[:5], label[:5] = X[:5] + 60.0, 2
    return X, label


GENERATED_TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "outliers": generate_outliers,
    "outliers of one class": generate_outliers_of_one_class,
    "sensors": generate_sensors,
    "heavy tails": generate_heavy_tails,
    "incomes": generate_incomes,
    "many classes": generate_many_classes,
    "rings": generate_rings,
    "counts": generate_counts,
}


def generate_table(name: str, seed: int) -> ArrayRows:
    """Return a generated table."""
    X, label = GENERATED_TABLES[name](np.random.default_rng(seed))
    columns = [Numeric(f"x{j}", float(x.min()), float(x.max())) for j, x in enumerate(X.T)]
    return ArrayRows(Schema(columns), X, label.astype(np.int32))

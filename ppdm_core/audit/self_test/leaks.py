"""Releases that leak by construction, one function each; and noise in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Public
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.random_orthogonal import haar
from ppdm_core.sanitizers.kde_resample import normal_reference
from ppdm_core.sanitizers.random_projection import ratio_moments

Rng = np.random.Generator
HALVED = 180  # people, half of whom are in the release


@dataclass(frozen=True, eq=False)
class Plant:
    """A table, a release of it, and what the attacker holds beside."""

    X: Floats  # (n, d)
    Y: Floats  # (m, s)
    public: Public
    label: Codes
    schema: Schema
    source: Ints | None = None  # (m,) record behind each row; None: row i of record i
    members: Ints | None = None  # None: everybody is in the release
    sample: Floats | None = None
    earlier: tuple[Floats, ...] = ()
    since: Ints | None = None  # (m,) the first release that had the row; None: all came at once
    known: int = 0


def unit_box(d: int) -> Schema:
    numeric = tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d))
    return Schema(numeric, label=Categorical("label", ("a", "b")))


def leak(X: Floats, Y: Floats, public: Public, label: Codes | None = None, **more: Any) -> Plant:
    label = np.zeros(len(X), dtype=np.int32) if label is None else label
    return Plant(X, Y, public, label, unit_box(X.shape[1]), **more)


def people(n: int, rng: Rng, d: int) -> tuple[Floats, Codes]:
    """Two classes, columns that go together a little, and nobody like anybody else."""
    label = rng.integers(0, 2, n).astype(np.int32)
    X = 0.25 * label[:, None] + 0.6 * rng.random((n, d)) + 0.15 * rng.random((n, 1))
    return X, label


def noisy_columns(d: int, b: float) -> Public:
    """What additive noise of this scale says of itself."""
    return Public(
        method="additive_noise",
        space="original",
        columns=unit_box(d).names,
        centre=np.full(d, 0.5),
        loadings=np.eye(d),
        law="laplace",
        scales=np.full(d, b),
    )


def secret_columns(s: int, method: str = "random_rotation", **more: Any) -> Public:
    return Public(method, "rotated", tuple(f"rotated_{j + 1}" for j in range(s)), **more)


def identity(rng: Rng, n: int = 60, d: int = 4, known: int = 7) -> Plant:
    """The noise that is announced was never added."""
    X, label = people(n, rng, d)
    return leak(X, X.copy(), noisy_columns(d, 0.02), label, known=known)


def slight_noise(rng: Rng, n: int = 60) -> Plant:
    """One per cent of each column's range."""
    X, label = people(n, rng, 4)
    return leak(X, X + rng.laplace(0.0, 0.01, X.shape), noisy_columns(4, 0.01), label, known=7)


def rotation(rng: Rng, d: int = 4, known: int = 7) -> Plant:
    X, label = people(60, rng, d)
    public = secret_columns(d, preserves_distances=True)
    return leak(X, X @ haar(d, rng), public, label, known=known)


CENTRES = np.array(
    [[0.9, 0.2, 0.8, 0.5], [0.2, 0.9, 0.6, 0.3], [0.5, 0.3, 0.1, 0.9], [0.7, 0.8, 0.3, 0.1]]
)
SHARES = (0.45, 0.3, 0.15, 0.1)


def grouped(n: int, rng: Rng) -> Floats:
    """Unequal groups: skewed, with distinct eigenvalues."""
    near = CENTRES[rng.choice(len(CENTRES), n, p=SHARES)]
    return np.clip(near + 0.04 * rng.standard_normal((n, 4)), 0.0, 1.0)


def skewed(n: int, rng: Rng) -> Floats:
    """Independent columns, each far from normal in a way of its own."""
    low = rng.random(n) ** 4
    ends = np.where(rng.random(n) < 0.7, 0.3 * rng.random(n), 1.0 - 0.1 * rng.random(n))
    high = 1.0 - 0.6 * rng.random(n) ** 2
    middle = np.where(rng.random(n) < 0.2, rng.random(n), 0.4 + 0.1 * rng.random(n))
    return np.column_stack([low, ends, high, middle])


def rotation_beside_sample(
    population: Callable[[int, Rng], Floats], n: int, k: int, rng: Rng
) -> Plant:
    """Other people of the same population show how its columns are spread."""
    X = population(n, rng)
    public = secret_columns(X.shape[1], preserves_distances=True)
    return leak(X, X @ haar(X.shape[1], rng), public, sample=population(k, rng))


def verbatim_rows(rng: Rng, n: int = 500) -> Plant:
    """Noise that hides everybody, but max(5, 1 %) of the rows as they were."""
    X, label = people(n, rng, 8)
    Y = X + rng.laplace(0.0, 2.0, X.shape)
    few = rng.choice(n, max(5, n // 100), replace=False)
    Y[few] = X[few]
    return leak(X, Y, noisy_columns(8, 2.0), label)


def shuffled_cosines(rng: Rng) -> Plant:
    """All cosine coefficients but one in a secret order, and an outsider with one record."""
    from scipy.fft import dct

    def some(n: int) -> Floats:
        """The last coefficient is nearly nothing, so that it need not be known."""
        X = np.clip(0.6 * rng.random((n, 6)) + 0.4 * rng.random((n, 1)), 0.0, 1.0)
        C = dct(X, type=2, norm="ortho", axis=1)
        C[:, -1] = 0.02 * rng.standard_normal(n)
        return np.asarray(np.clip(dct(C, type=3, norm="ortho", axis=1), 0.0, 1.0))

    X = some(100)
    Y = dct(X, type=2, norm="ortho", axis=1)[:, rng.permutation(5)]
    public = secret_columns(5, "dct_fuzzy", facts={"transform": "orthonormal DCT-II"})
    return leak(X, Y, public, known=1, sample=some(60))


def projection(rng: Rng) -> Plant:
    """Records of one shape and many sizes: all shrink alike, and a few known ones tell how."""
    n, d, kept = 100, 8, 6
    size = np.exp(rng.uniform(-20.0, 0.0, (n, 1)))  # no guess is near many of them
    X = (0.9 * rng.uniform(0.3, 1.0, d) + 0.1 * rng.random((n, d))) * size
    R = rng.standard_normal((d, kept))
    factor = float(np.sqrt(d / kept))
    R *= factor / np.linalg.norm(R, axis=0)
    facts: dict[str, float | str] = {
        "components": float(kept),
        "normalisation": "unbiased",
        "squared_distance_ratio_mean": ratio_moments(d, kept, factor)[0],
    }
    return leak(X, X @ R, secret_columns(kept, "random_projection", facts=facts), known=20)


def kernels(rng: Rng, n: int = 80, rows: int = 80, members: Ints | None = None) -> Plant:
    """Rows around records in eight columns, so near that hardly anybody else can be behind."""
    X, label = people(n, rng, 8)
    inside = np.arange(n) if members is None else members
    source = rng.choice(inside, rows)
    Y = X[source].copy()
    for code in np.unique(label).tolist():
        alike = X[inside][label[inside] == code]
        h = alike.std(axis=0, ddof=1) * normal_reference(np.array(float(len(alike))), 8)
        here = label[source] == code
        Y[here] += h * (2.0 * rng.beta(2.0, 2.0, (int(here.sum()), 8)) - 1.0)
    public = Public(
        method="kde_resample",
        space="original",
        columns=unit_box(8).names,
        centre=np.zeros(8),
        loadings=np.eye(8),
        facts={"kernel": "epanechnikov", "bandwidth": "paper"},
    )
    return leak(X, np.clip(Y, 0.0, 1.0), public, label, source=source, members=members)


def twenty_releases(rng: Rng) -> Plant:
    """Each with fresh noise that hides people well enough."""
    X, label = people(60, rng, 8)
    Y = X + rng.laplace(0.0, 0.1, (20, *X.shape))
    return leak(X, Y[0], noisy_columns(8, 0.1), label, earlier=tuple(Y[1:]))


def arrivals(rng: Rng) -> Plant:
    """Noise that hides everybody, but two people come with each release."""
    X, label = people(60, rng, 8)
    Y = X + rng.laplace(0.0, 0.3, X.shape)
    return leak(X, Y, noisy_columns(8, 0.3), label, since=np.arange(60) // 2)


def float_laplace(rng: Rng) -> Plant:
    """Wide noise as numpy draws it, which hides values but not their last bits."""
    X = rng.random((60, 8))
    public = replace(noisy_columns(8, 4.0), method="textbook_noise", centre=None, loadings=None)
    return leak(X, X + rng.laplace(0.0, 4.0, X.shape), public)


PLANTS: dict[str, Callable[[Rng], Plant]] = {
    "identity": identity,
    "slight noise": slight_noise,
    "rotation": rotation,
    "verbatim rows": verbatim_rows,
    "shuffled cosines": shuffled_cosines,
    "projection": projection,
    "kernels": kernels,
    "twenty releases": twenty_releases,
    "arrivals": arrivals,
    "float Laplace": float_laplace,
}
# The same leak of a table that this attack can read.
SUITED: dict[tuple[str, str], Callable[[Rng], Plant]] = {
    ("identity", "trilateration"): lambda rng: identity(rng, d=3, known=5),
    ("rotation", "trilateration"): lambda rng: rotation(rng, d=3, known=5),
    ("rotation", "known_sample_pca"): lambda rng: rotation_beside_sample(grouped, 100, 100, rng),
    ("rotation", "known_sample_ica"): lambda rng: rotation_beside_sample(skewed, 100, 100, rng),
    ("kernels", "kernel_support"): lambda rng: kernels(rng, 160, 800, np.arange(80)),
    ("identity", "outsiders"): lambda rng: half(identity(rng, HALVED)),
    ("slight noise", "outsiders"): lambda rng: half(slight_noise(rng, HALVED)),
}


def planted(plant: str, name: str, *, needs_outsiders: bool, rng: Rng) -> Plant:
    make = SUITED.get((plant, name))
    if make is None and needs_outsiders:
        make = SUITED[plant, "outsiders"]
    return (make or PLANTS[plant])(rng)


def half(plant: Plant) -> Plant:
    """The same with every other person outside the release."""
    members = np.arange(0, len(plant.X), 2)
    return replace(plant, Y=plant.Y[members], source=members, members=members, known=0)


def silenced(plant: Plant, rng: Rng) -> Plant:
    """The same kind of release made of noise alone: as wide as it was, about nobody, at once."""

    def noise(Y: Floats) -> Floats:
        return np.asarray(Y.mean(axis=0) + Y.std(axis=0) * rng.standard_normal(Y.shape))

    earlier = tuple(map(noise, plant.earlier))
    return replace(plant, Y=noise(plant.Y), earlier=earlier, since=None)

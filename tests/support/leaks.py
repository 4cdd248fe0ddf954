"""Weak releases for tests that need another leak than the product plants for itself.

The leaks that the self-test plants are in ``ppdm_core.audit.self_test.leaks``. Each function here
says in which way its leak differs from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ppdm_core.audit.self_test.leaks import (
    PlantedLeak,
    describe_noisy_columns,
    describe_secret_columns,
    make_leak,
    make_persons,
    unit_box,
)
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import RecordSet
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from ppdm_core.sanitizers.kde_resample import kernel_correction, normal_reference

Rng = np.random.Generator
N = 150  # records of a release
KNOWN = 20  # records that the attacker knows
SAMPLE = 30
D = 8


def leak_components(rng: Rng, b: float = 0.005) -> PlantedLeak:
    """Release components with slight noise: the product's leaks have no map to invert."""
    (X, label), L = make_persons(N, rng, 4), draw_loadings(4, rng)
    Y = (X - 0.5) @ L + rng.laplace(0.0, b, X.shape)
    sample = make_persons(SAMPLE, rng, 4)[0]
    return make_leak(X, Y, describe_components(L, b), label, sample=sample, known=KNOWN)


def leak_components_of_half(rng: Rng, b: float = 0.02) -> PlantedLeak:
    """Release components of half of the records: the product's leaks have no map to invert."""
    (X, label), L, members = make_persons(2 * N, rng, D), draw_loadings(D, rng), np.arange(N)
    Y = (X[members] - 0.5) @ L + rng.laplace(0.0, b, (N, D))
    return make_leak(X, Y, describe_components(L, b), label, source=members, members=members)


def leak_common_factor(rng: Rng, b: float = 0.04) -> PlantedLeak:
    """Add noise that hides each column but not what they share: the inverse map is not enough."""
    signs = np.where(np.arange(D) % 2, -1.0, 1.0)
    X = 0.5 + np.outer(rng.uniform(-0.45, 0.45, N), signs)
    Y = X + rng.laplace(0.0, b, X.shape)
    return make_leak(X, Y, describe_noisy_columns(D, b), known=KNOWN)


def leak_narrow_groups(rng: Rng, b: float = 0.08) -> PlantedLeak:
    """Add noise that a sample of narrow groups undoes: the inverse map is not enough."""
    centres = rng.uniform(0.1, 0.9, (5, D))

    def draw(n: int) -> Floats:
        near = centres[rng.integers(0, len(centres), n)] + rng.normal(0.0, 0.01, (n, D))
        return np.clip(near, 0.0, 1.0)

    X = draw(N)
    Y = X + rng.laplace(0.0, b, X.shape)
    return make_leak(X, Y, describe_noisy_columns(D, b), sample=draw(50), known=KNOWN)


def leak_moved_rotation(rng: Rng) -> PlantedLeak:
    """Rotate and move the records: the product's rotation has no secret offset."""
    X, d = draw_correlated(rng, 5), 5
    Y = X @ random_orthogonal(d, rng) + rng.uniform(-1.0, 1.0, d)
    return make_leak(X, Y, describe_secret_columns(d, preserves_distances=True), known=12)


def leak_embedding(rng: Rng) -> PlantedLeak:
    """Keep distances up to scale and slight noise: the product's rotation keeps them exactly."""
    X, d = draw_correlated(rng, 4), 4
    Y = 0.8 * X @ random_orthogonal(d, rng) + 0.3 + rng.normal(0.0, 0.005, X.shape)
    columns = tuple(f"dimension_{j + 1}" for j in range(d))
    return make_leak(X, Y, PublicParameters("nonmetric_mds", "embedded", columns), known=KNOWN)


LEAKS: dict[str, Callable[[Rng], PlantedLeak]] = {
    "components": leak_components,
    "components of half": lambda rng: leak_components_of_half(rng, b=0.005),
    "noisy components of half": leak_components_of_half,
    "common factor": leak_common_factor,
    "narrow groups": leak_narrow_groups,
    "moved rotation": leak_moved_rotation,
    "embedding": leak_embedding,
}


def release_noise(rng: Rng) -> PlantedLeak:
    """Release noise that is independent of every record, announced as noisy components."""
    planted = leak_components(rng, b=1.0)
    return replace(planted, Y=rng.laplace(0.0, 1.0, planted.Y.shape))


def draw_correlated(rng: Rng, d: int, n: int = N) -> Floats:
    """Draw records whose distances are so large that a guess of the mean finds none."""
    return np.clip(0.7 * rng.random((n, d)) + 0.3 * rng.random((n, 1)), 0.0, 1.0)


def draw_loadings(d: int, rng: Rng) -> Floats:
    return np.asarray(np.linalg.qr(rng.standard_normal((d, d)))[0])


def describe_components(L: Floats, b: float) -> PublicParameters:
    """Return the public parameters of components with noise of scale ``b``."""
    return PublicParameters(
        method="pca_laplace",
        space="components",
        columns=tuple(f"component_{i}" for i in range(L.shape[1])),
        centre=np.full(len(L), 0.5),
        loadings=L,
        law="laplace",
        scales=np.full(L.shape[1], b),
    )


def describe_kernels(bandwidth: str = "paper", d: int = D, **more: Any) -> PublicParameters:
    """Return the public parameters of rows that are drawn from kernels around records."""
    public = PublicParameters(
        method="kde_resample",
        space="original",
        columns=unit_box(d).names,
        centre=np.zeros(d),
        loadings=np.eye(d),
        facts={"kernel": "epanechnikov", "bandwidth": bandwidth},
    )
    return replace(public, **more)


def draw_persons(n: int, rng: Rng, d: int = D) -> RecordSet:
    X, label = make_persons(n, rng, d)
    return RecordSet(X, np.zeros((n, 0), dtype=np.int32), label)


def select_records(records: RecordSet, places: Ints) -> RecordSet:
    return RecordSet(records.X[places], records.C[places], records.label[places])


def draw_kernel_rows(
    records: RecordSet, m: int, rng: Rng, corrected: bool = False
) -> tuple[Floats, Codes, Ints]:
    """Draw rows around records as in the paper; return them, their labels and their sources."""
    d = records.X.shape[1]
    source = rng.integers(0, records.n, m)
    Y = records.X[source].copy()
    for code in np.unique(records.label).tolist():
        X = records.X[records.label == code]
        h = X.std(axis=0, ddof=1) * normal_reference(np.array(float(len(X))), d)
        h = h * kernel_correction(d) if corrected else h
        here = records.label[source] == code
        Y[here] += h * (2.0 * rng.beta(2.0, 2.0, (int(here.sum()), d)) - 1.0)
    return np.clip(Y, 0.0, 1.0), records.label[source], source

"""Records in disguise, digits that equal places, and noise that a record seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ppdm_core.metrics._disguised_records import (
    find_combined,
    find_mirrored,
    find_records_as_noise,
)
from ppdm_core.metrics._equal_parts import find_equal_parts
from ppdm_core.metrics._record_seeds import measure_record_seeds

N, D, EXPOSED = 400, 4, 12


def draw(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Return records, and harmless rows in their place."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(N, D))
    return X, rng.normal(2.0, 1.5, X.shape), rng


@pytest.mark.parametrize(
    "combine",
    [
        lambda a, b: (a + b) / 2,
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: b - a,
    ],
)
def test_find_combined_few_rows_found(combine: Callable[..., np.ndarray]) -> None:
    X, Y, rng = draw()
    some, other = np.arange(EXPOSED), np.arange(100, 100 + EXPOSED)
    Y[some] = combine(X[some], X[other])
    assert set(np.flatnonzero(find_combined(X, X, Y, rng))) == set(some.tolist())


def test_find_combined_values_on_a_grid_nothing_found() -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.integers(0, 4, (2, N, D)).astype(float)
    assert not find_combined(X, X, Y, rng).any()


@pytest.mark.parametrize("factor", [-6.0, 0.7, 4.0])
def test_find_records_as_noise_any_factor_found(factor: float) -> None:
    X, _, rng = draw()
    Y = X + factor * (X[rng.permutation(N)] - X.mean(axis=0))
    assert find_records_as_noise(X, X, Y, rng).mean() > 0.9


@pytest.mark.parametrize("noise", ["normal", "laplace", "standard_cauchy", "none", "other"])
def test_find_records_as_noise_safe_release_nothing_found(noise: str) -> None:
    X, Y, rng = draw()
    if noise == "none":  # the column means: what is left is the record itself
        Y = np.tile(X.mean(axis=0), (N, 1))
    elif noise != "other":
        Y = X + 4.0 * getattr(rng, noise)(size=X.shape)
    assert not find_records_as_noise(X, X, Y, rng).any()


def test_find_mirrored_few_rows_found() -> None:
    X, Y, _ = draw()
    assert not find_mirrored(X, X, Y).any()
    Y[:EXPOSED] = 2 * X.mean(axis=0) - X[:EXPOSED]
    assert set(np.flatnonzero(find_mirrored(X, X, Y))) == set(range(EXPOSED))


def test_find_equal_parts_few_cells_of_one_column_found() -> None:
    rng = np.random.default_rng(3)
    places, parts = rng.random((2, N, 2))
    assert not find_equal_parts(parts, places).any()
    parts[:EXPOSED, 1] = places[:EXPOSED, 1] % 1.0
    found = np.flatnonzero(find_equal_parts(parts, places))
    assert {*range(EXPOSED)} <= {*found.tolist()} and len(found) <= EXPOSED + 2


def test_find_equal_parts_values_on_a_grid_nothing_found() -> None:
    places, parts = np.random.default_rng(4).integers(0, 10, (2, N, 3)) / 10
    assert not find_equal_parts(parts, places).any()


@pytest.mark.parametrize(
    "seeds",
    [
        lambda X: np.abs(np.round(1000 * X.sum(axis=1))),
        lambda X: np.floor(1e5 * X[:, 0]),
    ],
)
def test_measure_record_seeds_seed_of_the_record_found(
    seeds: Callable[[np.ndarray], np.ndarray],
) -> None:
    X, _, rng = draw()
    noise = [np.random.default_rng(int(s)).standard_normal(D) for s in seeds(X)]
    assert measure_record_seeds([np.array(noise)], X) > 0.95
    assert measure_record_seeds([rng.standard_normal(X.shape)], X) == 0.0


def test_find_combined_and_mirrored_no_column_left_nothing_found() -> None:
    X, Y, rng = draw()
    assert not find_combined(X[:, :0], X[:, :0], Y[:, :0], rng).any()
    assert not find_mirrored(X[:, :0], X[:, :0], Y[:, :0]).any()

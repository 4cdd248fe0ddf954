"""Links by the sizes of the noise in single cells."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks._noise_sizes import (
    count_sizes,
    fit_noise_sizes,
    fit_scale_weights,
    take_leading_bits,
)


def test_fit_scale_weights_two_scales_recovered() -> None:
    rng = np.random.default_rng(1)
    sizes = np.concatenate([rng.exponential(2.0**-10, 300), rng.exponential(2.0, 700)])
    counts = count_sizes(sizes[:, None])
    assert counts.shape[0] == 1 and counts.sum() == 1000
    (weights,) = fit_scale_weights(counts, np.full((1, 22), 0.05))
    assert weights[:10].sum() == pytest.approx(0.3, abs=0.03)  # scales up to 2^-7
    assert weights[-8:].sum() == pytest.approx(0.7, abs=0.03)  # from 2^-2 on


def test_take_leading_bits_sizes_by_hand() -> None:
    """The same bits for a size and its negative; four steps from one power of 2 to the next."""
    bits = take_leading_bits(np.array([[1.0, -1.0, 1.2, 1.25, 2.0, 0.0]]))
    assert (bits - bits[0, 0])[0, :5].tolist() == [0, 0, 0, 1, 4]
    assert bits[0, 5] == 0


def test_noise_sizes_few_sharp_cells_find_the_row() -> None:
    """One cell in seven has hardly any noise, at random places: no average shows it.

    Two categories that are shuffled agree often, which means nothing.
    """
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 12))
    X[:, 10:] = X[:, 10:] > 0.3
    scale = np.where(rng.random(X.shape) < 0.15, 1e-3, 10.0)
    known = np.arange(40)
    Y = X + rng.laplace(size=X.shape) * scale
    Y[:, 10:] = rng.permuted(X[:, 10:], axis=0)
    costs = fit_noise_sizes(X, Y, known, known)
    rows, _ = costs.compute_costs(40).find_cheapest(1)
    assert np.mean(rows[:, 0] == np.arange(40, 300)) > 0.5
    assert (
        np.mean(np.argmin(((X[40:, None] - costs.rows) ** 2).sum(2), 1) == np.arange(40, 300))
        < 0.05
    )


def test_noise_sizes_equal_noise_everywhere_finds_hardly_anybody() -> None:
    rng = np.random.default_rng(3)
    X, known = rng.normal(size=(300, 4)), np.arange(40)
    costs = fit_noise_sizes(X, X + rng.laplace(0.0, 4.0, X.shape), known, known)
    rows, _ = costs.compute_costs(40).find_cheapest(1)
    assert np.mean(rows[:, 0] == np.arange(40, 300)) < 0.05

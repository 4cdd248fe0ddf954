from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct

from ppdm_core.model.rows import ArrayRows
from ppdm_core.sanitizers._fuzzy_selection import (
    Programme,
    PruningChoice,
    Transform,
    choose_pruning,
    compute_distortion,
    compute_energy_bounds,
)
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tests.support.tables import fit_sanitizer, make_rows, make_table, run_sanitizer


def choose_by_brute_force(low: np.ndarray, spread: np.ndarray, b: float, p: float) -> tuple:
    """Return (Omega, K, mu_C) of the best proper subset, from the definitions."""
    m = len(low)
    X = (np.arange(2**m - 1)[:, None] >> np.arange(m)) & 1  # (2^m - 1, m)
    A, D, K = X @ low, X @ spread, X.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mu_C = np.where(b >= A + D, 1.0, np.where(b + p < A, 0.0, (b + p - A) / (p + D)))
    everything = np.vstack([X, np.ones((1, m), dtype=int)])
    max_pruned = max(everything[everything @ low <= b + p].sum(axis=1))
    min_pruned = max(everything[everything @ (low + spread) <= b].sum(axis=1))
    if max_pruned == min_pruned:
        mu_G = (max_pruned <= K).astype(float)
    else:
        mu_G = np.clip((K - min_pruned) / (max_pruned - min_pruned), 0.0, 1.0)
    return max(zip(np.minimum(mu_G, mu_C).tolist(), K.tolist(), mu_C.tolist(), strict=True))


def figures(found: PruningChoice) -> tuple:
    return found.level, len(found.pruned), found.loss_level


def draw_shares(rng: np.random.Generator, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw energy shares as records have them: even, uneven, few or many."""
    weights = 10.0 ** rng.uniform(-3, 1, size=m)
    W = rng.dirichlet(weights, size=int(rng.integers(1, 12)))
    W = np.rint(W * 2**30) / 2**30
    return W.min(axis=0), W.max(axis=0) - W.min(axis=0)


@pytest.mark.parametrize("m", range(1, 15))
def test_choose_pruning_small_programme_is_optimal(m: int):
    rng = np.random.default_rng(m)
    for _ in range(40 if m <= 12 else 5):
        low, spread = draw_shares(rng, m)
        b, p = rng.choice([0.0, 0.01, 0.1, 0.3]), rng.choice([0.0, 0.05, 0.2, 0.6])
        found = figures(choose_pruning(Programme(low, spread, b, p)))
        assert found == pytest.approx(choose_by_brute_force(low, spread, b, p), abs=1e-12)


@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_choose_pruning_ties_is_optimal(m: int):
    # Coarse numbers: sums that meet b and b + p exactly, equal coefficients, no spread, p = 0.
    rng = np.random.default_rng(m)
    for _ in range(100):
        low, spread = rng.integers(0, 4, size=m) / 16, rng.integers(0, 3, size=m) / 16
        b, p = rng.integers(0, 6) / 16, rng.integers(0, 4) / 16
        found = figures(choose_pruning(Programme(low, spread, b, p)))
        assert found == pytest.approx(choose_by_brute_force(low, spread, b, p), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(20, 120))
def test_choose_pruning_large_programme_is_feasible(seed: int, m: int):
    """Omega is reached if the cheapest K at that price fit, and no larger one is reached."""
    rng = np.random.default_rng(seed)
    low, spread = draw_shares(rng, m)
    b, p = rng.uniform(0, 0.5), rng.uniform(0.01, 0.5)
    programme = Programme(low, spread, b, p)
    min_pruned, max_pruned = programme.min_pruned, programme.max_pruned
    low_end, high_end = 0.0, 1.0
    for _ in range(50):
        omega = (low_end + high_end) / 2
        K = max(int(np.ceil(min_pruned + omega * (max_pruned - min_pruned) - 1e-12)), 0)
        cost = np.sort(low + omega * spread)[:K].sum()
        fits = m - 1 >= K and cost <= b + p - omega * p
        low_end, high_end = (omega, high_end) if fits else (low_end, omega)
    found = choose_pruning(programme)
    if max_pruned > min_pruned:
        assert found.level == pytest.approx(low_end, abs=1e-9)
    else:
        assert found.level in (0.0, 1.0)


def test_choose_pruning_example_by_hand():
    # Surely at most b: none (0.11 > 0.1). At most b + p at best: all but the first.
    programme = Programme(
        np.array([0.6, 0.0, 0.05, 0.0]), np.array([0.3, 0.2, 0.1, 0.11]), 0.1, 0.2
    )
    found = choose_pruning(programme)
    assert (programme.min_pruned, programme.max_pruned) == (0, 3)
    # One: min(1/3, 0.3/0.31). Two: min(2/3, 0.25/0.41) with 2, 3, or 0.3/0.51 with 1, 3. Three:
    # 0.25/0.61.
    assert found.pruned.tolist() == [2, 3]
    assert found.level == pytest.approx(0.25 / 0.41)


@pytest.mark.parametrize("centre", [False, True])
def test_energy_bounds_merged_sites_equal_complete_table(centre: bool):
    sanitizer = DctFuzzy(centre=centre)
    X = np.vstack([make_table(300, 8).whole.X, np.zeros((3, 8))])
    schema = make_table(1, 8).schema
    transform = sanitizer.make_transform(schema)
    whole = compute_energy_bounds(ArrayRows(schema, X), transform)
    order = np.random.default_rng(2).permutation(len(X))
    for cuts in ([1], [100, 200], [7, 8, 9, 290]):
        parts = [ArrayRows(schema, X[part]) for part in np.split(order, cuts)]
        first, *others = (compute_energy_bounds(part, transform) for part in parts)
        for other in others:
            first = first.merge(other)
        assert np.array_equal(first.low, whole.low)
        assert np.array_equal(first.high, whole.high)
        assert (first.count, first.skipped) == (whole.count, whole.skipped)
        assert np.array_equal(
            sanitizer.choose_pruned(first).pruned, sanitizer.choose_pruned(whole).pruned
        )
    assert whole.skipped == (0 if centre else 3)


def test_energy_bounds_contain_every_record():
    rows = make_table(200, 6)
    bounds = compute_energy_bounds(rows, DctFuzzy().make_transform(rows.schema))
    energy = dct(rows.whole.X, norm="ortho", axis=1) ** 2
    W = energy / energy.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bounds.low, W.min(axis=0), atol=1e-9)
    np.testing.assert_allclose(bounds.high, W.max(axis=0), atol=1e-9)


def compute_losses(rows: ArrayRows, pruned: np.ndarray) -> np.ndarray:
    """Return d'^2 - d^2 of every pair."""
    C = dct(rows.whole.X, norm="ortho", axis=1)[:, pruned]
    i, j = np.triu_indices(rows.n, k=1)
    return -np.sum((C[i] - C[j]) ** 2, axis=1)


def test_compute_distortion_fixed_choice_matches_simulation():
    # Far from normal. Over all pairs the mean is exact; the variance is one of a sample.
    X = np.random.default_rng(3).exponential(size=(1500, 5)) @ np.diag([3.0, 1, 1, 2, 1])
    rows, pruned = make_rows(X), np.array([1, 3, 4])
    transform = Transform(np.arange(5), np.full(5, 0.5))
    mean, variance = compute_distortion(rows, transform, pruned, is_random=False)
    found = compute_losses(rows, pruned)
    assert mean == pytest.approx(found.mean(), rel=1e-9)
    assert variance == pytest.approx(found.var(), rel=0.01)


def test_compute_distortion_random_choice_matches_simulation():
    X = np.random.default_rng(4).exponential(size=(600, 4))
    rows = make_rows(X)
    transform = Transform(np.arange(4), np.zeros(4))
    mean, variance = compute_distortion(rows, transform, np.array([0, 2]), is_random=True)
    pairs = [[i, j] for i in range(4) for j in range(i)]
    found = np.concatenate([compute_losses(rows, np.array(pair)) for pair in pairs])
    assert mean == pytest.approx(found.mean(), rel=1e-9)
    assert variance == pytest.approx(found.var(), rel=0.01)


def test_facts_moments_have_two_digits():
    rows = make_table(200, 8)
    facts = run_sanitizer(DctFuzzy(b=0.1, p=0.2, scale="none"), rows).public.facts
    pruned = np.setdiff1d(np.arange(8), fit_sanitizer(DctFuzzy(scale="none"), rows)["kept"])
    found = compute_losses(rows, pruned)
    for name, expected in (("mean", found.mean()), ("variance", found.var())):
        reported = facts[f"distance_distortion_{name}"]
        assert reported == pytest.approx(expected, rel=0.1)
        assert float(f"{reported:.2g}") == reported

"""The smallest costs of each person, searched in tiles."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks._assignment import CostsWithOdds, DistanceCosts, LikelihoodCosts
from ppdm_core.attacks._noise_likelihood_ratio import compute_tile_density, pairwise_log_density
from ppdm_core.numerics import neighbours
from ppdm_core.numerics.neighbours import find_nearest_rows, search_tiles
from ppdm_core.numerics.noise_distributions import NoiseDistribution, find_distribution

LAWS = [("laplace", None), ("logistic", None), ("student", 3.0), ("normal", None)]


def draw(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def find_law(name: str, nu: float | None) -> NoiseDistribution:
    return find_distribution(name, nu)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_search_tiles_random_costs_k_smallest_in_order(monkeypatch, k: int):
    monkeypatch.setattr(neighbours, "TILE_PERSONS", 7)
    monkeypatch.setattr(neighbours, "TILE_ROWS", 11)
    C = draw(30, 401)
    found = search_tiles(30, 401, k, lambda p, r: C[p, r])
    np.testing.assert_array_equal(found.place, np.argsort(C, axis=1)[:, :k])
    np.testing.assert_array_equal(found.cost, np.sort(C, axis=1)[:, :k])


def test_search_tiles_equal_costs_each_row_once():
    found = search_tiles(3, 50, 20, lambda p, r: np.zeros((p.stop - p.start, r.stop - r.start)))
    assert all(len(set(line)) == 20 for line in found.place.tolist())


def test_find_nearest_rows_wide_table_same_rows(monkeypatch):
    A, B = draw(40, 5), draw(900, 5, seed=1)
    expected = find_nearest_rows(A, B, 20)
    monkeypatch.setattr(neighbours, "WIDE_ROWS", 100)
    got = find_nearest_rows(A, B, 20)
    for one, two in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("name", "nu"), LAWS)
@pytest.mark.parametrize("spread", [1.0, 50.0, 1e4])
def test_compute_tile_density_any_spread_same_densities(name: str, nu: float | None, spread: float):
    law = find_law(name, nu)
    A, B = spread * draw(20, 33), spread * draw(50, 33, seed=1)
    expected = pairwise_log_density(law, A, B)
    np.testing.assert_allclose(compute_tile_density(law, A, B), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("name", "nu"), LAWS[:3])
def test_costs_with_odds_one_pass_same_rows_as_two(name: str, nu: float | None):
    T, Z = draw(60, 6), draw(3_000, 6, seed=1)
    none = DistanceCosts(np.zeros((60, 0)), np.zeros((3_000, 0)))
    costs = LikelihoodCosts(find_law(name, nu), T, Z, none, np.zeros(3_000))
    one_pass = CostsWithOdds(costs, 0.0, None, None)
    plain, odds = one_pass.find_both(np.arange(60), np.arange(3_000), 20)
    for got, two in ((plain, costs), (odds, costs.compute_odds())):
        place, cost = two.find_cheapest(20)
        assert np.mean(got.place == place) > 0.99  # single precision may swap nearly equal ones
        np.testing.assert_allclose(got.cost, cost, atol=1e-4)


@pytest.mark.parametrize("k", [2, 6, 15])
@pytest.mark.parametrize("make", [lambda Z: Z, np.round], ids=["numbers", "ties"])
def test_find_smallest_places_long_lines_smallest_values(k: int, make):
    C = make(draw(40, 5_003, seed=k))
    place = neighbours.find_smallest_places(C, k)
    assert all(len(set(line)) == k for line in place.tolist())
    found = np.sort(np.take_along_axis(C, place, axis=1), axis=1)
    np.testing.assert_array_equal(found, np.sort(C, axis=1)[:, :k])


def test_find_smallest_places_infinite_entries_left_out():
    C = draw(5, 2_000)
    C[:, ::2] = np.inf
    place = neighbours.find_smallest_places(C, 3)
    assert np.isfinite(np.take_along_axis(C, place, axis=1)).all()

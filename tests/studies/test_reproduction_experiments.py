"""Parts of the experiments, against results that are known otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from studies.reproduction.experiments.cosines import (
    compute_guess_chance,
    measure_energy,
    share_of_best_half,
)
from studies.reproduction.experiments.laplace_theory import (
    CONTINUOUS,
    compute_salary_breach,
    find_unbounded_ratios,
    measure_ratio_growth,
)
from studies.reproduction.experiments.resampling import bound_element, compute_literal_chances
from studies.reproduction.experiments.source_records import measure_growing_table, smooth_normal
from studies.reproduction.releases import (
    cross_validate,
    cross_validate_ties,
    filter_privacy,
    measure_privacy,
    measure_widths,
)


def test_measure_widths_is_the_distance_of_quantiles() -> None:
    error = np.random.default_rng(1).standard_normal((3, 118))
    low, high = np.quantile(error, [0.025, 0.975], axis=1)
    assert measure_widths(error) == pytest.approx(high - low, abs=1e-12)


def test_filter_privacy_is_the_least_over_all_counts() -> None:
    rng = np.random.default_rng(2)
    X = rng.random((90, 4)) @ rng.random((4, 4))
    X_hat = X + 0.1 * rng.standard_normal(X.shape)
    mean = X_hat.mean(axis=0)
    _, _, V = np.linalg.svd(np.cov(X_hat - mean, rowvar=False), hermitian=True)
    scores = (X_hat - mean) @ V.T
    found = [measure_privacy(X, mean + scores[:, :k] @ V[:k]) for k in range(1, 4)]
    assert filter_privacy(X, X_hat, 3) == pytest.approx(min(found), abs=1e-12)


def test_cross_validate_with_ties_follows_the_rule() -> None:
    near, label = np.array([[2, 1, 1, 2], [0, 2, 2, 0], [2, 0, 1, 1]]), np.array([2, 0, 1])
    assert cross_validate(near, label)[3] == pytest.approx(2 / 3)  # 1, 0, 1
    ties = cross_validate_ties(near, label)
    assert ties == pytest.approx({"nearest": 1.0, "last class": 2 / 3})  # 2, 0, 1 and 2, 2, 1


@pytest.mark.parametrize("name", CONTINUOUS)
def test_measure_ratio_growth_of_a_continuous_density_is_zero(name: str) -> None:
    assert measure_ratio_growth(CONTINUOUS[name]) == pytest.approx(0.0, abs=1e-3)


def test_measure_ratio_growth_with_normal_tails_is_large() -> None:
    assert measure_ratio_growth(lambda t: -(t**2) / 2) > 1e3


def test_find_unbounded_ratios_has_one_for_each_condition() -> None:
    assert all(each > 100.0 for each in find_unbounded_ratios())
    assert compute_salary_breach() == 1.0


def test_compute_guess_chance_counts_ordered_choices() -> None:
    # 2 of 2, 3 and 4 columns in order: 2 + 6 + 12.
    assert compute_guess_chance(2, 4) == pytest.approx(1 / 20)


def test_measure_energy_of_constant_records_is_in_the_first_coefficient() -> None:
    energy = measure_energy(np.array([[3.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 0.0]]))
    assert energy == pytest.approx(np.array([[1.0, 0.0, 0.0, 0.0]]), abs=1e-12)
    assert share_of_best_half(energy) == pytest.approx(1.0)


def test_bound_element_with_the_exact_length_is_the_element() -> None:
    length, element = np.array([5.0, 5.0]), np.array([3.0, 4.0])
    assert bound_element(length, length, element) == pytest.approx(element)
    assert bound_element(np.array([3.0, 2.0]), length, element) == pytest.approx(np.zeros(2))


def test_compute_literal_chances_with_a_constant_column_are_undefined() -> None:
    X, label = np.array([[0.0], [1.0], [4.0], [6.0]]), np.array([0, 0, 1, 1])
    varied = compute_literal_chances(X, label, X)
    assert varied.argmax(axis=1).tolist() == [0, 0, 1, 1]
    constant = np.column_stack([X, np.zeros(4)])
    assert np.isnan(compute_literal_chances(constant, label, constant)).all()


def test_smooth_normal_is_a_density() -> None:
    y = np.linspace(-9.0, 9.0, 4_001)
    assert np.trapezoid(smooth_normal(y, 0.7), y) == pytest.approx(1.0, abs=1e-9)
    normal = np.exp(-(y**2) / 2) / math.sqrt(2 * math.pi)
    assert smooth_normal(y, 1e-6) == pytest.approx(normal, abs=1e-9)


def test_measure_growing_table_of_many_records_tells_less() -> None:
    few, many = (measure_growing_table(n, 1, np.random.default_rng(n)) for n in (20, 2_000))
    assert few[0] > many[0]
    assert few[1] > many[1]

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

from ppdm_core.metrics._dapl import Density
from studies.number_of_sites import (
    RULE,
    Mixture,
    Normal,
    fit_normal,
    measure_densities,
    measure_truth,
)


def test_normal_log_is_the_density_of_scipy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 3)) + 2.0
    found = fit_normal(X)
    assert found is not None
    expected = multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(X)
    assert np.allclose(found.log(X), expected)


def test_fit_normal_column_that_repeats_another_has_no_density():
    x = np.random.default_rng(0).standard_normal(50)
    assert fit_normal(np.column_stack([x, 2 * x])) is None
    assert measure_truth(None, 50, 2, np.random.default_rng(0)) == (1.0, 1.0)


def test_mixture_log_is_the_mean_of_the_densities():
    rng = np.random.default_rng(0)
    parts = [Density(rng.standard_normal((30, 1)), RULE, np.full(1, 5.0)) for _ in range(2)]
    points = np.linspace(-1, 1, 9)[:, None]
    expected = np.mean([np.exp(part.log(points)) for part in parts], axis=0)
    assert np.allclose(np.exp(Mixture(parts).log(points)), expected)


def test_measure_truth_more_sites_err_more_alone_than_together():
    truth, rng = Normal(np.zeros(2), np.eye(2)), np.random.default_rng(0)
    one, same = measure_truth(truth, 400, 1, rng)
    alone, pool = measure_truth(truth, 400, 5, rng)
    assert abs(one - same) < 0.05  # one site is the pool
    assert one + 0.05 < alone and pool < alone - 0.05


def test_measure_densities_has_a_line_for_each_class():
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 60)
    found = measure_densities(rng.standard_normal((120, 2)) + label[:, None], label, 2, draw=0)
    assert found.shape == (2, 3) and (found <= 1).all() and (found[:, :2] > 0).all()

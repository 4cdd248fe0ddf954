"""The errors of the densities of each class, as a site returns them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ppdm_core.audit.disclosure_rounding import ENDS
from ppdm_core.metrics._dapl import Density
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.kernel_model import BandwidthRule
from ppdm_core.numerics.scaling import Scaling
from tasks.sites.density_errors import (
    bound_distance,
    bound_own_distance,
    measure_density_errors,
)
from tasks.sites.rows import ReleasedTable
from tests.support.leaks import describe_kernels
from tests.support.views import make_columns
from warehouse.stage_facts import DensityErrors

RULE, N = BandwidthRule(False, 0.0), 600


def draw_normal(mean: float, seed: int, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 0.05, (n, 2))


def bound(X: np.ndarray, rows: np.ndarray) -> float:
    return bound_distance(X, rows, RULE, np.ones(2))


def test_bound_distance_rows_of_the_same_density_are_near():
    assert bound(draw_normal(0.5, 1), draw_normal(0.5, 2)) < 0.15


def test_bound_distance_rows_of_another_density_are_far():
    assert bound(draw_normal(0.3, 1), draw_normal(0.7, 2)) > 0.9


def test_bound_distance_is_a_lower_bound_of_the_distance():
    """Half of the pool is from here, so that the distance of both densities is one half."""
    X = draw_normal(0.3, 1)
    far = np.concatenate([draw_normal(0.3, 2, N // 2), draw_normal(0.7, 3, N // 2)])
    rows = np.random.default_rng(4).permutation(far)
    assert 0.35 < bound(X, rows) < 0.5 + 0.06


def test_bound_distance_few_rows_prove_nothing():
    assert bound(draw_normal(0.3, 1, 7), draw_normal(0.7, 2)) == 0.0


@pytest.mark.parametrize(("floor", "low", "high"), [(0.0, 0.0, 0.3), (0.7, 0.8, 1.0)])
def test_bound_own_distance_notices_a_density_that_is_too_wide(floor, low, high):
    rule = BandwidthRule(False, floor)
    found = bound_own_distance(draw_normal(0.5, 1), rule, np.ones(2), np.random.default_rng(5))
    assert low <= found + 0.1 and found <= high


def test_bound_own_distance_of_a_constant_column_is_the_largest():
    X = draw_normal(0.5, 1)
    X[:, 1] = 0.5
    assert bound_own_distance(X, RULE, np.ones(2), np.random.default_rng(5)) == 1.0


def test_bound_own_distance_few_records_prove_nothing():
    X = draw_normal(0.5, 1, 15)
    assert bound_own_distance(X, RULE, np.ones(2), np.random.default_rng(5)) == 0.0


def measure(public: PublicParameters, label: Any) -> tuple[DensityErrors, ...]:
    """Return what a site measures whose second class is not in the pool as it is here."""
    X = np.concatenate([draw_normal(0.3, 1), draw_normal(0.6, 2)])
    codes = np.repeat([0, 1], N).astype(np.int32)
    drawn = [
        Density(X[codes == code], RULE, np.ones(2)).draw(N, np.random.default_rng(code))
        for code in (0, 1)
    ]
    Y = np.concatenate([drawn[0], drawn[1] + 0.3])
    order = np.random.default_rng(9).permutation(2 * N)
    records = ArrayRows(make_columns(2), X, codes)
    scaling = Scaling("none", np.zeros(2), np.ones(2))
    sanitized = SimpleNamespace(public=public, scaling=scaling, same_columns=True)
    inputs: Any = SimpleNamespace(sanitized=sanitized, records=records, part=None)
    pool = ReleasedTable(Y[order], codes[order], "")
    context: Any = SimpleNamespace(label=label)
    return measure_density_errors(context, inputs, pool, b"seed")


LABEL = SimpleNamespace(categories=("calm", "tense"))


def test_measure_density_errors_each_class_has_rounded_figures_of_its_own():
    calm, tense = found = measure(describe_kernels("paper", d=2), LABEL)
    assert [each.category for each in found] == ["calm", "tense"]
    for each in found:
        assert {each.plug_in, each.held_out, each.mixture} <= set(ENDS)
        assert 0.0 < each.plug_in < 0.6 and each.held_out <= each.plug_in
    assert calm.mixture < 0.2 and tense.mixture > 0.9


@pytest.mark.parametrize(
    ("public", "label"),
    [
        (PublicParameters("pca_laplace", "components", ("component_1",)), LABEL),
        (describe_kernels("paper", d=2), None),
    ],
)
def test_measure_density_errors_nothing_without_a_density_or_classes(public, label):
    assert measure(public, label) == ()

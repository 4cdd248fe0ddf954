from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ppdm_core.attacks._row_density import log_background, log_normal
from ppdm_core.audit.self_test.leaks import unit_box
from ppdm_core.numerics.kernel_model import BandwidthRule, Kernel, KernelSetting
from ppdm_core.sanitizers.kde_resample import KdeResample
from tests.support.leaks import describe_kernels, draw_kernel_rows, draw_persons
from tests.support.tables import fit_sanitizer, make_table, scale_rows


def make_kernel(d: int = 1, h: float = 0.2, half: float = 0.0, error: float = 0.0) -> Kernel:
    return Kernel(*(np.full(d, v) for v in (h, error, half, 0.0, 1.0)))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    "given", [{"bandwidth": "paper"}, {}, {"bandwidth": "floor", "floor": 0.4}]
)
def test_bandwidth_rule_equals_method(given):
    method, rows = KdeResample(**given), make_table(90)
    fitted = fit_sanitizer(method, rows)
    columns = scale_rows(rows, fitted).schema
    rule = BandwidthRule.from_public(describe_kernels(facts=method._describe_kernel()))
    counts, deviations = fitted["counts"], np.array(fitted["deviations"])
    for place in (1, 2):
        h = rule.compute_from_records(deviations[place], counts[place], columns.widths)
        assert h == pytest.approx(method.compute_bandwidths(columns, fitted)[place], rel=1e-12)


def test_bandwidth_rule_rows_and_records_agree():
    rule, s = BandwidthRule(True, 0.0), np.array([0.3, 0.01])
    h = rule.compute_from_records(s, 50, np.ones(2))
    assert rule.compute_from_rows(np.sqrt(s**2 + h**2 / 5), 50, np.ones(2)) == pytest.approx(
        h, rel=1e-12
    )


def test_log_likelihood_example_by_hand():
    # 3/4 (1 - u^2) / h at u = 1/2 and at the edge
    found = make_kernel(2).log_likelihood(
        np.array([[0.5, 0.5]] * 2), np.array([[0.4, 0.5], [0.3, 0.5]])
    )
    assert np.exp(found) == pytest.approx([0.75 * 0.75 / 0.2 * 0.75 / 0.2, 0.0])


def test_log_likelihood_clipped_and_rounded_values_use_probability():
    x, steps = 0.07, 2.0 * rng(1).beta(2.0, 2.0, 400_000) - 1.0
    moved = np.clip(x + 0.2 * steps, 0.0, 1.0)
    at_bound = np.exp(make_kernel().log_likelihood(np.zeros((1, 1)), np.full((1, 1), x)))
    assert at_bound == pytest.approx(np.mean(moved == 0.0), abs=3e-3)
    tenths = np.arange(11) / 10
    mass = np.exp(make_kernel(half=0.05).log_likelihood(tenths[:, None], np.full((11, 1), x)))
    assert mass.sum() == pytest.approx(1.0)
    assert mass[:3] == pytest.approx(
        [np.mean(np.rint(moved * 10) == k) for k in range(3)], abs=3e-3
    )


def test_log_likelihood_bound_between_integers_takes_tail():
    one = Kernel(*(np.array([v]) for v in (0.2, 0.0, 0.05, 0.03, 1.0)))
    values = np.arange(1, 11)[:, None] / 10  # 0.1 is the first above the bound
    assert np.exp(one.log_likelihood(values, np.full((10, 1), 0.1))).sum() == pytest.approx(1.0)


def test_kernel_error_widens_reach_and_keeps_mass():
    u = np.linspace(0.0, 1.0, 20_001)[:, None]
    sure, unsure = make_kernel(), make_kernel(error=0.2)
    assert unsure.reach > 1.4 * sure.reach
    mass = np.exp(unsure.log_likelihood(u[1:-1], np.full((19_999, 1), 0.5))).sum() / 20_000
    assert mass == pytest.approx(1.0, abs=1e-3)


def test_find_pairs_match_brute_force():
    Y, X = rng(2).random((300, 3)), rng(3).random((200, 3))
    one = make_kernel(3, h=0.3)
    u = (Y[:, None] - X[None]) / 0.3
    expected = np.prod(0.75 * np.maximum(1 - u**2, 0) / 0.3, axis=2)
    found = np.zeros((300, 200))
    for rows, (row, person, likely) in one.find_pairs(Y, X):
        assert np.all(np.diff(row) >= 0)
        found[rows.start + row, person] = np.exp(likely)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("corrected", [False, True])
def test_kernel_setting_estimates_from_rows_and_records(corrected):
    who = draw_persons(4000, rng(4), d=3)
    Y, label, _ = draw_kernel_rows(who, 4000, rng(5), corrected)
    around = KernelSetting.from_public(
        describe_kernels("corrected" if corrected else "paper", 3), unit_box(3), Y
    )
    X, Y = who.X[who.label == 0], Y[label == 0]
    n = len(X)
    expected = around.rule.compute_from_records(X.std(axis=0, ddof=1), n, np.ones(3))
    assert around.estimate_from_rows(Y, Y, n).h == pytest.approx(expected, rel=0.05)
    assert around.estimate_from_records(X, Y, Y, n).h == pytest.approx(expected, rel=1e-9)
    assert np.all(around.estimate_from_rows(Y, Y, n).error < 0.05)


def test_kernel_setting_constant_columns_match_exactly():
    Y = np.column_stack([rng(6).random(20), np.full(20, 0.3)])
    around = KernelSetting.from_public(describe_kernels(d=2), unit_box(2), Y)
    one = around.estimate_from_rows(Y, Y, 20)
    X = np.array([[Y[0, 0], 0.3], [Y[0, 0], 0.31]])
    assert np.isfinite(one.log_likelihood(Y[[0, 0]], X)).tolist() == [True, False]
    assert np.isfinite(log_background(Y, around)).all()


def test_background_density_is_normal():
    Z = rng(7).standard_normal((5000, 3)) @ np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0.2, 0.1]])
    expected = stats.multivariate_normal(Z.mean(axis=0), np.cov(Z.T)).logpdf(Z)
    assert log_normal(Z) == pytest.approx(expected, abs=0.05)


def test_background_common_values_use_their_share():
    Y = np.concatenate([np.zeros(60), np.linspace(0.2, 0.9, 40)])[:, None]
    around = KernelSetting.from_public(describe_kernels(d=1), unit_box(1), Y)
    assert np.exp(log_background(Y, around)[:60]) == pytest.approx(0.6)

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks._label_groups import LabelGroup
from ppdm_core.attacks.kernel_support import NO_ROW_LOG_ODDS, KernelSupport, compute_support
from ppdm_core.audit.self_test.leaks import unit_box
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.true_positive_rate import TruePositiveRate
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.kernel_model import Kernel, KernelSetting
from tests.support.leaks import describe_kernels, draw_kernel_rows, draw_persons, select_records
from tests.support.membership_views import make_kernel_case as weak
from tests.support.membership_views import make_target_view
from tests.support.views import make_view

NAMES = ["count", "weight", "likelihood"]


def run_attack(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(KernelSupport().attack(view, np.random.default_rng(0)).candidates)


def test_compute_support_hand_worked_rows_expected_odds():
    Y, X = np.array([[0.5], [0.1], [0.9]]), np.array([[0.4], [0.7]])
    around = KernelSetting.from_public(describe_kernels(d=1), unit_box(1), Y)
    one = LabelGroup(np.arange(3), np.arange(2), Y, X, Y, around)
    kernel = Kernel(*(np.array([v]) for v in (0.25, 0.0, 0.0, 0.0, 1.0)))
    count, weight, odds = compute_support(one, kernel, 3.0)
    assert count.tolist() == [1, 2]
    g = np.exp(one.background)
    K = 0.75 * (1 - np.array([0.4, 0.8, 0.8]) ** 2) / 0.25  # first-first, second-first, second-last
    assert weight == pytest.approx(np.log(np.array([K[0] / g[0], K[1] / g[0] + K[2] / g[2]]) / 3))
    # The other person is a member with chance 1/2: half a record of three, the rest is unknown.
    other = [0.5 / 3 * K[1] + 2.5 / 3 * g[0], 0.5 / 3 * K[0] + 2.5 / 3 * g[0], 2.5 / 3 * g[2]]
    first = np.log1p(K[0] / other[0] / 3) - 1
    second = np.log1p(K[1] / other[1] / 3) + np.log1p(K[2] / other[2] / 3) - 1
    assert odds == pytest.approx([first, second])


@pytest.mark.parametrize("seed", range(3))
def test_kernel_support_many_rows_per_record_finds_members(seed):
    scene = weak(np.random.default_rng(seed))
    found = run_attack(make_target_view(scene))
    assert list(found) == NAMES
    assert TruePositiveRate().measure(found["likelihood"], scene["is_member"]) >= 0.9


def test_kernel_support_as_many_rows_as_records_finds_drawn_members():
    rng = np.random.default_rng(3)
    who = draw_persons(400, rng)
    Y, label, source = draw_kernel_rows(select_records(who, np.arange(200)), 200, rng)
    view = make_view(Y, label=label, public=describe_kernels(), schema=unit_box(8), targets=who)
    found = run_attack(view)
    is_member = np.arange(400) < 200
    was_drawn = np.isin(np.arange(400), source)
    rate = TruePositiveRate().measure(found["likelihood"], is_member)
    assert rate == pytest.approx(was_drawn.sum() / 200, abs=0.1)
    assert np.all(found["count"][was_drawn] > 0)
    for score in found.values():
        assert Auc().measure(score, is_member) > 0.75


@pytest.mark.parametrize("seed", range(3))
def test_kernel_support_rows_of_other_persons_auc_near_half(seed):
    rng = np.random.default_rng(seed)
    Y, label, _ = draw_kernel_rows(draw_persons(200, rng), 200, rng, corrected=True)
    view = make_view(
        Y,
        label=label,
        public=describe_kernels("corrected"),
        schema=unit_box(8),
        targets=draw_persons(400, rng),
    )
    for score in run_attack(view).values():
        assert abs(Auc().measure(score, np.arange(400) < 200) - 0.5) < 0.12


def test_kernel_support_target_without_rows_or_class_lowest_score():
    scene = weak(np.random.default_rng(4))
    view = make_target_view(scene)
    X = view.targets.X.copy()
    X[0] = 0.0  # far from all rows
    label = view.targets.label.copy()
    label[1] = 7
    found = run_attack(replace(view, targets=replace(view.targets, X=X, label=label)))
    assert found["count"][:2].tolist() == [0, 0]
    assert found["likelihood"][0] == found["likelihood"].min(initial=0, where=label < 7)
    assert found["likelihood"][1] == NO_ROW_LOG_ODDS
    assert all(np.isfinite(score).all() for score in found.values())


def test_kernel_support_shuffled_rows_same_scores():
    view = make_target_view(weak(np.random.default_rng(5)))
    order = np.random.default_rng(6).permutation(len(view.Y))
    moved = run_attack(replace(view, Y=view.Y[order], label=view.label[order]))
    for name, score in run_attack(view).items():
        np.testing.assert_allclose(moved[name], score, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
def test_kernel_support_tiny_tables_finite_scores(n):
    who = draw_persons(n, np.random.default_rng(7))
    view = make_view(
        who.X + 0.0, label=who.label, public=describe_kernels(), schema=unit_box(8), targets=who
    )
    for score in run_attack(view).values():
        assert np.isfinite(score).all()


def test_kernel_support_missing_needs_not_applicable():
    view = make_target_view(weak(np.random.default_rng(8)))
    with pytest.raises(NotApplicable, match="kernel_support needs full records"):
        run_attack(replace(view, targets=None))
    other = replace(view.public, method="pca_laplace", facts={})
    with pytest.raises(NotApplicable, match="kernel_support needs rows that were drawn"):
        run_attack(replace(view, public=other))

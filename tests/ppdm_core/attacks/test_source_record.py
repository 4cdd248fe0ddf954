from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks._label_groups import LabelGroup
from ppdm_core.attacks.source_record import SourceRecord, compute_posterior
from ppdm_core.audit.self_test.leaks import unit_box
from ppdm_core.model.attacker import AttackerView, RecordSet
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.kernel_model import Kernel, KernelSetting
from ppdm_core.sanitizers.kde_resample import KdeResample
from tests.support.leaks import describe_kernels, draw_persons, select_records
from tests.support.membership_views import make_source_case as weak
from tests.support.membership_views import make_target_view
from tests.support.tables import fit_sanitizer, make_table, run_sanitizer, scale_rows
from tests.support.views import make_view

NAMES = {"released", "known", "fitted"}


def run_attack(view: AttackerView, seed: int = 0):
    return SourceRecord().attack(view, np.random.default_rng(seed))


def test_compute_posterior_hand_worked_rows_expected():
    """Two persons are near a row, one more is unknown, and a third is out of reach."""
    Y = np.array([[0.5], [0.1], [0.9]])
    X = np.array([[0.4], [0.55], [0.95]])
    around = KernelSetting.from_public(describe_kernels(d=1), unit_box(1), Y)
    one = LabelGroup(np.arange(3), np.arange(3), Y, X, Y, around)
    kernel = Kernel(*(np.array([v]) for v in (0.2, 0.0, 0.0, 0.0, 1.0)))
    near, nearer = 0.75 * (1 - 0.25) / 0.2, 0.75 * (1 - 0.0625) / 0.2
    variance = np.var(Y)
    other = 1 / np.sqrt(2 * np.pi * variance)  # of the row at the mean, with weight (4 - 3) / 4
    who, chance = compute_posterior(one, kernel, 4.0)
    assert who[0].tolist() == [1, 0] + [-1] * 6
    assert chance[0, :2] == pytest.approx(np.array([nearer, near]) / (near + nearer + other))
    assert who[1].tolist() == [-1] * 8
    assert who[2, 0] == 2 and not chance[1].any()


def test_compute_posterior_random_rows_match_brute_force():
    rng = np.random.default_rng(1)
    Y, X = rng.random((60, 2)), rng.random((40, 2))
    around = KernelSetting.from_public(describe_kernels(d=2), unit_box(2), Y)
    one = LabelGroup(np.arange(60), np.arange(40), Y, X, Y, around)
    kernel = Kernel(*(np.full(2, v) for v in (0.3, 0.0, 0.0, 0.0, 1.0)))
    u = (Y[:, None] - X[None]) / 0.3
    like = np.prod(0.75 * np.maximum(1 - u**2, 0) / 0.3, axis=2) / 80
    expected = like / (like.sum(axis=1) + np.exp(one.background) * 40 / 80)[:, None]
    who, chance = compute_posterior(one, kernel, 80.0)
    best = np.sort(expected, axis=1)[:, ::-1][:, :8]
    np.testing.assert_allclose(chance, best, rtol=1e-9, atol=1e-12)
    named = who >= 0
    np.testing.assert_allclose(
        np.take_along_axis(expected, np.maximum(who, 0), axis=1)[named], chance[named], rtol=1e-9
    )


@pytest.mark.parametrize("seed", range(3))
def test_source_record_narrow_kernels_finds_source(seed):
    scene = weak(np.random.default_rng(seed))
    estimate = run_attack(make_target_view(scene))
    assert set(estimate.candidates) == set(estimate.claims) == NAMES
    for name, who in estimate.candidates.items():
        assert np.mean(who[:, 0] == scene["source"]) >= 0.9
        claimed = estimate.claims[name]
        assert np.all(np.diff(claimed, axis=1) <= 0) and np.all(claimed.sum(axis=1) <= 1 + 1e-9)


def test_source_record_rows_of_other_persons_low_claims():
    """The attacker's own probabilities stay low when no known record is behind a row."""
    rng = np.random.default_rng(2)
    scene = weak(rng)
    estimate = run_attack(replace(make_target_view(scene), targets=draw_persons(150, rng)))
    for claimed in estimate.claims.values():
        assert claimed[:, 0].mean() < 0.1


def test_source_record_independent_rows_no_source_found():
    rng = np.random.default_rng(3)
    scene = weak(rng)
    view = replace(make_target_view(scene), Y=rng.random(scene["Y"].shape))
    for who in run_attack(view).candidates.values():
        assert np.mean(who[:, 0] == scene["source"]) < 0.05


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bandwidth": "paper", "clip": False},
        {"bandwidth": "floor", "floor": 0.2, "integers": ["x3", "x4"]},
        {"rows": 900, "integers": ["x4"]},
        {"rows": 40},
    ],
)
def test_source_record_kde_release_source_rarely_excluded(given):
    """Clipping, rounding and other counts of rows are allowed for."""
    rows, method = make_table(200), KdeResample(**given)
    fitted = fit_sanitizer(method, rows)
    inner = scale_rows(rows, fitted)
    out = run_sanitizer(method, rows, fitted=fitted)
    Y, label, source = (
        np.concatenate([getattr(block, name) for block in out.rows.blocks()])
        for name in ("X", "label", "record")
    )
    whole = next(inner.blocks())
    view = make_view(
        Y,
        label=label,
        public=out.public,
        schema=inner.schema,
        targets=RecordSet(whole.X, whole.C, whole.label),
    )
    estimate = run_attack(view)
    right = np.mean(estimate.candidates["fitted"] == source[:, None], axis=1) > 0
    own = {
        name: np.where(who == source[:, None], estimate.claims[name], 0).sum(axis=1)
        for name, who in estimate.candidates.items()
    }
    assert right.mean() > 0.9
    for name, chance in own.items():
        assert chance.mean() > 10 / 200, name
    # Claims are as large as they are right.
    who, claimed = estimate.candidates["known"], estimate.claims["known"]
    assert np.mean(who[:, 0] == source) > claimed[:, 0].mean() - 0.1


@pytest.mark.parametrize("copies", [1, 4])
def test_source_record_single_record_class_claimed(copies):
    """A class of one record takes the bandwidths of all records."""
    whole = make_table(120).whole
    X, label = whole.X.copy(), whole.label.copy()
    lonely = np.flatnonzero(label == 1)[:copies]
    X[lonely] = X[lonely[0]]
    keep = np.sort(np.append(np.flatnonzero(label == 0), lonely))
    rows = ArrayRows(make_table(1).schema, X[keep], label[keep], whole.key[keep])
    method = KdeResample(lonely="merge", rows=3 * len(keep))
    fitted = fit_sanitizer(method, rows)
    inner = scale_rows(rows, fitted)
    block, out = next(inner.blocks()), run_sanitizer(method, rows, fitted=fitted)
    released = next(out.rows.blocks())
    who = RecordSet(block.X, block.C, block.label)
    view = make_view(
        released.X, label=released.label, public=out.public, schema=inner.schema, targets=who
    )
    theirs = released.label == 1
    claims = run_attack(view).claims
    for name in NAMES if copies == 1 else ("known", "fitted"):
        assert theirs.any()
        # Several equal records are only not excluded: the claims stay low, because rows say
        # nothing of how many records there are.
        assert claims[name][theirs].sum(axis=1).min() > (0.3 if copies == 1 else 0.0)


def test_source_record_rows_of_other_label_excluded():
    scene = weak(np.random.default_rng(4))
    view = make_target_view(scene)
    for who in run_attack(view).candidates.values():
        rows, places = np.nonzero(who >= 0)
        assert np.array_equal(view.targets.label[who[rows, places]], view.label[rows])


def test_source_record_equal_records_equal_probability():
    scene = weak(np.random.default_rng(5))
    twice = select_records(scene["targets"], np.repeat(np.arange(150), 2))
    estimate = run_attack(replace(make_target_view(scene), targets=twice))
    who, claimed = estimate.candidates["known"], estimate.claims["known"]
    found = claimed[:, 0] > 0
    assert np.all(who[found, 0] // 2 == who[found, 1] // 2)
    assert claimed[:, 0] == pytest.approx(claimed[:, 1])


def test_source_record_shuffled_rows_same_sources():
    view = make_target_view(weak(np.random.default_rng(6)))
    order = np.random.default_rng(7).permutation(len(view.Y))
    moved = replace(view, Y=view.Y[order], label=view.label[order])
    plain, other = run_attack(view), run_attack(moved)
    for name in NAMES:
        assert np.array_equal(other.candidates[name][:, 0], plain.candidates[name][order, 0])
        np.testing.assert_allclose(other.claims[name], plain.claims[name][order], atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_source_record_tiny_and_constant_tables_finite_claims(n):
    rng = np.random.default_rng(8)
    who = draw_persons(n, rng)
    X = who.X.copy()
    X[:, 0] = 0.5
    who = RecordSet(X, who.C, who.label)
    view = make_view(
        X + 0.0, label=who.label, public=describe_kernels(), schema=unit_box(8), targets=who
    )
    for claimed in run_attack(view).claims.values():
        assert np.isfinite(claimed).all() and claimed[:, 0].min() > 0


def test_source_record_other_method_or_no_targets_not_applicable():
    view = make_target_view(weak(np.random.default_rng(9)))
    with pytest.raises(NotApplicable, match="source_record needs full records"):
        run_attack(replace(view, targets=None))
    other = replace(view.public, method="additive_noise", facts={})
    with pytest.raises(NotApplicable, match="source_record needs rows that were drawn"):
        run_attack(replace(view, public=other))

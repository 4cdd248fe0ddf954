from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks import attribute_inference
from ppdm_core.attacks.attribute_inference import AttributeInference, vote_on_values
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical, Schema
from tests.support.views import COPY, make_noise_public, make_records, make_view

WAYS = ("nearest", "neighbours", "regression", "copy")


def make_inference_view(Y, X, *, labels=None, people=None, **fields) -> AttackerView:
    targets = make_records(X, label=people)
    return make_view(Y, d=X.shape[1], label=labels, targets=targets, **fields)


def run_attack(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(AttributeInference().attack(view, np.random.default_rng(0)).candidates)


def share_right(guess: np.ndarray, X: np.ndarray) -> float:
    return float(np.mean(np.abs(guess - X) <= 0.1))


def test_attribute_inference_hand_worked_rows_expected_values():
    # Without its last value (0.2, 0.2, ?) is nearest to row 0; without its first to row 1.
    Y = np.array([[0.2, 0.2, 0.9], [0.7, 0.2, 0.5], [0.0, 0.9, 0.1]])
    got = run_attack(make_inference_view(Y, np.array([[0.2, 0.2, 0.5]])))
    assert set(got) == {f"{way}:released" for way in WAYS}
    np.testing.assert_allclose(got["nearest:released"], [[0.7, 0.2, 0.9]])


def test_vote_on_values_weighted_lines_value_of_most_weight():
    values = np.array([[0.1, 0.5, 0.52, 0.9]])
    assert vote_on_values(values, np.array([[1.5, 1.0, 1.0, 1.0]]), 0.1).tolist() == [0.5]
    assert vote_on_values(values, np.array([[3.0, 1.0, 1.0, 1.0]]), 0.1).tolist() == [0.1]
    assert vote_on_values(np.array([[2.0, 1.0, 1.0]]), np.ones((1, 3)), 0.0).tolist() == [1.0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("b", [0.0, 0.01])
def test_attribute_inference_weak_release_infers_members_only(seed, b):
    rng = np.random.default_rng(seed)
    X, others = rng.uniform(0, 1, (150, 5)), rng.uniform(0, 1, (150, 5))
    public = make_noise_public(b, 5, "laplace") if b else COPY
    Y = X + (rng.laplace(0, b, X.shape) if b else 0.0)
    inside, outside = (
        run_attack(make_inference_view(Y, X, public=public)),
        run_attack(make_inference_view(Y, others)),
    )
    assert share_right(inside["nearest:released"], X) > 0.9
    assert share_right(inside["copy:released"], X) > 0.7
    assert share_right(outside["nearest:released"], others) < 0.3
    if b:
        assert share_right(inside["nearest:filtered"], X) > 0.9


def test_attribute_inference_overwhelming_noise_no_gain_for_members():
    gains: dict[str, list[float]] = {}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, others = rng.uniform(0, 1, (300, 4)), rng.uniform(0, 1, (300, 4))
        public = make_noise_public(5.0, 4, "laplace")
        Y = X + rng.laplace(0, 5.0, X.shape)
        inside, outside = (
            run_attack(make_inference_view(Y, who, public=public)) for who in (X, others)
        )
        for name, guess in inside.items():
            gains.setdefault(name, []).append(
                share_right(guess, X) - share_right(outside[name], others)
            )
    for name, gain in gains.items():
        assert abs(np.mean(gain)) < 0.035, name  # four standard errors


def test_attribute_inference_mixed_components_infers_last_value():
    # Three of five components without much noise: with four values known, the fifth follows.
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (200, 5))
    L = np.linalg.qr(rng.standard_normal((5, 5)))[0][:, :3]
    public = PublicParameters(
        "pca", "components", (), np.full(5, 0.5), L, "normal", np.full(3, 0.005)
    )
    Z = (X - 0.5) @ L + rng.normal(0, 0.005, (200, 3))
    tables = {"inverse": 0.5 + Z @ L.T}
    got = run_attack(make_inference_view(Z, X, public=public, reconstructions=tables))
    assert share_right(got["nearest:filtered"], X) > 0.9
    assert share_right(got["nearest:inverse"], X) < 0.6


def test_attribute_inference_changed_target_value_same_estimate():
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (60, 4))
    public = make_noise_public(0.1, 4, "laplace")
    Y = X + rng.laplace(0, 0.1, X.shape)
    first = run_attack(make_inference_view(Y, X, public=public))
    garbled = X.copy()
    garbled[:, 2] = rng.uniform(0, 1, 60)
    second = run_attack(make_inference_view(Y, garbled, public=public))
    for name, guess in first.items():
        np.testing.assert_array_equal(guess[:, 2], second[name][:, 2], err_msg=name)
        assert not np.array_equal(guess[:, 0], second[name][:, 0]), name


def test_predict_by_regression_numeric_columns_matches_least_squares():
    rng = np.random.default_rng(6)
    Y = rng.uniform(0, 1, (400, 3))
    Y[:, 2] = 0.2 + 0.5 * Y[:, 0] - 0.1 * Y[:, 1] + 0.01 * rng.standard_normal(400)
    X = rng.uniform(0.3, 0.7, (20, 3))
    A = np.column_stack([np.ones(400), Y[:, :2]])
    slope = np.linalg.lstsq(A, Y[:, 2], rcond=None)[0]
    expected = np.column_stack([np.ones(20), X[:, :2]]) @ slope
    got = run_attack(make_inference_view(Y, X))["regression:released"][:, 2]
    np.testing.assert_allclose(got, expected, atol=2e-3)  # a slight ridge


def test_attribute_inference_label_without_rows_uses_all_rows():
    Y = np.array([[0.5, 0.1], [0.5, 0.9], [0.5, 0.3]])
    X = np.array([[0.5, 0.5], [0.5, 0.5], [0.1, 0.31]])
    labels = np.array([0, 1, 1], dtype=np.int32)
    view = make_inference_view(Y, X, labels=labels, people=np.array([0, 1, 7], dtype=np.int32))
    got = run_attack(view)["nearest:released"]
    assert got[0, 1] == 0.1
    assert got[1, 1] in (0.3, 0.9)
    assert got[2, 0] == 0.5


def make_categories_view(n: int, gamma: float, seed: int) -> AttackerView:
    rng = np.random.default_rng(seed)
    columns = tuple(Categorical(f"c{j}", tuple("abcde")) for j in range(7))
    responses = tuple(Response(column, gamma) for column in columns)
    C = rng.integers(0, 5, (n, 7)).astype(np.int32)
    said = np.where(
        rng.random(C.shape) < responses[0].keep_probability, C, rng.integers(0, 5, C.shape)
    )
    return make_view(
        np.zeros((n, 0)),
        public=PublicParameters("randomized_response", "original", (), responses=responses),
        schema=Schema((), columns),
        C=said.astype(np.int32),
        targets=make_records(np.zeros((n, 0)), C),
    )


def test_attribute_inference_categories_alone_inferred_from_others():
    view = make_categories_view(150, 400.0, 1)
    got = run_attack(replace(view, reconstructions={"none": view.Y}))
    assert np.mean(got["nearest:none"] == view.targets.C) > 0.9
    hidden = make_categories_view(150, 1.01, 1)
    for guess in run_attack(hidden).values():
        assert np.mean(guess == hidden.targets.C) < 0.3


def test_attribute_inference_large_table_excludes_inferred_column(monkeypatch):
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 1, (300, 8))
    view = make_inference_view(X + 1e-4, X[:40])
    exact = run_attack(view)["nearest:released"]
    monkeypatch.setattr(attribute_inference, "_MAX_EXACT_ROWS", 50)
    found = run_attack(view)["nearest:released"]
    np.testing.assert_allclose(found, exact)
    garbled = X[:40].copy()
    garbled[:, 3] = 0.5
    again = run_attack(make_inference_view(X + 1e-4, garbled))["nearest:released"]
    np.testing.assert_array_equal(found[:, 3], again[:, 3])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_attribute_inference_tiny_and_constant_tables_finite_values(n):
    Y = np.full((n, 2), 0.5)
    for guess in run_attack(make_inference_view(Y, np.array([[0.1, 0.2]]))).values():
        np.testing.assert_allclose(guess, 0.5)
    for guess in run_attack(make_inference_view(Y[:, :1], np.array([[0.1]]))).values():
        np.testing.assert_allclose(guess, 0.5)


def test_attribute_inference_shuffled_rows_and_targets_same_estimates():
    rng = np.random.default_rng(8)
    X, Y = rng.uniform(0, 1, (30, 3)), rng.uniform(0, 1, (50, 3))
    one = run_attack(make_inference_view(Y, X))
    two = run_attack(make_inference_view(Y[rng.permutation(50)], X[::-1]))
    for name, guess in one.items():
        np.testing.assert_allclose(guess, two[name][::-1], atol=1e-9)


def test_attribute_inference_without_targets_or_original_columns_not_applicable():
    view = make_inference_view(np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(NotApplicable, match="attribute_inference needs full records"):
        run_attack(replace(view, targets=None))
    with pytest.raises(NotApplicable, match="the original columns or a reconstruction"):
        run_attack(replace(view, public=PublicParameters("rotation", "rotated", ())))

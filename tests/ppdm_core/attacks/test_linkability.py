from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks import linkability
from ppdm_core.attacks.linkability import Linkability
from ppdm_core.model.attacker import AttackerView, SplitFiles
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from tests.support.views import COPY, make_noise_public, make_view


def make_files_view(Y, X, order, left, **fields) -> AttackerView:
    """Line j of the right file is person ``order[j]``."""
    right = np.setdiff1d(np.arange(X.shape[1]), left)
    files = SplitFiles(np.array(left), X[:, left], right, X[order][:, right])
    return make_view(Y, d=X.shape[1], split_files=files, **fields)


def run_attack(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(Linkability().attack(view, np.random.default_rng(0)).candidates)


def pair_rate(link: np.ndarray, order: np.ndarray, who: slice) -> float:
    found = np.where(link >= 0, order[link], -1)
    return float(np.mean((found == np.arange(len(order)))[who]))


def test_linkability_hand_worked_files_expected_pairs():
    # Row 0 is near left line 0 and right line 1; row 1 near left line 1 and right line 0.
    Y = np.array([[0.1, 0.9], [0.8, 0.2]])
    files = SplitFiles(np.array([0]), np.array([[0.11], [0.79]]), np.array([1]), Y[::-1, 1:] + 0.01)
    view = replace(make_files_view(Y, Y, np.arange(2), [0]), split_files=files)
    got = run_attack(view)
    assert set(got) == {"nearest:released", "one_to_one:released"}
    for link in got.values():
        assert link.tolist() == [1, 0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("b", [0.0, 0.005])
def test_linkability_weak_release_pairs_members_only(seed, b):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (200, 8))  # the first half are in the release
    Y = X[:100] + (rng.laplace(0, b, (100, 8)) if b else 0.0)
    order = rng.permutation(200)
    got = run_attack(
        make_files_view(Y, X, order, [0, 2, 4, 6], public=make_noise_public(b, 8) if b else COPY)
    )
    for name, link in got.items():
        assert pair_rate(link, order, slice(0, 100)) > 0.9, name
        assert pair_rate(link, order, slice(100, 200)) < 0.1, name
    assert ("nearest:odds" in got) == (b > 0)


def test_linkability_overwhelming_noise_no_pairs():
    rng = np.random.default_rng(3)
    X, order = rng.uniform(0, 1, (400, 6)), rng.permutation(400)
    Y = X[:200] + rng.laplace(0, 3.0, (200, 6))
    for name, link in run_attack(
        make_files_view(Y, X, order, [0, 1, 2], public=make_noise_public(3.0, 6))
    ).items():
        assert pair_rate(link, order, slice(0, 200)) < 0.03, name


def test_pair_lines_small_files_match_brute_force():
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (30, 4))
    public = make_noise_public(0.2, 4, "normal")
    Y = X[:20] + rng.normal(0, 0.2, (20, 4))
    order = rng.permutation(30)
    view = make_files_view(Y, X, order, [0, 1], public=public)
    F = [
        np.exp(-np.sum((file[:, None] - Y[None][:, :, at]) ** 2, axis=2) / (2 * 0.2**2))
        for file, at in ((view.split_files.left, [0, 1]), (view.split_files.right, [2, 3]))
    ]

    def odds(f: np.ndarray, at: list[int]) -> np.ndarray:
        centred = Y[:, at] - Y[:, at].mean(axis=0)
        S = centred.T @ centred / len(Y)
        share = 1e-6 + 2 / len(Y)
        S = (1 - share) * S + share * np.diag(np.diag(S))
        far = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(S), centred)
        plain = np.exp(-far / 2) / np.sqrt(np.linalg.det(S)) * 0.2**2
        return f / (0.9 * f.mean(axis=0) + 0.1 * plain)

    L, R = odds(F[0], [0, 1]), odds(F[1], [2, 3])
    chance = (L / L.sum(axis=1, keepdims=True)) @ (R / R.sum(axis=0)).T
    np.testing.assert_array_equal(run_attack(view)["nearest:odds"], chance.argmax(axis=1))


def test_linkability_shuffled_rows_same_pairs():
    rng = np.random.default_rng(5)
    X, order = rng.uniform(0, 1, (60, 4)), rng.permutation(60)
    Y = X[:30] + rng.laplace(0, 0.05, (30, 4))
    one = run_attack(make_files_view(Y, X, order, [0, 1], public=make_noise_public(0.05, 4)))
    two = run_attack(
        make_files_view(Y[rng.permutation(30)], X, order, [0, 1], public=make_noise_public(0.05, 4))
    )
    for name, link in one.items():
        np.testing.assert_array_equal(link, two[name])


def test_linkability_mixed_components_filtered_pairs():
    rng = np.random.default_rng(6)
    X, order = rng.uniform(0, 1, (100, 6)), rng.permutation(100)
    L = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    public = PublicParameters(
        "pca", "components", (), np.full(6, 0.5), L, "normal", np.full(6, 0.005)
    )
    Z = (X - 0.5) @ L + rng.normal(0, 0.005, X.shape)
    tables = {"back": 0.5 + Z @ L.T}
    got = run_attack(make_files_view(Z, X, order, [0, 1, 2], public=public, reconstructions=tables))
    assert set(got) == {
        f"{way}:{name}" for way in ("nearest", "one_to_one") for name in ("filtered", "back")
    }
    assert pair_rate(got["nearest:filtered"], order, slice(None)) > 0.9


def test_linkability_long_files_no_one_to_one(monkeypatch):
    monkeypatch.setattr(linkability, "MAX_EXACT_ROWS", 3)
    X = np.random.default_rng(7).uniform(0, 1, (5, 2))
    assert set(run_attack(make_files_view(X, X, np.arange(5), [0]))) == {"nearest:released"}


@pytest.mark.parametrize("n", [1, 3])
def test_linkability_tiny_and_constant_releases_valid_pairs(n):
    X = np.random.default_rng(8).uniform(0, 1, (4, 2))
    for link in run_attack(make_files_view(np.full((n, 2), 0.5), X, np.arange(4), [0])).values():
        assert link.shape == (4,)
        assert ((link >= -1) & (link < 4)).all()


def test_linkability_without_files_or_original_columns_not_applicable():
    view = make_files_view(np.ones((3, 2)), np.ones((3, 2)), np.arange(3), [0])
    with pytest.raises(NotApplicable, match="linkability needs two columns"):
        run_attack(replace(view, split_files=None))
    with pytest.raises(NotApplicable, match="the original columns or a reconstruction"):
        run_attack(replace(view, public=PublicParameters("rotation", "rotated", ())))

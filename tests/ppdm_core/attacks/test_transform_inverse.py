from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from tests.support.views import make_view


def make_map_view(Y, *, centre, loadings, space="components", low=0.0, high=1.0) -> AttackerView:
    d = 2 if loadings is None else loadings.shape[0]
    public = PublicParameters("pca", space, (), centre, loadings)
    return make_view(Y, d=d, bounds=(low, high), public=public)


def draw_rounded_basis(d: int, s: int, rng: np.random.Generator) -> np.ndarray:
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :s]
    return np.rint(Q * 2**20) / 2**20


def test_transform_inverse_hand_worked_rows_expected_inverse():
    # One component along (0.6, 0.8): z = 1 lies at centre + (0.6, 0.8).
    view = make_map_view(
        np.array([[0.0], [1.0], [-0.5]]),
        centre=np.array([0.5, 0.5]),
        loadings=np.array([[0.6], [0.8]]),
    )
    got = TransformInverse().attack(view, np.random.default_rng(0)).candidates
    np.testing.assert_allclose(got["inverse"], [[0.5, 0.5], [1.1, 1.3], [0.2, 0.1]], atol=1e-12)
    np.testing.assert_allclose(got["clipped"], [[0.5, 0.5], [1.0, 1.0], [0.2, 0.1]], atol=1e-12)


def test_transform_inverse_all_components_without_noise_recovers_all():
    rng = np.random.default_rng(1)
    X, centre, loadings = rng.uniform(0, 1, (40, 5)), np.full(5, 0.5), draw_rounded_basis(5, 5, rng)
    view = make_map_view((X - centre) @ loadings, centre=centre, loadings=loadings)
    got = TransformInverse().attack(view, rng).candidates["inverse"]
    np.testing.assert_allclose(got, X, atol=1e-12)  # a transpose would be off by 1e-6


def test_transform_inverse_components_and_original_space_same_estimates():
    rng = np.random.default_rng(2)
    centre, loadings = np.full(5, 0.5), draw_rounded_basis(5, 2, rng)
    Z = rng.normal(0.0, 0.5, (30, 2))
    mapped_back = centre + Z @ np.linalg.pinv(loadings)
    one = make_map_view(Z, centre=centre, loadings=loadings)
    two = make_map_view(mapped_back, centre=centre, loadings=loadings, space="original")
    for name in ("inverse", "clipped"):
        np.testing.assert_allclose(
            TransformInverse().attack(one, rng).candidates[name],
            TransformInverse().attack(two, rng).candidates[name],
            atol=1e-12,
        )


def test_transform_inverse_clipped_estimate_never_farther():
    rng = np.random.default_rng(3)
    X, centre, loadings = (
        rng.uniform(0, 1, (200, 4)),
        np.full(4, 0.5),
        draw_rounded_basis(4, 3, rng),
    )
    Z = (X - centre) @ loadings + rng.laplace(0.0, 0.5, (200, 3))
    view = make_map_view(Z, centre=centre, loadings=loadings)
    got = TransformInverse().attack(view, rng).candidates
    plain, clipped = (np.linalg.norm(got[name] - X, axis=1) for name in ("inverse", "clipped"))
    assert (clipped <= plain + 1e-12).all()
    assert clipped.mean() < 0.95 * plain.mean()


@pytest.mark.parametrize("missing", ["centre", "loadings"])
def test_transform_inverse_incomplete_map_not_applicable(missing):
    parts = {"centre": np.zeros(2), "loadings": np.eye(2)} | {missing: None}
    with pytest.raises(NotApplicable, match="transform_inverse needs a published linear map, or"):
        TransformInverse().attack(make_map_view(np.ones((3, 2)), **parts), np.random.default_rng(0))


def make_leaked_view(Y, loadings, *, centre, sample=None) -> AttackerView:
    view = make_map_view(Y, centre=None, loadings=None, space="rotated")
    columns = tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(len(loadings)))
    leak = replace(view.public, centre=centre, loadings=loadings)
    return replace(view, leaked_map=leak, schema=Schema(columns), sample=sample)


def test_transform_inverse_leaked_rotation_recovers_all_in_scenario():
    rng = np.random.default_rng(4)
    X, M, offset = rng.random((30, 4)), np.linalg.qr(rng.normal(0, 1, (4, 4)))[0], np.arange(4.0)
    view = make_leaked_view(X @ M.T + offset, M.T, centre=-offset @ M)
    got = TransformInverse().attack(view, rng)
    assert got.candidates == {}
    assert set(got.scenarios) == {"leaked"}
    assert set(got.scenarios["leaked"]) == {"inverse", "clipped", "middle"}
    for X_hat in got.scenarios["leaked"].values():
        np.testing.assert_allclose(X_hat, X, atol=1e-12)


def test_transform_inverse_hand_worked_leaked_projection_expected():
    # Only x + y = 1.5 is kept: nearest to zero (0.75, 0.75), and the same nearest to the middle;
    # of three columns, x + y + z = 1.2 lies nearest to zero at 0.4 each.
    view = make_leaked_view(np.array([[1.2]]), np.ones((3, 1)), centre=np.zeros(3))
    got = TransformInverse().attack(view, np.random.default_rng(0)).scenarios["leaked"]
    np.testing.assert_allclose(got["inverse"], [[0.4, 0.4, 0.4]])
    # Weights 1, 1, 0 leave the third column free: zero, or the middle of its bounds.
    view = make_leaked_view(np.array([[1.2]]), np.array([[1.0], [1.0], [0.0]]), centre=np.zeros(3))
    got = TransformInverse().attack(view, np.random.default_rng(0)).scenarios["leaked"]
    np.testing.assert_allclose(got["inverse"], [[0.6, 0.6, 0.0]], atol=1e-12)
    np.testing.assert_allclose(got["middle"], [[0.6, 0.6, 0.5]], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_transform_inverse_leaked_projection_sample_fills_dropped_directions(seed):
    rng = np.random.default_rng(seed)
    F = rng.normal(0, 0.1, (2, 6))
    X = 0.5 + rng.uniform(-1, 1, (230, 2)) @ F  # two directions in six columns
    R = rng.normal(0, 1, (6, 3))
    view = make_leaked_view(X[:200] @ R, R, centre=np.zeros(6), sample=X[200:])
    got = TransformInverse().attack(view, rng).scenarios["leaked"]
    np.testing.assert_allclose(got["sample"], X[:200], atol=1e-6)
    worse = [np.linalg.norm(got[name] - X[:200], axis=1).mean() for name in ("middle", "clipped")]
    assert worse[0] < worse[1]


def test_transform_inverse_published_and_leaked_map_both_reported():
    view = make_map_view(
        np.array([[0.25]]), centre=np.full(2, 0.5), loadings=np.array([[1.0], [0.0]])
    )
    leak = replace(view.public, loadings=np.array([[0.0], [1.0]]))
    got = TransformInverse().attack(replace(view, leaked_map=leak), np.random.default_rng(0))
    np.testing.assert_allclose(got.candidates["inverse"], [[0.75, 0.5]])
    np.testing.assert_allclose(got.scenarios["leaked"]["inverse"], [[0.5, 0.75]])


def test_transform_inverse_leak_without_map_not_applicable():
    view = make_leaked_view(np.ones((2, 2)), np.eye(2), centre=np.zeros(2))
    with pytest.raises(NotApplicable, match="or a secret one"):
        TransformInverse().attack(replace(view, leaked_map=view.public), np.random.default_rng(0))

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.errors import NotApplicable
from ppdm_core.types import AttackerView, Numeric, Public, Schema


def make_view(Y, *, centre, loadings, space="components", low=0.0, high=1.0) -> AttackerView:
    d = 2 if loadings is None else loadings.shape[0]
    return AttackerView(
        Y=Y,
        label=np.zeros(len(Y), dtype=np.int32),
        public=Public("pca", space, (), centre, loadings),
        schema=Schema(tuple(Numeric(f"x{i}", low, high) for i in range(d))),
        epsilon=0.1,
    )


def rounded_basis(d: int, s: int, rng: np.random.Generator) -> np.ndarray:
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :s]
    return np.rint(Q * 2**20) / 2**20


def test_hand_worked_rows():
    # One component along (0.6, 0.8): z = 1 lies at centre + (0.6, 0.8).
    view = make_view(
        np.array([[0.0], [1.0], [-0.5]]),
        centre=np.array([0.5, 0.5]),
        loadings=np.array([[0.6], [0.8]]),
    )
    got = TransformInverse().attack(view, np.random.default_rng(0)).candidates
    np.testing.assert_allclose(got["inverse"], [[0.5, 0.5], [1.1, 1.3], [0.2, 0.1]], atol=1e-12)
    np.testing.assert_allclose(got["clipped"], [[0.5, 0.5], [1.0, 1.0], [0.2, 0.1]], atol=1e-12)


def test_all_components_without_noise_give_everything_in_spite_of_rounded_loadings():
    rng = np.random.default_rng(1)
    X, centre, loadings = rng.uniform(0, 1, (40, 5)), np.full(5, 0.5), rounded_basis(5, 5, rng)
    view = make_view((X - centre) @ loadings, centre=centre, loadings=loadings)
    got = TransformInverse().attack(view, rng).candidates["inverse"]
    np.testing.assert_allclose(got, X, atol=1e-12)  # a transpose would be off by 1e-6


def test_both_spaces_tell_the_same():
    rng = np.random.default_rng(2)
    centre, loadings = np.full(5, 0.5), rounded_basis(5, 2, rng)
    Z = rng.normal(0.0, 0.5, (30, 2))
    mapped_back = centre + Z @ np.linalg.pinv(loadings)
    one = make_view(Z, centre=centre, loadings=loadings)
    two = make_view(mapped_back, centre=centre, loadings=loadings, space="original")
    for name in ("inverse", "clipped"):
        np.testing.assert_allclose(
            TransformInverse().attack(one, rng).candidates[name],
            TransformInverse().attack(two, rng).candidates[name],
            atol=1e-12,
        )


def test_clipping_never_hurts():
    rng = np.random.default_rng(3)
    X, centre, loadings = rng.uniform(0, 1, (200, 4)), np.full(4, 0.5), rounded_basis(4, 3, rng)
    Z = (X - centre) @ loadings + rng.laplace(0.0, 0.5, (200, 3))
    view = make_view(Z, centre=centre, loadings=loadings)
    got = TransformInverse().attack(view, rng).candidates
    plain, clipped = (np.linalg.norm(got[name] - X, axis=1) for name in ("inverse", "clipped"))
    assert (clipped <= plain + 1e-12).all()
    assert clipped.mean() < 0.95 * plain.mean()


@pytest.mark.parametrize("missing", ["centre", "loadings"])
def test_without_a_whole_map_it_does_not_apply(missing):
    parts = {"centre": np.zeros(2), "loadings": np.eye(2)} | {missing: None}
    with pytest.raises(NotApplicable, match="transform_inverse needs a published linear map"):
        TransformInverse().attack(make_view(np.ones((3, 2)), **parts), np.random.default_rng(0))

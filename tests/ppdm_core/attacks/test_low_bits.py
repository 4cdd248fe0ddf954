from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.low_bits import (
    LowBits,
    choose_tested_rows,
    compute_laplace_evidence,
    compute_lattice_evidence,
    is_on_grid,
    is_reachable,
)
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.sanitizers import make_sanitizer
from tests.support.tables import fit, numbers, release, scaled, table
from tests.support.views import make_records, make_view

BITS = (53, 53)


def make_noisy_view(X, Y, b, *, law="laplace", **public) -> AttackerView:
    public = {"space": "original", **public}
    scales = np.full(Y.shape[1], b) if b else None
    return make_view(
        Y,
        d=X.shape[1],
        public=PublicParameters("noise", columns=(), law=law, scales=scales, **public),
        targets=make_records(X),
    )


def rates(view: AttackerView, truth, seed: int = 0) -> dict[str, float]:
    links = LowBits().attack(view, np.random.default_rng(seed)).candidates
    return {name: float(np.mean(link == truth)) for name, link in links.items()}


def textbook(X, b, rng) -> np.ndarray:
    u = (1 + rng.integers(0, 2**53, X.shape)) * 2.0**-53
    return X + b * rng.choice([-1.0, 1.0], X.shape) * np.log(u)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sampler", ["textbook", "numpy"])
def test_wide_textbook_noise_gives_everybody_away(sampler, seed):
    """Noise twice as wide as the data hides nobody: nearness alone would find a few percent."""
    rng = np.random.default_rng(seed)
    X, b = rng.random((150, 12)), 2.0
    Y = textbook(X, b, rng) if sampler == "textbook" else X + rng.laplace(0, b, X.shape)
    order = rng.permutation(150)
    found = rates(make_noisy_view(X[order], Y, b), order)
    assert max(found["reachable"], found["reachable_numpy"]) >= 0.9, found
    near = np.abs(X[order][:, None] - Y[None]).sum(axis=2).argmin(axis=1)
    assert np.mean(near == order) < 0.3


def test_every_value_of_the_textbook_sampler_is_reachable():
    rng = np.random.default_rng(4)
    x, b = rng.random(20_000), 0.5
    u = (1 + rng.integers(0, 2**53, 20_000)) * 2.0**-53
    y = x - b * np.log(u)
    assert compute_laplace_evidence(x, y, b, BITS).min() >= 0.0
    assert compute_laplace_evidence(x, x - (y - x), b, BITS).min() < 0.0  # y - x was rounded
    below = x + b * np.log(u)
    assert compute_laplace_evidence(x, below, b, BITS).min() >= 0.0


def test_hand_worked_number():
    # At u = 2^-20 the next number u moves the noise by 2^-33, while doubles near y = 14.9 are
    # 2^-49 apart: the one after y cannot be made.
    one = np.ones(1)
    u = np.array([2.0**-20])
    y = one - np.log(u)
    args = (u, -one, np.full(1, 2.0**53))
    assert is_reachable(one, y, *args).all()
    assert not is_reachable(one, np.nextafter(y, 99.0), *args).any()


def test_evidence_is_what_a_strangers_value_passes_by_chance():
    """exp(-evidence) of the passed cells is close to the share of strangers that pass."""
    rng = np.random.default_rng(5)
    x, b, n = rng.random(200_000), 1.0, 200_000
    y = 0.3 + rng.uniform(2.0, 4.0, n)  # floats that no Laplace sampler made
    found = compute_laplace_evidence(x, y, b, BITS)
    u = np.exp(-np.abs(y - x) / b)
    share = np.minimum(u * np.spacing(y) * 2.0**53 / b, 1.0)
    assert np.mean(found >= 0) == pytest.approx(np.mean(share), rel=0.15)  # ties go to even
    passed = (found > 0) & (share < 1)
    np.testing.assert_allclose(np.exp(-found[passed]), share[passed], rtol=1e-9)


def test_lattice_by_hand():
    # Noise near 1 comes in steps of 2^-53: from x = 0.75, y = 2^-60 cannot be, 2^-53 can.
    x = np.array([-0.75, -0.75, 0.0])
    y = np.array([2.0**-60, 2.0**-53, 0.3])
    got = compute_lattice_evidence(x, y)
    assert got[0] < 0.0
    assert got[1] == pytest.approx(np.log(2.0**52))  # nearly nobody else's value does that
    assert got[2] == 0.0


@pytest.mark.parametrize("law", ["normal", "uniform", "logistic"])
def test_the_lattice_never_rules_out_the_truth_and_helps_a_little(law):
    rng = np.random.default_rng(6)
    X = rng.random((150, 60))
    Y = X + getattr(rng, law)(*((-1, 1) if law == "uniform" else (0, 0.5)), X.shape)
    assert compute_lattice_evidence(X, Y).min() >= 0.0
    order = rng.permutation(150)
    assert rates(make_noisy_view(X[order], Y, 0.5, law=law), order)["lattice"] > 3 / 150


@pytest.mark.parametrize("method", ["additive_noise", "pca_laplace"])
@pytest.mark.parametrize("scale", ["minmax", "none"])
def test_grid_noise_of_the_product_gives_nothing(method, scale):
    rows = table(400, 5)
    parameters = {"b": 0.01, "scale": scale}  # so little that nearness would find everybody
    if method == "pca_laplace":
        parameters |= {"components": 5, "basis": "private", "b": 0.02}
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit(sanitizer, rows)
    released = release(sanitizer, rows, fitted=fitted)
    X = numbers(scaled(rows, fitted))
    view = replace(make_noisy_view(X, numbers(released.rows), 0.01), public=released.public)
    found = rates(view, np.arange(400))
    assert set(found) == {"lattice", "reachable", "reachable_numpy"}
    assert max(found.values()) <= 8 / 400  # 1/400 expected
    # A recipient who is not told of the grid sees it in values of a scale of their own.
    if scale == "minmax":
        hidden = replace(view, public=replace(released.public, grid=None))
        assert is_on_grid(hidden, view.Y)


def test_values_at_the_ends_of_clipped_columns_are_not_tested():
    rng = np.random.default_rng(13)
    X, b = rng.random((150, 24)), 2.0
    Y = np.clip(textbook(X, b, rng), -1.0, 3.0)
    assert np.mean((Y == -1.0) | (Y == 3.0)) > 0.2
    assert rates(make_noisy_view(X, Y, b), np.arange(150))["reachable"] >= 0.9
    zero = make_noisy_view(X, np.where(Y < 0, 0.0, Y), 0.001)  # far beyond what the scale allows
    assert set(rates(zero, np.arange(150))) == {"lattice", "reachable", "reachable_numpy"}


def test_values_rounded_to_decimals_are_on_a_grid():
    rng = np.random.default_rng(12)
    X = rng.random((300, 6))
    Y = np.round(X + rng.laplace(0, 0.01, X.shape), 6)
    assert max(rates(make_noisy_view(X, Y, 0.01), np.arange(300)).values()) <= 8 / 300
    assert not is_on_grid(make_noisy_view(X, X, 0.01), X)


def test_independent_floats_give_nothing():
    rng = np.random.default_rng(7)
    X = rng.random((300, 6))
    found = rates(make_noisy_view(X, 0.5 + rng.laplace(0, 1.0, X.shape), 1.0), np.arange(300))
    assert max(found.values()) <= 8 / 300


def test_components_are_compared_where_the_noise_was_added():
    rng = np.random.default_rng(8)
    X, L = rng.random((100, 12)), np.linalg.qr(rng.normal(0, 1, (12, 12)))[0]
    centre = np.full(12, 0.5)
    Y = (X - centre) @ L + rng.laplace(0, 2.0, X.shape)
    view = make_noisy_view(X, Y, 2.0, space="components", centre=centre, loadings=L)
    assert max(rates(view, np.arange(100)).values()) >= 0.9


def test_long_tables_are_shortened_to_the_likeliest_rows():
    rng = np.random.default_rng(9)
    X, Y = rng.random((5, 3)), rng.random((40, 3))
    lists = np.concatenate([rows for _, rows in choose_tested_rows(X, Y, np.ones(3), 7)])
    far = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    for rows, distance in zip(lists, far, strict=True):
        assert set(rows) == set(np.argsort(distance)[:7])


def test_duplicates_constants_and_tiny_tables():
    X = np.array([[0.5, 0.5]] * 3)
    rng = np.random.default_rng(10)
    Y = X + rng.laplace(0, 1.0, X.shape)
    for name, link in LowBits().attack(make_noisy_view(X, Y, 1.0), rng).candidates.items():
        assert link.shape == (3,), name
        assert len(set(link.tolist())) == 1  # the same record, the same answer
    one = LowBits().attack(make_noisy_view(X[:1], Y[:1], 0.0, law=None), rng).candidates
    assert one["lattice"].tolist() == [0]
    assert set(one) == {"lattice"}


def test_rows_in_another_order_give_the_same_answers():
    rng = np.random.default_rng(11)
    X = rng.random((60, 4))
    view = make_noisy_view(X, X + rng.laplace(0, 1.0, X.shape), 1.0)
    order = rng.permutation(60)
    one, two = (
        LowBits().attack(v, np.random.default_rng(0)).candidates
        for v in (view, replace(view, Y=view.Y[order]))
    )
    for name in one:
        assert np.array_equal(order[two[name]], one[name]), name


def test_what_it_needs():
    view = make_noisy_view(np.ones((2, 2)), np.ones((2, 2)), 1.0)
    with pytest.raises(NotApplicable, match="low_bits needs full records"):
        rates(replace(view, targets=None), 0)
    with pytest.raises(NotApplicable, match="low_bits needs values that noise was added to"):
        rates(replace(view, public=replace(view.public, space="rotated")), 0)

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
from tests.support.tables import fit_sanitizer, make_table, read_numbers, run_sanitizer, scale_rows
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


def measure_rates(view: AttackerView, truth, seed: int = 0) -> dict[str, float]:
    links = LowBits().attack(view, np.random.default_rng(seed)).candidates
    return {name: float(np.mean(link == truth)) for name, link in links.items()}


def add_textbook_noise(X, b, rng) -> np.ndarray:
    u = (1 + rng.integers(0, 2**53, X.shape)) * 2.0**-53
    return X + b * rng.choice([-1.0, 1.0], X.shape) * np.log(u)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sampler", ["textbook", "numpy"])
def test_low_bits_wide_textbook_noise_links_most(sampler, seed):
    """Noise twice as wide as the data hides no record; nearness alone finds a few percent."""
    rng = np.random.default_rng(seed)
    X, b = rng.random((150, 12)), 2.0
    Y = add_textbook_noise(X, b, rng) if sampler == "textbook" else X + rng.laplace(0, b, X.shape)
    order = rng.permutation(150)
    found = measure_rates(make_noisy_view(X[order], Y, b), order)
    assert max(found["reachable"], found["reachable_numpy"]) >= 0.9, found
    near = np.abs(X[order][:, None] - Y[None]).sum(axis=2).argmin(axis=1)
    assert np.mean(near == order) < 0.3


def test_compute_laplace_evidence_textbook_sampler_never_negative():
    rng = np.random.default_rng(4)
    x, b = rng.random(20_000), 0.5
    u = (1 + rng.integers(0, 2**53, 20_000)) * 2.0**-53
    y = x - b * np.log(u)
    assert compute_laplace_evidence(x, y, b, BITS).min() >= 0.0
    assert compute_laplace_evidence(x, x - (y - x), b, BITS).min() < 0.0  # y - x was rounded
    below = x + b * np.log(u)
    assert compute_laplace_evidence(x, below, b, BITS).min() >= 0.0


def test_is_reachable_hand_worked_number_expected():
    # At u = 2^-20 the next number u moves the noise by 2^-33, while doubles near y = 14.9 are
    # 2^-49 apart: the one after y cannot be made.
    one = np.ones(1)
    u = np.array([2.0**-20])
    y = one - np.log(u)
    args = (u, -one, np.full(1, 2.0**53))
    assert is_reachable(one, y, *args).all()
    assert not is_reachable(one, np.nextafter(y, 99.0), *args).any()


def test_compute_laplace_evidence_random_values_pass_by_share():
    """exp(-evidence) of the passed cells is close to the share of other values that pass."""
    rng = np.random.default_rng(5)
    x, b, n = rng.random(200_000), 1.0, 200_000
    y = 0.3 + rng.uniform(2.0, 4.0, n)  # floats that no Laplace sampler made
    found = compute_laplace_evidence(x, y, b, BITS)
    u = np.exp(-np.abs(y - x) / b)
    share = np.minimum(u * np.spacing(y) * 2.0**53 / b, 1.0)
    assert np.mean(found >= 0) == pytest.approx(np.mean(share), rel=0.15)  # ties go to even
    passed = (found > 0) & (share < 1)
    np.testing.assert_allclose(np.exp(-found[passed]), share[passed], rtol=1e-9)


def test_compute_lattice_evidence_hand_worked_values_expected():
    # Noise near 1 comes in steps of 2^-53: from x = 0.75, y = 2^-60 cannot be, 2^-53 can.
    x = np.array([-0.75, -0.75, 0.0])
    y = np.array([2.0**-60, 2.0**-53, 0.3])
    got = compute_lattice_evidence(x, y)
    assert got[0] < 0.0
    assert got[1] == pytest.approx(np.log(2.0**52))  # hardly any other value does that
    assert got[2] == 0.0


@pytest.mark.parametrize("law", ["normal", "uniform", "logistic"])
def test_low_bits_lattice_any_noise_links_above_chance(law):
    rng = np.random.default_rng(6)
    X = rng.random((150, 60))
    Y = X + getattr(rng, law)(*((-1, 1) if law == "uniform" else (0, 0.5)), X.shape)
    assert compute_lattice_evidence(X, Y).min() >= 0.0
    order = rng.permutation(150)
    assert measure_rates(make_noisy_view(X[order], Y, 0.5, law=law), order)["lattice"] > 3 / 150


@pytest.mark.parametrize("method", ["additive_noise", "pca_laplace"])
@pytest.mark.parametrize("scale", ["minmax", "none"])
def test_low_bits_grid_noise_no_link_beyond_chance(method, scale):
    rows = make_table(400, 5)
    parameters = {"b": 0.01, "scale": scale}  # so little that nearness would find all
    if method == "pca_laplace":
        parameters |= {"components": 5, "basis": "private", "b": 0.02}
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    X = read_numbers(scale_rows(rows, fitted))
    view = replace(make_noisy_view(X, read_numbers(released.rows), 0.01), public=released.public)
    found = measure_rates(view, np.arange(400))
    assert set(found) == {"lattice", "reachable", "reachable_numpy"}
    assert max(found.values()) <= 8 / 400  # 1/400 expected
    # Without a published grid, a recipient sees it in values of another scale.
    if scale == "minmax":
        hidden = replace(view, public=replace(released.public, grid=None))
        assert is_on_grid(hidden, view.Y)


def test_low_bits_clipped_values_not_tested():
    rng = np.random.default_rng(13)
    X, b = rng.random((150, 24)), 2.0
    Y = np.clip(add_textbook_noise(X, b, rng), -1.0, 3.0)
    assert np.mean((Y == -1.0) | (Y == 3.0)) > 0.2
    assert measure_rates(make_noisy_view(X, Y, b), np.arange(150))["reachable"] >= 0.9
    zero = make_noisy_view(X, np.where(Y < 0, 0.0, Y), 0.001)  # far beyond what the scale allows
    assert set(measure_rates(zero, np.arange(150))) == {"lattice", "reachable", "reachable_numpy"}


def test_low_bits_rounded_decimals_no_link_beyond_chance():
    rng = np.random.default_rng(12)
    X = rng.random((300, 6))
    Y = np.round(X + rng.laplace(0, 0.01, X.shape), 6)
    assert max(measure_rates(make_noisy_view(X, Y, 0.01), np.arange(300)).values()) <= 8 / 300
    assert not is_on_grid(make_noisy_view(X, X, 0.01), X)


def test_low_bits_independent_floats_no_link_beyond_chance():
    rng = np.random.default_rng(7)
    X = rng.random((300, 6))
    found = measure_rates(
        make_noisy_view(X, 0.5 + rng.laplace(0, 1.0, X.shape), 1.0), np.arange(300)
    )
    assert max(found.values()) <= 8 / 300


def test_low_bits_noisy_components_links_most():
    rng = np.random.default_rng(8)
    X, L = rng.random((100, 12)), np.linalg.qr(rng.normal(0, 1, (12, 12)))[0]
    centre = np.full(12, 0.5)
    Y = (X - centre) @ L + rng.laplace(0, 2.0, X.shape)
    view = make_noisy_view(X, Y, 2.0, space="components", centre=centre, loadings=L)
    assert max(measure_rates(view, np.arange(100)).values()) >= 0.9


def test_low_bits_long_tables_test_likeliest_rows():
    rng = np.random.default_rng(9)
    X, Y = rng.random((5, 3)), rng.random((40, 3))
    lists = np.concatenate([rows for _, rows in choose_tested_rows(X, Y, np.ones(3), 7)])
    far = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    for rows, distance in zip(lists, far, strict=True):
        assert set(rows) == set(np.argsort(distance)[:7])


def test_low_bits_degenerate_tables_valid_links():
    X = np.array([[0.5, 0.5]] * 3)
    rng = np.random.default_rng(10)
    Y = X + rng.laplace(0, 1.0, X.shape)
    for name, link in LowBits().attack(make_noisy_view(X, Y, 1.0), rng).candidates.items():
        assert link.shape == (3,), name
        assert len(set(link.tolist())) == 1  # the same record, the same link
    one = LowBits().attack(make_noisy_view(X[:1], Y[:1], 0.0, law=None), rng).candidates
    assert one["lattice"].tolist() == [0]
    assert set(one) == {"lattice"}


def test_low_bits_shuffled_rows_same_links():
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


def test_low_bits_missing_needs_not_applicable():
    view = make_noisy_view(np.ones((2, 2)), np.ones((2, 2)), 1.0)
    with pytest.raises(NotApplicable, match="low_bits needs full records"):
        measure_rates(replace(view, targets=None), 0)
    with pytest.raises(NotApplicable, match="low_bits needs values that noise was added to"):
        measure_rates(replace(view, public=replace(view.public, space="rotated")), 0)

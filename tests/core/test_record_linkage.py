from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core import distances
from ppdm_core.attacks import record_linkage
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.errors import NotApplicable
from ppdm_core.types import AttackerView, Numeric, Public, Schema

RNG = np.random.default_rng(0)  # the attack draws nothing


def make_view(Y, targets, *, public=None, reconstructions=None) -> AttackerView:
    return AttackerView(
        Y=Y,
        label=np.zeros(len(Y), dtype=np.int32),
        public=public or Public("copy", "original", ()),
        schema=Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(targets.shape[1]))),
        epsilon=0.1,
        targets=targets,
        reconstructions=reconstructions or {},
    )


def links(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(RecordLinkage().attack(view, RNG).candidates)


def test_identity_links_everybody():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (80, 3))
    shuffle = rng.permutation(80)
    got = links(make_view(X[shuffle], X))
    assert set(got) == {"nearest:released", "one_to_one:released"}
    for link in got.values():
        np.testing.assert_array_equal(shuffle[link], np.arange(80))


def test_constant_release_is_linked_at_one_in_n():
    rng = np.random.default_rng(2)
    n, X = 20, rng.uniform(0, 1, (20, 2))
    public = Public("flat", "components", (), np.zeros(2), np.eye(2), "laplace", np.ones(2))
    flat = np.full((n, 2), 0.5)
    rates: dict[str, list[float]] = {}
    for _ in range(300):
        shuffle = rng.permutation(n)  # row r belongs to record shuffle[r]
        view = make_view(flat, X, public=public, reconstructions={"flat": flat})
        for name, link in links(view).items():
            rates.setdefault(name, []).append(np.mean(shuffle[link] == np.arange(n)))
    assert len(rates) == 4
    for name, values in rates.items():
        spread = np.std(values) / np.sqrt(300) + 1e-12
        assert abs(np.mean(values) - 1 / n) < 4 * spread, name


def test_one_to_one_sees_through_a_shift_that_fools_nearest():
    targets = np.array([[0.0], [1.0], [2.0], [3.0]])
    got = links(make_view(targets + 0.9, targets))
    assert got["nearest:released"].tolist() == [0, 0, 1, 2]
    assert got["one_to_one:released"].tolist() == [0, 1, 2, 3]


def test_more_targets_than_rows_leave_some_without_answer():
    got = links(make_view(np.array([[0.0], [5.0]]), np.array([[0.1], [9.0], [4.9]])))
    assert got["one_to_one:released"].tolist() == [0, -1, 1]
    assert got["nearest:released"].tolist() == [0, 1, 1]


def test_every_reconstruction_is_tried_and_the_release_is_not_taken_for_one():
    X = np.random.default_rng(3).uniform(0, 1, (30, 2))
    view = make_view(np.zeros((30, 5)), X, reconstructions={"good": X, "bad": 0 * X})
    view = replace(view, public=Public("rotation", "rotated", ()))
    got = links(view)
    assert set(got) == {
        f"{way}:{name}" for way in ("nearest", "one_to_one") for name in view.reconstructions
    }
    np.testing.assert_array_equal(got["nearest:good"], np.arange(30))
    assert (got["nearest:bad"] == 0).all()


@pytest.mark.parametrize("space", ["components", "original"])
def test_likelihood_beats_nearest_under_laplace_noise(space):
    rng = np.random.default_rng(4)
    n, b = 200, np.array([0.02, 0.3, 0.3])
    loadings = np.linalg.qr(rng.standard_normal((4, 4)))[0][:, :3]
    centre = np.full(4, 0.5)
    public = Public("pca", space, (), centre, loadings, "laplace", b)
    hits = {"nearest:back": 0.0, "likelihood": 0.0, "likelihood_one_to_one": 0.0}
    for _ in range(5):
        X = rng.uniform(0, 1, (n, 4))
        Z = (X - centre) @ loadings + rng.laplace(0.0, b, (n, 3))
        back = centre + Z @ np.linalg.pinv(loadings)
        Y = Z if space == "components" else back
        got = links(make_view(Y, X, public=public, reconstructions={"back": back}))
        for name in hits:
            hits[name] += np.mean(got[name] == np.arange(n)) / 5
    assert hits["likelihood"] > 1.5 * hits["nearest:back"] > 3 / n
    assert hits["likelihood_one_to_one"] > hits["likelihood"]


def test_likelihood_on_a_hand_worked_table():
    # Costs |t - z| / b: target (0, 0) is 1/1 + 0 = 1 from row 0 and 0 + 0.5/0.1 = 5 from row 1.
    public = Public("pca", "components", (), np.zeros(2), np.eye(2), "laplace", np.array([1, 0.1]))
    Y = np.array([[1.0, 0.0], [0.0, 0.5]])
    got = links(make_view(Y, np.zeros((1, 2)), public=public, reconstructions={"as_is": Y}))
    assert got["likelihood"].tolist() == [0]
    assert got["nearest:as_is"].tolist() == [1]


def test_likelihood_adds_absolute_differences():
    # From the origin, (1, 1) is at 2 and (1.8, 0) at 1.8; Euclid says 1.4 and 1.8.
    public = Public("pca", "components", (), np.zeros(2), np.eye(2), "laplace", np.ones(2))
    Y = np.array([[1.0, 1.0], [1.8, 0.0]])
    got = links(make_view(Y, np.zeros((1, 2)), public=public, reconstructions={"as_is": Y}))
    assert got["likelihood"].tolist() == got["likelihood_one_to_one"].tolist() == [1]
    assert got["nearest:as_is"].tolist() == [0]


def test_blocks_change_nothing_and_stay_small(monkeypatch):
    rng = np.random.default_rng(5)
    X, Y = rng.uniform(0, 1, (50, 3)), rng.uniform(0, 1, (40, 3))
    public = Public("pca", "original", (), np.zeros(3), np.eye(3), "laplace", np.ones(3))
    whole = links(make_view(Y, X, public=public))
    monkeypatch.setattr(distances, "BLOCK_BYTES", 7 * 40 * 8)
    assert max(len(D) for _, D in distances.squared_distances(X, Y)) == 7
    cut = links(make_view(Y, X, public=public))
    for name in whole:
        np.testing.assert_array_equal(whole[name], cut[name])


def test_large_tables_are_not_assigned_one_to_one(monkeypatch):
    monkeypatch.setattr(record_linkage, "_ONE_TO_ONE_ROWS", 10)
    X = np.random.default_rng(6).uniform(0, 1, (11, 2))
    assert set(links(make_view(X, X))) == {"nearest:released"}


def test_without_targets_or_a_common_space_it_does_not_apply():
    X = np.ones((3, 2))
    with pytest.raises(NotApplicable, match="full records of people to look for"):
        links(replace(make_view(X, X), targets=None))
    with pytest.raises(NotApplicable, match="the original columns or a reconstruction"):
        links(replace(make_view(X, X), public=Public("rotation", "rotated", ())))

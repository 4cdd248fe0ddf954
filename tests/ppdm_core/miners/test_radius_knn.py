"""Votes of all rows within a radius that follows from the published distortion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import RadiusNeighborsClassifier

from ppdm_core.miners import radius_knn
from ppdm_core.miners.radius_knn import RadiusKNN
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.tables import fit_sanitizer, make_table, read_cells, run_sanitizer, scale_rows

ROWS = [[0.0], [1.0], [3.0], [10.0]]
LABELS = ["a", "b", "a", "b"]


def make_model() -> RadiusKNN:
    return RadiusKNN(mean=5.0, variance=4.0).fit(ROWS, LABELS)  # squared radius 5 + 2 * 2 = 9


def test_radius_knn_votes_by_hand() -> None:
    # From 2: squared distances 4, 1, 1, 64; the last is outside.
    assert make_model().predict([[2.0]]).tolist() == ["a"]
    assert make_model().predict_proba([[2.0]])[0].tolist() == pytest.approx([1.25 / 2.25, 1 / 2.25])
    # From -2: 4, 9, 25, 144; a row on the edge is inside.
    assert make_model().predict_proba([[-2.0]])[0].tolist() == pytest.approx([9 / 13, 4 / 13])


def test_radius_knn_equal_rows_only_these_vote() -> None:
    assert make_model().predict_proba([[1.0]])[0].tolist() == [0.0, 1.0]
    both = RadiusKNN(mean=5.0).fit([[0.0], [0.0], [0.0], [0.1]], ["b", "a", "b", "a"])
    assert both.predict_proba([[0.0]])[0].tolist() == pytest.approx([1 / 3, 2 / 3])


def test_radius_knn_tie_smallest_label() -> None:
    for labels in (["b", "a"], ["a", "b"]):
        assert RadiusKNN(mean=5.0).fit([[0.0], [2.0]], labels).predict([[1.0]]).tolist() == ["a"]


def test_radius_knn_empty_ball_nearest_vote_and_counted() -> None:
    # From 20: squared distances 400, 361, 289, 100; the nearest two are b (100) and a (289).
    queries = [[20.0], [2.0], [-30.0], [1.0]]
    model = RadiusKNN(mean=5.0, variance=4.0, k=2).fit(ROWS, LABELS)
    assert model.predict_proba([[20.0]])[0].tolist() == pytest.approx([100 / 389, 289 / 389])
    report = model.report(queries)
    assert report.answers.tolist() == ["b", "a", "a", "b"]
    assert report.neighbours.tolist() == [0, 3, 0, 3]
    assert report.fallbacks == 2 and report.mean_neighbours == 1.5
    assert report.majority_rate == 0.5  # equally common classes: "a" counts as the most common


@pytest.mark.parametrize("mean", [0.0, -1.0])
def test_radius_knn_no_radius_five_nearest_vote(mean: float) -> None:
    rng = np.random.default_rng(1)
    Z, label, Q = rng.standard_normal((40, 2)), rng.integers(0, 3, 40), rng.standard_normal((9, 2))
    report = RadiusKNN(mean=mean).fit(Z, label).report(Q)
    assert report.fallbacks == 9 and report.mean_neighbours == 0
    for query, answer in zip(Q, report.answers, strict=True):
        square = ((Z - query) ** 2).sum(axis=1)
        five = np.argsort(square)[:5]
        votes = [sum(1 / square[i] for i in five if label[i] == c) for c in range(3)]
        assert answer == int(np.argmax(votes))


def compute_inverse_squares(distances: np.ndarray) -> np.ndarray:
    """Return 1/d^2; scikit-learn passes an array of arrays for balls of different sizes."""
    weights = np.empty(len(distances), dtype=object)
    for i, d in enumerate(distances):
        weights[i] = 1 / d**2
    return weights


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    columns=st.integers(1, 6),
    classes=st.integers(1, 4),
    radius=st.floats(0.3, 4.0),
    origin=st.sampled_from([0.0, 50.0]),
)
def test_radius_knn_votes_equal_scikit_learn(
    seed: int, columns: int, classes: int, radius: float, origin: float
) -> None:
    rng = np.random.default_rng(seed)
    Z = origin + rng.standard_normal((60, columns))
    label = rng.integers(0, classes, 60)
    Q = origin + rng.standard_normal((20, columns))
    ours = RadiusKNN(mean=radius**2).fit(Z, label)
    peer = RadiusNeighborsClassifier(
        radius=radius, weights=compute_inverse_squares, algorithm="kd_tree"
    )
    peer.fit(Z, label)
    inside = ours.report(Q).neighbours > 0
    counts = [len(found) for found in peer.radius_neighbors(Q, return_distance=False)]
    assert ours.report(Q).neighbours.tolist() == counts
    if inside.any():
        theirs = peer.predict_proba(Q[inside])
        assert np.allclose(ours.predict_proba(Q[inside]), theirs, rtol=1e-6, atol=1e-9)


def test_radius_knn_far_from_origin_equal_rows_found() -> None:
    rng = np.random.default_rng(2)
    Z = 1e8 + rng.integers(0, 1000, (300, 3)) / 128  # differences are exact in floats
    label = rng.integers(0, 2, 300)
    Q = Z[:50] + np.array([1 / 128, 0.0, 0.0])
    model = RadiusKNN(mean=100.0).fit(Z, label)
    for query, votes in zip(Q, model.predict_proba(Q), strict=True):
        square = ((Z - query) ** 2).sum(axis=1)
        weight = square == 0 if (square == 0).any() else np.where(square <= 100, 1 / square, 0)
        assert votes.tolist() == pytest.approx(np.bincount(label, weight) / weight.sum())


def test_radius_knn_query_is_row_distance_zero() -> None:
    """|a|^2 - 2ab + |b|^2 alone would not be exactly 0."""
    rng = np.random.default_rng(4)
    Z, label = 1000.0 * rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    votes = RadiusKNN(mean=1e9).fit(Z, label).predict_proba(Z)
    assert np.array_equal(votes, np.eye(3)[label])


def test_radius_knn_other_tiles_same_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    Z, label = rng.standard_normal((500, 4)), rng.integers(0, 3, 500)
    Q = rng.standard_normal((70, 4))
    Q[:10] = Z[:10]
    model = RadiusKNN(mean=2.0).fit(Z, label)
    expected = model.predict_proba(Q)
    monkeypatch.setattr(radius_knn, "_TILE_QUERIES", 9)
    monkeypatch.setattr(radius_knn, "_TILE_ROWS", 64)
    assert np.allclose(model.predict_proba(Q), expected, rtol=1e-12)


def test_from_public_consistent_moments_by_hand() -> None:
    public = PublicParameters(
        "x", "components", ("p", "q"), law="laplace", scales=np.array([1.0, 2.0])
    )
    model = RadiusKNN.from_public(public, moments="consistent")
    assert (model.mean, model.variance) == (2 * (1 + 4), 20 * (1 + 16))
    assert model.squared_radius == pytest.approx(10 + 2 * 340**0.5)
    normal = PublicParameters("x", "components", ("p",), law="normal", scales=np.array([3.0]))
    model = RadiusKNN.from_public(normal, moments="consistent", k=7)
    assert (model.mean, model.variance, model.k) == (9.0, 2 * 81.0, 7)


def test_from_public_published_moments_equal_equations_12_13() -> None:
    rows = make_table(400, 6)
    sanitizer = PcaLaplace(components=3, b=0.2, noise_shape="per_component", basis="private")
    fitted = fit_sanitizer(sanitizer, rows)
    public = run_sanitizer(sanitizer, rows, bytes(32), fitted).public
    variances = np.sort(np.linalg.eigvalsh(np.cov(read_cells(scale_rows(rows, fitted)).T)))[::-1]
    kept, dropped, b = variances[:3], variances[3:], public.scales
    assert b is not None
    E = 2 * sum(b**2) - 2 * sum(dropped)
    V = 16 * sum(b**2 * kept) + 20 * sum(b**4) + 8 * sum(dropped**2)
    model = RadiusKNN.from_public(public)
    # Variances are rounded to two digits, and then both sums: at most a tenth each time.
    assert abs(model.mean - E) < 0.1 * E + 0.2 * sum(dropped)
    assert V <= model.variance < 1.21 * V
    exact = RadiusKNN.from_public(public, moments="exact")
    assert exact.mean == model.mean
    assert exact.variance == public.facts["distance_distortion_variance_exact"]


def test_from_public_no_moments_not_applicable() -> None:
    public = PublicParameters("random_rotation", "rotated", ("p",))
    for moments in ("paper", "exact", "consistent"):
        with pytest.raises(NotApplicable, match="random_rotation publishes no"):
            RadiusKNN.from_public(public, moments=moments)
    with pytest.raises(ValueError, match="'moments' must be one of"):
        RadiusKNN.from_public(public, moments="mine")

"""Layouts of many pairs: merged levels, exact layouts, and placement among few landmarks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from ppdm_core.sanitizers import _nonmetric
from ppdm_core.sanitizers._nonmetric import (
    DissimilarityOrder,
    compute_classical_start,
    compute_stress,
    descend,
    draw_random_start,
    lay_out,
    merge_levels,
    rank_dissimilarities,
)
from ppdm_core.sanitizers._placement import Placement
from ppdm_core.sanitizers.nonmetric_mds import NonmetricMds
from tests.support.tables import fit_sanitizer, make_bounded_rows, read_cells, run_sanitizer

both_ties = pytest.mark.parametrize("ties", ["primary", "secondary"])


def draw_records(n: int, rank: int, d: int, decay: float) -> np.ndarray:
    """Return records in a subspace, whose spread falls by a factor from direction to direction."""
    rng = np.random.default_rng(1)
    return (
        rng.standard_normal((n, rank)) * decay ** np.arange(rank) @ rng.standard_normal((rank, d))
    )


def compute_neighbourhood_preservation(X: np.ndarray, Y: np.ndarray, k: int = 5) -> float:
    """Return the mean share of the k nearest neighbours that are kept."""
    before, after = (np.argsort(cdist(A, A), axis=1)[:, 1 : k + 1] for A in (X, Y))
    return float(np.mean(np.any(before[:, :, None] == after[:, None, :], axis=2)))


@both_ties
def test_sanitize_many_dimensions_few_landmarks_keeps_neighbours(ties: str):
    X = draw_records(400, rank=58, d=60, decay=0.8)
    sanitizer = NonmetricMds(dimensions=59, landmarks=205, ties=ties, scale="none")
    rows = make_bounded_rows(X)
    fitted = fit_sanitizer(sanitizer, rows)
    assert fitted["stress"] < 1e-9
    Y = read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows)
    assert compute_neighbourhood_preservation(X, Y) >= 0.99


@both_ties
def test_lay_out_exact_start_is_not_moved(ties: str):
    X = draw_records(220, rank=8, d=12, decay=0.7)
    delta = pdist(X)
    assert len(delta) > _nonmetric.MAX_LEVELS
    start = compute_classical_start(X, 8)
    Y, stress = lay_out(start, delta, rank_dissimilarities(delta, ties), 1e-4, 300)
    assert stress < 1e-9
    assert np.array_equal(Y, start)


def test_merge_levels_many_levels_split_by_rank_and_value(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_nonmetric, "MAX_LEVELS", 20)
    delta = np.random.default_rng(1).permutation(1000) + 1.0
    delta[delta == 1000] = 5000.0  # values: 9 steps up to here, so 1 to 555 and 556 to 999
    merged = merge_levels(rank_dissimilarities(delta, "secondary"), delta)
    edges = [*range(100, 1000, 100), 555, 999]
    assert merged.counts.tolist() == np.diff([0, *sorted(edges), 1000]).tolist()
    assert np.array_equal(merged.level, np.searchsorted(sorted(edges), delta))


def test_merge_levels_few_levels_returns_same_order():
    delta = np.array([1.0, 1.0, 2.0, 3.0])
    order = rank_dissimilarities(delta, "secondary")
    assert merge_levels(order, delta) is order


def test_merge_levels_shortest_pairs_keep_their_order():
    """Few pairs are much shorter than all others; their order is that of nearest neighbours."""
    delta = pdist(draw_records(300, rank=10, d=10, decay=1.0))
    merged = merge_levels(rank_dissimilarities(delta, "secondary"), delta)
    assert len(merged.counts) <= _nonmetric.MAX_LEVELS
    assert np.all(np.diff(merged.level[np.argsort(delta)]) >= 0)
    assert len(set(merged.level[np.argsort(delta)[:20]].tolist())) > 15


def test_lay_out_real_stress_ends_as_low_as_with_exact_levels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_nonmetric, "MAX_LEVELS", 1000)
    X = draw_records(150, rank=6, d=6, decay=0.8)
    delta = pdist(X)
    order = rank_dissimilarities(delta, "secondary")
    start = compute_classical_start(X, 3)
    used: list[int] = []

    def record_levels(Y: np.ndarray, order: DissimilarityOrder, *rest: float):
        used.append(len(order.counts))
        return descend(Y, order, *rest)

    monkeypatch.setattr(_nonmetric, "descend", record_levels)
    Y, stress = lay_out(start, delta, order, 1e-4, 300)
    assert used == [len(merge_levels(order, delta).counts)]
    assert stress == pytest.approx(compute_stress(pdist(Y), order), abs=1e-12)
    _, exact = descend(start, order, 1e-4, 300)
    assert stress <= 1.01 * exact[-1]


def test_lay_out_low_stress_ends_with_exact_levels(monkeypatch: pytest.MonkeyPatch):
    """A random start has a high stress; at the end of the merged descent only merging is left."""
    monkeypatch.setattr(_nonmetric, "MAX_LEVELS", 100)
    X = np.random.default_rng(4).standard_normal((60, 2))
    delta = pdist(X)
    order = rank_dissimilarities(delta, "secondary")
    start = draw_random_start(delta, 60, 2, np.random.default_rng(5))
    coarse, _ = descend(start, merge_levels(order, delta), 1e-6, 500)
    Y, stress = lay_out(start, delta, order, 1e-6, 500)
    assert stress < 0.5 * compute_stress(pdist(coarse), order)
    assert np.corrcoef(pdist(Y), delta)[0, 1] > 0.999


def test_placement_narrow_directions_ignore_errors_of_distances():
    """In the last directions the landmarks differ by less than the errors of their distances."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 40)) * 0.8 ** np.arange(40)
    landmarks, others = X[:150], X[150:]
    Y = landmarks + 1e-3 * rng.standard_normal(landmarks.shape)
    placed = Placement(landmarks, Y, np.array([[0.0, 0.0], [100.0, 100.0]])).place(others)
    assert np.linalg.norm(placed - others, axis=1).max() < 0.2
    assert compute_neighbourhood_preservation(others, placed) > 0.99

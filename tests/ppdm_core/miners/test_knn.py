"""Votes of the nearest rows, with a given or chosen number of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from ppdm_core.miners import knn
from ppdm_core.miners.knn import KNN, list_candidates
from ppdm_core.numerics import distances
from ppdm_core.numerics.folds import assign_folds

ROWS = [[0.0], [1.0], [3.0], [10.0]]
LABELS = ["a", "b", "a", "b"]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread: more do not pay off on such small tables."""
    with threadpool_limits(limits=1):
        yield


def test_knn_votes_by_hand() -> None:
    # From 2.5: squared distances 6.25, 2.25, 0.25, 56.25.
    model = KNN(k=3).fit(ROWS, LABELS)
    a, b = 1 / 0.25 + 1 / 6.25, 1 / 2.25
    assert model.predict_proba([[2.5]])[0].tolist() == pytest.approx([a / (a + b), b / (a + b)])
    uniform = KNN(k=3, weights="uniform").fit(ROWS, LABELS)
    assert uniform.predict_proba([[2.5]])[0].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert model.predict_proba([[1.0]])[0].tolist() == [0.0, 1.0]  # the row itself
    assert uniform.predict([[2.0]]).tolist() == ["a"]


def test_knn_more_neighbours_than_rows_predicts() -> None:
    assert KNN(k=50, weights="uniform").fit(ROWS, LABELS).predict([[9.0]]).tolist() == ["a"]


@pytest.mark.parametrize("columns", [2, 20])
def test_knn_votes_equal_scikit_learn(columns: int) -> None:
    rng = np.random.default_rng(columns)
    Z, label = rng.standard_normal((300, columns)), rng.integers(0, 3, 300)
    Q = rng.standard_normal((80, columns))
    peer = KNeighborsClassifier(7, weights=lambda d: 1 / d**2).fit(Z, label)
    assert np.allclose(KNN(k=7).fit(Z, label).predict_proba(Q), peer.predict_proba(Q))


def draw_two_clouds(n: int, gap: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    return rng.standard_normal((n, 3)) + gap * label[:, None], label


def cross_validate(Z: np.ndarray, label: np.ndarray, k: int, folds: int) -> float:
    """Return the accuracy in cross-validation by scikit-learn."""
    fold, right = assign_folds(label, folds, np.random.default_rng(0)), 0
    for held_out in range(folds):
        others = fold != held_out
        peer = KNeighborsClassifier(k, weights=lambda d: 1 / d**2).fit(Z[others], label[others])
        right += int(np.sum(peer.predict(Z[~others]) == label[~others]))
    return right / len(label)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_knn_cv_chooses_best_k(seed: int) -> None:
    Z, label = draw_two_clouds(240, 0.8, seed)
    candidates = (1, 3, 9, 27)
    model = KNN(k="cv", candidates=candidates, folds=4).fit(Z, label)
    shares = [cross_validate(Z, label, k, 4) for k in candidates]
    assert model.k_ == candidates[int(np.argmax(shares))]  # the first of equally good ones
    assert max(shares) > min(shares)


def test_knn_cv_overlapping_classes_larger_k() -> None:
    rng = np.random.default_rng(4)
    Z = rng.random((600, 2))
    label = (Z * 4).astype(int).sum(axis=1) % 2  # a chessboard
    near = KNN(k="cv").fit(Z, label)
    far = KNN(k="cv").fit(*draw_two_clouds(600, 0.5, 5))
    assert near.k_ <= 15 < 31 <= far.k_


def test_knn_cv_many_rows_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    count_correct = KNN._count_correct

    def record_size(
        self: KNN, some: np.ndarray, others: np.ndarray, counts: list[int]
    ) -> np.ndarray:
        sizes.append(len(some))
        assert not set(some) & set(others)
        return count_correct(self, some, others, counts)

    monkeypatch.setattr(KNN, "_count_correct", record_size)
    monkeypatch.setattr(knn, "_MAX_TEST_ROWS", 60)
    KNN(k="cv").fit(*draw_two_clouds(200, 1.0, 6))
    assert sum(sizes) == 60


@pytest.mark.slow
def test_knn_cv_large_table_k_above_95() -> None:
    Z, label = draw_two_clouds(6_000, 0.3, 7)
    T, true = draw_two_clouds(2_000, 0.3, 9)
    model = KNN(k="cv", weights="uniform").fit(Z, label)
    assert model.k_ > 95
    fewer = KNN(k=95, weights="uniform").fit(Z, label)
    assert model.score(T, true) > fewer.score(T, true)


def test_list_candidates_grow_with_rows() -> None:
    assert list_candidates(900)[-1] == 95
    for n in (10_000, 100_000):
        counts = list_candidates(n)
        assert n / 15 < counts[-1] <= n / 10
        assert all(k % 2 for k in counts) and counts == sorted(set(counts))
    assert len(list_candidates(100_000)) < 25


def test_knn_many_queries_in_blocks_same_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    Z, label = draw_two_clouds(300, 0.5, 8)
    whole = KNN(k=9).fit(Z, label).predict_proba(Z + 0.01)
    monkeypatch.setattr(distances, "BLOCK_BYTES", 8 * 4 * 9 * 7)  # seven queries at once
    assert KNN(k=9).fit(Z, label).predict_proba(Z + 0.01).tolist() == whole.tolist()


def test_assign_folds_each_class_evenly() -> None:
    codes = np.array([0] * 50 + [1] * 7)
    fold = assign_folds(codes, 5, np.random.default_rng(0))
    for code, most in ((0, 10), (1, 2)):
        counts = np.bincount(fold[codes == code], minlength=5)
        assert counts.max() <= most and counts.min() >= most - 1

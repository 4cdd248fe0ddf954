"""Distances, neighbours, clusters, columns and frequencies before and after."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from scipy.stats import wasserstein_distance

from ppdm_core.metrics import METRICS, ReleaseComparison, _neighbourhoods, _pairs
from ppdm_core.metrics.adjusted_rand import adjusted_rand
from ppdm_core.metrics.cluster_f_measure import f_measure
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics import distances
from ppdm_core.numerics.neighbours import find_nearest

COPY = PublicParameters("copy", "original", ("x0", "x1"))
EMBEDDED = PublicParameters("layout", "embedded", ("a", "b"))
PAIR_METRICS = ("distance_loss", "distance_correlation", "stress")
ONE_ROW_EACH = (*PAIR_METRICS, "neighbourhood_preservation", "adjusted_rand")
SAME_COLUMNS = ("column_distance", "correlation_error")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def codes(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def value(name: str, X, Y, label=None, public: PublicParameters = COPY, **given) -> float:
    label = np.zeros(len(X), dtype=np.int32) if label is None else label
    return METRICS[name].measure(ReleaseComparison(X, label, Y, public, **given)).value


LINE = np.array([[0.0], [3.0], [3.0], [9.0]])
MOVED = np.array([[0.0, 0.0], [0.0, 3.0], [0.0, 4.0], [0.0, 6.0]])
BEFORE, AFTER = (3, 3, 9, 0, 6, 6), (3, 4, 6, 1, 3, 2)  # distances of the six pairs


def test_distance_loss_by_hand():
    # The zero one is divided by the mean 4.5.
    expected = (0 + 1 / 3 + 3 / 9 + 1 / 4.5 + 3 / 6 + 4 / 6) / 6
    assert value("distance_loss", LINE, MOVED) == pytest.approx(expected)


def test_stress_by_hand():
    # Sums: before^2 171, after^2 75, product 105; what is left is 171 - 105^2 / 75 = 24.
    assert value("stress", LINE, MOVED) == pytest.approx(math.sqrt(24 / 171))
    # All distances equal: the product is the sum 27 of the distances, 171 - 27^2 / 6 = 49.5.
    comparison = ReleaseComparison(LINE, codes(0, 0, 0, 0), MOVED, COPY)
    assert METRICS["stress"].baseline(comparison) == pytest.approx(math.sqrt(49.5 / 171))
    assert value("stress", LINE, 7.0 * LINE) == 0.0
    assert value("stress", LINE, 0.0 * LINE) == 1.0


def test_distance_correlation_by_hand():
    n, x, y = 6, sum(BEFORE), sum(AFTER)
    products = sum(a * b for a, b in zip(BEFORE, AFTER, strict=True))
    squares = [sum(a * a for a in values) for values in (BEFORE, AFTER)]
    expected = (n * products - x * y) / math.sqrt(
        (n * squares[0] - x * x) * (n * squares[1] - y * y)
    )
    assert value("distance_correlation", LINE, MOVED) == pytest.approx(expected)
    assert value("distance_correlation", LINE, 7.0 * LINE) == 1.0
    assert value("distance_correlation", LINE, 0.0 * LINE) == 0.0


@pytest.mark.parametrize("name", PAIR_METRICS)
def test_pair_metrics_many_pairs_sampled(name, monkeypatch):
    X = rng(1).normal(0.0, 1.0, (60, 3))
    Y = X + rng(2).normal(0.0, 0.5, X.shape)
    exact = value(name, X, Y)
    monkeypatch.setattr(_pairs, "MAX_PAIRS", 1_500)
    assert value("distance_loss", X, 0.7 * X) == pytest.approx(0.3)
    sampled = value(name, X, Y)
    assert sampled == pytest.approx(exact, rel=0.1)
    assert sampled != exact


@pytest.mark.parametrize("name", PAIR_METRICS)
def test_recompute_without_records_equals_measure_of_rest(name):
    X = rng(3).normal(0.0, 1.0, (30, 2))
    Y = X + rng(4).normal(0.0, 0.3, X.shape)
    keep = np.arange(30) % 3 > 0
    measured = METRICS[name].measure(ReleaseComparison(X, np.zeros(30, dtype=np.int32), Y, COPY))
    assert measured.recompute(keep) == pytest.approx(value(name, X[keep], Y[keep]))


@pytest.mark.parametrize("name", PAIR_METRICS)
def test_pair_metrics_equal_records_not_applicable(name):
    with pytest.raises(NotApplicable, match="two records that differ"):
        value(name, np.ones((3, 1)), LINE[:3])


# Equation 10, by hand: 0, 1, 3, 7 on a line, and 3 and 7 swapped. With two neighbours each.
def test_neighbourhood_preservation_by_hand(monkeypatch):
    monkeypatch.setattr(_neighbourhoods, "NEIGHBOURS", 2)
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    Y = np.array([[0.0], [1.0], [7.0], [3.0]])
    # Before: {1,2} {0,2} {1,0} {2,1}; after: {1,3} {0,3} {3,1} {1,0}: one of two stays for each.
    assert value("neighbourhood_preservation", X, Y) == 0.5


def compute_naive_preservation(X: np.ndarray, Y: np.ndarray, k: int) -> float:
    """Equation 10 with sets, where nothing ties."""
    shares = []
    for i in range(len(X)):
        near = []
        for Z in (X, Y):
            distance = [(math.dist(Z[i], Z[j]), j) for j in range(len(Z)) if j != i]
            near.append({j for _, j in sorted(distance)[:k]})
        shares.append(Fraction(len(near[0] & near[1]), k))
    return float(sum(shares) / len(shares))


def compute_naive_compactness(Y: np.ndarray, label: np.ndarray, k: int) -> float:
    """Equations 11 and 12, with the mean over classes."""
    per_class = []
    for one in sorted(set(label.tolist())):
        shares = []
        for i in np.flatnonzero(label == one):
            order = sorted((math.dist(Y[i], Y[j]), j) for j in range(len(Y)) if j != i)
            shares.append(sum(label[j] == one for _, j in order[:k]) / k)
        per_class.append(sum(shares) / len(shares))
    return sum(per_class) / len(per_class)


@pytest.mark.parametrize("block_bytes", [distances.BLOCK_BYTES, 7 * 90 * 8])
def test_neighbourhood_metrics_equal_naive_formulas(block_bytes, monkeypatch):
    monkeypatch.setattr(distances, "BLOCK_BYTES", block_bytes)
    X = rng(5).normal(0.0, 1.0, (90, 3))
    label = codes(*([0] * 60 + [1] * 25 + [2] * 5))
    Y = X[:, :2] + rng(6).normal(0.0, 0.4, (90, 2))
    assert value("neighbourhood_preservation", X, Y) == pytest.approx(
        compute_naive_preservation(X, Y, 10)
    )
    found = METRICS["class_compactness"].measure(ReleaseComparison(X, label, Y, EMBEDDED))
    assert found.value == pytest.approx(compute_naive_compactness(Y, label, 10))
    original = METRICS["class_compactness"].original(ReleaseComparison(X, label, Y, EMBEDDED))
    assert original == pytest.approx(compute_naive_compactness(X, label, 10))


def test_class_compactness_small_class_equal_weight_below_one():
    X = np.vstack([rng(7).normal(0.0, 0.1, (30, 2)), rng(8).normal(9.0, 0.1, (6, 2))])
    label = codes(*[0] * 30, *[1] * 6)
    # Six of a class have five of it and five others among their ten nearest.
    assert value("class_compactness", X, X, label) == pytest.approx((1.0 + 0.5) / 2)
    chance = METRICS["class_compactness"].baseline(ReleaseComparison(X, label, X, COPY))
    assert chance == pytest.approx((29 / 35 + 5 / 35) / 2)


def test_neighbourhood_preservation_ties_in_original_no_loss():
    """Integers with duplicates: a copy preserves all, also if tiny noise breaks its ties."""
    X = rng(9).integers(0, 3, (80, 2)).astype(np.float64)
    assert value("neighbourhood_preservation", X, X) == 1.0
    tiny = X + rng(10).normal(0.0, 1e-4, X.shape)
    assert value("neighbourhood_preservation", X, tiny) == 1.0
    assert compute_naive_preservation(X, tiny, 10) < 0.9  # which goes by places in the table


def test_neighbourhood_metrics_all_rows_equal_baseline():
    X = rng(11).normal(0.0, 1.0, (61, 2))
    assert value("neighbourhood_preservation", X, 0.0 * X) == pytest.approx(10 / 60)
    label = codes(*[0] * 31, *[1] * 30)
    comparison = ReleaseComparison(X, label, 0.0 * X, COPY)
    metric = METRICS["class_compactness"]
    assert metric.measure(comparison).value == pytest.approx(metric.baseline(comparison))


def test_count_preserved_ties_in_release_share_places():
    # Row 0, two neighbours; before 1 and 2. After, 1 is nearest and 2, 3, 4 tie for one place.
    X = np.array([[0.0], [1.0], [2.0], [50.0], [60.0]])
    Y = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 1.0], [0.0, -1.0], [-1.0, 0.0]])
    (before,), (after,) = (list(find_nearest(Z[:1], Z, 2, np.array([0]))) for Z in (X, Y))
    assert _neighbourhoods.count_preserved(before, after, 5).tolist() == pytest.approx([1 + 1 / 3])


def test_nearest_equals_exhaustive_search():
    A, B = rng(12).normal(0.0, 1.0, (300, 4)), rng(13).normal(0.0, 1.0, (5_000, 4))
    expected = np.argsort(cdist(A, B), axis=1)[:, :6]
    found = list(find_nearest(A, B, 6))
    assert np.array_equal(np.concatenate([n.column for n in found]).reshape(300, 6), expected)
    assert all((near.weight == 1).all() for near in found)


# Two classes of four and two clusters: class 0 has 3 + 1, class 1 has 0 + 4 in them.
def test_f_measure_by_hand():
    label, cluster = np.array([0] * 4 + [1] * 4), np.array([0, 0, 0, 1, 1, 1, 1, 1])
    # Class 0: precision 1, recall 3/4, F1 6/7. Class 1: precision 4/5, recall 1, F1 8/9.
    assert f_measure(label, cluster) == pytest.approx((6 / 7 + 8 / 9) / 2)


def test_cluster_metrics_equal_independent_formulas():
    random = rng(14)
    for _ in range(20):
        label, cluster = random.integers(0, 4, 50), random.integers(0, 3, 50)
        total = Fraction(0)
        for one in set(label.tolist()):
            best = Fraction(0)
            for other in set(cluster.tolist()):
                hits = int(np.sum((label == one) & (cluster == other)))
                if hits:
                    precision = Fraction(hits, int(np.sum(cluster == other)))
                    recall = Fraction(hits, int(np.sum(label == one)))
                    best = max(best, 2 * precision * recall / (precision + recall))
            total += Fraction(int(np.sum(label == one)), 50) * best
        assert f_measure(label, cluster) == pytest.approx(float(total))
        i, j = np.triu_indices(50, k=1)
        in_class, in_cluster = label[i] == label[j], cluster[i] == cluster[j]
        together, first, second = (
            int(np.sum(each)) for each in (in_class & in_cluster, in_class, in_cluster)
        )
        chance = Fraction(first * second, len(i))
        index = (together - chance) / (Fraction(first + second, 2) - chance)
        assert adjusted_rand(label, cluster) == pytest.approx(float(index))


def test_adjusted_rand_by_hand():
    # Pairs together: 2 in both, 4 in one and 4 in the other, of 15; by chance 16/15.
    one, other = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 2])
    assert adjusted_rand(one, other) == pytest.approx((2 - 16 / 15) / (4 - 16 / 15))
    assert adjusted_rand(one, (one + 1) % 3) == 1.0  # names of clusters do not matter


def test_cluster_metrics_separated_groups_perfect():
    X = np.vstack([rng(15 + i).normal(10.0 * i, 0.3, (25, 2)) for i in range(3)])
    label = np.repeat(np.arange(3, dtype=np.int32), 25)
    Y = X @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    comparison = ReleaseComparison(X, label, Y, EMBEDDED)
    assert METRICS["cluster_f_measure"].measure(comparison).value == 1.0
    assert METRICS["adjusted_rand"].measure(comparison).value == 1.0
    # One cluster: a third of all is the class, F1 = 2/3 / (1 + 1/3).
    assert METRICS["cluster_f_measure"].baseline(comparison) == pytest.approx(0.5)
    shuffled = ReleaseComparison(X, label, rng(18).permutation(Y), EMBEDDED)
    assert abs(METRICS["adjusted_rand"].measure(shuffled).value) < 0.15


def test_column_distance_by_hand():
    X = np.array([[0.0, 0.0, 7.0], [1.0, 10.0, 7.0], [2.0, 20.0, 7.0], [4.0, 40.0, 7.0]])
    Y = X + np.array([1.0, 0.0, 5.0])  # a quarter of the first range; the third does not vary
    found = METRICS["column_distance"].measure(ReleaseComparison(X, codes(0, 0, 0, 0), Y, COPY))
    assert found.value == pytest.approx((0.25 + 0.0) / 2)
    assert found.notes == pytest.approx({"worst_column": 0.25})
    assert value("column_distance", X, X[::-1]) == 0.0  # the same spread
    # All values at the mean 1.75: 1.75, 0.75, 0.25 and 2.25 away, mean 1.25 of a range of 4.
    base = METRICS["column_distance"].baseline(ReleaseComparison(X, codes(0, 0, 0, 0), X, COPY))
    assert base == pytest.approx(1.25 / 4)


@pytest.mark.parametrize("m", [40, 57])
def test_column_distance_equals_scipy(m):
    X, Y = rng(19).normal(0.0, 1.0, (40, 2)), rng(20).normal(0.5, 2.0, (m, 2))
    source = None if m == 40 else np.arange(m) % 40
    measured = METRICS["column_distance"].measure(
        ReleaseComparison(X, np.zeros(40, dtype=np.int32), Y, COPY, source=source)
    )
    keep = np.arange(40) % 5 > 0
    rows = keep if source is None else keep[source]
    for some, these, found in (
        (slice(None), slice(None), measured.value),
        (keep, rows, measured.recompute(keep)),
    ):
        expected = [
            wasserstein_distance(X[some, j], Y[these, j]) / np.ptp(X[:, j]) for j in range(2)
        ]
        assert found == pytest.approx(np.mean(expected))


def test_correlation_error_by_hand():
    x = np.array([-1.0, 0.0, 1.0])
    X = np.column_stack([x, x, [1.0, -2.0, 1.0]])  # correlations 1, 0, 0
    Y = np.column_stack([x, -x, x])  # -1, 1, -1
    assert value("correlation_error", X, Y) == pytest.approx((2 + 1 + 1) / 3)
    base = METRICS["correlation_error"].baseline(ReleaseComparison(X, codes(0, 0, 0), Y, COPY))
    assert base == pytest.approx(1 / 3)
    constant = np.column_stack([x, np.zeros(3), x])  # 0, 1, 0
    assert value("correlation_error", X, constant) == pytest.approx((1 + 1 + 0) / 3)
    with pytest.raises(NotApplicable, match="columns that vary"):
        value("correlation_error", X[:, :1], X[:, :1])


COLUMN = Categorical("c", ("a", "b"), missing=True)


def make_comparison(C: np.ndarray, answers: np.ndarray, gamma: float = 2.0) -> ReleaseComparison:
    public = PublicParameters("answers", "original", (), responses=(Response(COLUMN, gamma),))
    X = np.zeros((len(C), 0))
    label = np.zeros(len(C), dtype=np.int32)
    return ReleaseComparison(X, label, X, public, C=C[:, None], released_codes=answers[:, None])


def test_frequency_error_by_hand():
    # True: 6 a, 1 b, 1 missing. Released: 4, 2, 2. With gamma 2 and 3 cells, p = 1/2, q = 1/4:
    # the estimate is (1/2 - 1/4) / (1/4) = 1 for a, and 0 for the others.
    C, answers = codes(*[0] * 6, 1, -1), codes(*[0] * 4, 1, 1, -1, -1)
    found = METRICS["frequency_error"].measure(make_comparison(C, answers))
    assert found.value == pytest.approx((1 / 4 + 1 / 8 + 1 / 8) / 2)
    assert found.notes["as_released"] == pytest.approx((1 / 4 + 1 / 8 + 1 / 8) / 2)
    base = METRICS["frequency_error"].baseline(make_comparison(C, answers))
    assert base == pytest.approx((3 / 4 - 1 / 3) / 2 + 2 * (1 / 3 - 1 / 8) / 2)


def test_frequency_error_unbiased_estimate_below_raw_counts():
    random = rng(21)
    C = random.choice([0, 1, -1], p=[0.8, 0.15, 0.05], size=20_000).astype(np.int32)
    is_true_cell = random.random(20_000) < 0.5  # gamma 2 of 3 cells
    other = (C + 1 + random.integers(1, 3, 20_000)) % 3 - 1
    found = METRICS["frequency_error"].measure(make_comparison(C, np.where(is_true_cell, C, other)))
    assert found.value < 0.05 < 0.2 < found.notes["as_released"]


def test_release_metrics_not_applicable_names_reason():
    X = rng(22).normal(0.0, 1.0, (20, 2))
    label = codes(*[0, 1] * 10)
    made_of_some = ReleaseComparison(X, label, X, COPY, source=np.arange(20))
    for name in ONE_ROW_EACH:
        with pytest.raises(NotApplicable, match="one released row for each record"):
            METRICS[name].measure(made_of_some)
    for name in SAME_COLUMNS:
        with pytest.raises(NotApplicable, match="columns of the original"):
            METRICS[name].measure(ReleaseComparison(X, label, X, EMBEDDED))
    with pytest.raises(NotApplicable, match="categorical columns"):
        METRICS["frequency_error"].measure(ReleaseComparison(X, label, X, COPY))
    for name in ("class_compactness", "cluster_f_measure"):
        with pytest.raises(NotApplicable, match="each with a label"):
            METRICS[name].measure(ReleaseComparison(X, label - 1, X, COPY))


@pytest.mark.parametrize("name", [*ONE_ROW_EACH, *SAME_COLUMNS, "class_compactness"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_measure_not_finite_or_misaligned_raises_defect(name, bad):
    X = rng(23).uniform(0, 1, (10, 2))
    broken = X.copy()
    broken[3, 1] = bad
    for one, other in ((X, broken), (broken, X)):
        with pytest.raises(Defect, match="1 values that are not finite"):
            value(name, one, other)
    with pytest.raises(Defect, match="shape"):
        value(name, X, X[:9])


def test_choose_pairs_few_records_equals_scipy():
    X = rng(24).normal(0.0, 1.0, (12, 3))
    i, j = _pairs.choose_pairs(12, rng())
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == list(
        itertools.combinations(range(12), 2)
    )
    assert _pairs.pair_distances(X, i, j) == pytest.approx(pdist(X))

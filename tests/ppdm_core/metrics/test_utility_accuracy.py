"""Accuracy metrics: test records, placement, deterioration and the best classifier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.metrics import CLASSIFIERS, METRICS, ReleaseComparison
from ppdm_core.metrics._accuracy import split_folds
from ppdm_core.metrics._placement import place_records
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics import distances
from ppdm_core.numerics.folds import assign_folds
from ppdm_core.numerics.intervals import clopper_pearson
from ppdm_core.numerics.mean_limits import mean_interval
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.audit_cases import LAPLACE, draw_noisy, make_auditor, make_truth

COPY = PublicParameters("copy", "original", ("x0", "x1"))
MOMENTS = {"distance_distortion_mean": 0.02, "distance_distortion_variance": 0.0004}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def codes(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def same_rng(name: str) -> np.random.Generator:
    return rng(6)


def naive_knn(train, test, label, fold) -> list[bool]:
    right = []
    for i, q in enumerate(test):
        others = np.flatnonzero(fold != fold[i])
        near = others[np.argsort(np.linalg.norm(train[others] - q, axis=1))[:5]]
        right.append(int(np.argmax(np.bincount(label[near]))) == label[i])
    return right


@pytest.mark.parametrize("block_bytes", [distances.BLOCK_BYTES, 3 * 80 * 8])
def test_knn_accuracy_equals_naive_search(block_bytes, monkeypatch):
    monkeypatch.setattr(distances, "BLOCK_BYTES", block_bytes)
    X = rng(3).normal(0.0, 1.0, (80, 2))
    label = (X[:, 0] + rng(4).normal(0.0, 0.7, 80) > 0).astype(np.int32) + (X[:, 1] > 1)
    label = label.astype(np.int32)
    Y = X + rng(5).normal(0.0, 0.5, X.shape)
    predictions = METRICS["knn_accuracy"].cross_validate(
        ReleaseComparison(X, label, Y, COPY, same_rng)
    )
    assert predictions.correct.tolist() == naive_knn(Y, X, label, assign_folds(label, 5, rng(6)))
    assert 0.4 < predictions.correct.mean() < 1.0


def test_accuracy_public_map_classifies_clean_projections():
    X = rng(7).normal(0.0, 1.0, (80, 3))
    label = (X[:, 0] > 0).astype(np.int32)
    loadings = np.linalg.qr(rng(8).standard_normal((3, 3)))[0][:, :2]
    centre = np.full(3, 0.1)
    T = (X - centre) @ loadings
    Z = T + rng(9).laplace(0.0, 0.4, T.shape)
    fold = assign_folds(label, 5, rng(6))
    expected = naive_knn(Z, T, label, fold)
    assert expected != naive_knn(Z, Z, label, fold)
    back = np.linalg.pinv(loadings)
    for space, Y in (("components", Z), ("original", centre + Z @ back)):
        public = PublicParameters("pca", space, (), centre, loadings)
        predictions = METRICS["knn_accuracy"].cross_validate(
            ReleaseComparison(X, label, Y, public, same_rng)
        )
        assert predictions.correct.tolist() == expected


@pytest.mark.parametrize("name", ["knn_accuracy", "naive_bayes_accuracy"])
def test_accuracy_secret_map_uses_steward_map(name):
    """A rotation: with the map, every test record is at the position of its own row."""
    X = rng(10).normal(0.0, 1.0, (120, 3)) * [3.0, 1.0, 0.3]
    label = (X[:, 1] + rng(11).normal(0.0, 0.3, 120) > 0).astype(np.int32)
    M = random_orthogonal(3, rng(12))
    secret = PublicParameters("rotation", "rotated", ("a", "b", "c"), preserves_distances=True)
    known = replace(secret, centre=np.zeros(3), loadings=M)
    predictions = [
        METRICS[name].cross_validate(
            ReleaseComparison(X, label, X @ M, secret, steward_map=steward_map)
        )
        for steward_map in (known, replace(known, loadings=-M))
    ]
    original = METRICS["knn_accuracy"].cross_validate(ReleaseComparison(X, label, X, COPY)).correct
    if name == "knn_accuracy":  # which sees nothing but distances
        assert np.array_equal(predictions[0].correct, original)
    assert predictions[0].correct.mean() > 0.75
    assert predictions[1].correct.mean() < 0.5  # mapped by a wrong map


def test_place_records_no_map_uses_distances():
    """The release is a turned and stretched copy: the right places are known."""
    X = rng(13).normal(0.0, 1.0, (150, 3))
    M = random_orthogonal(3, rng(14))
    Y = 2.5 * X @ M
    embedded = PublicParameters("layout", "embedded", ("a", "b", "c"))
    comparison = ReleaseComparison(X, np.zeros(150, dtype=np.int32), Y, embedded)
    test_records, others = np.arange(30), np.arange(30, 150)
    found = place_records(comparison, test_records, others)
    assert np.linalg.norm(found - Y[:30], axis=1).max() < 0.15  # of distances around 6


def test_place_records_own_row_not_used():
    """The rows of the test records do not affect their positions."""
    X = rng(15).normal(0.0, 1.0, (60, 2))
    embedded = PublicParameters("layout", "embedded", ("a", "b"))
    label = np.zeros(60, dtype=np.int32)
    test_records, others = np.arange(12), np.arange(12, 60)
    absurd = X.copy()
    absurd[test_records] = 1e6
    one, two = (
        place_records(ReleaseComparison(X, label, Y, embedded), test_records, others)
        for Y in (X, absurd)
    )
    assert np.array_equal(one, two)


def test_place_records_equal_landmarks_one_position():
    X = np.vstack([np.zeros((8, 2)), np.ones((2, 2))])
    comparison = ReleaseComparison(
        X, codes(*[0] * 10), X, PublicParameters("layout", "embedded", ("a", "b"))
    )
    assert place_records(comparison, np.array([8, 9]), np.arange(8)).tolist() == [[0, 0], [0, 0]]


def test_knn_accuracy_small_table_by_hand():
    # Two far groups of six: always right. A tied vote (two of each among four) takes label 0.
    X = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [0.5]])
    X = np.vstack([X, X + 50.0])
    metric = METRICS["knn_accuracy"]
    groups = ReleaseComparison(X, codes(*[0] * 6, *[1] * 6), X, COPY)
    assert (metric.original(groups), metric.baseline(groups)) == (1.0, 0.5)
    assert metric.baseline(ReleaseComparison(X[:4], codes(0, 0, 2, 0), X[:4], COPY)) == 0.75
    # Leaving a 1 out ties 2 to 2, leaving a 0 out gives 3 to 1.
    one_each = ReleaseComparison(np.zeros((5, 1)), codes(1, 0, 1, 0, 1), np.zeros((5, 1)), COPY)
    assert metric.cross_validate(one_each).correct.sum() == 0


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_accuracy_all_classifiers_same_test_records(name):
    X = rng(16).normal(0.0, 1.0, (60, 2))
    label = (X[:, 0] > 0).astype(np.int32)
    comparison = ReleaseComparison(X, label, X + 0.1, replace(COPY, facts=MOMENTS))
    metric = METRICS[name]
    test_records = metric.cross_validate(comparison).records
    assert np.array_equal(test_records, split_folds(comparison)[1])
    assert np.array_equal(test_records, metric.cross_validate(comparison.original).records)
    assert metric.measure(comparison).value > 0.8 > metric.baseline(comparison)


def test_assign_folds_stratified_and_random():
    label = codes(*[0] * 50, *[1] * 20, *[2] * 3)
    fold = assign_folds(label, 5, rng(14))
    for one in (0, 1):
        counts = np.bincount(fold[label == one], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert len(np.unique(fold[label == 2])) == 3
    assert not np.array_equal(fold, assign_folds(label, 5, rng(15)))


@pytest.mark.parametrize("name", [*CLASSIFIERS, "best_accuracy"])
def test_accuracy_missing_label_not_applicable(name):
    X = np.ones((3, 1))
    with pytest.raises(NotApplicable, match="each with a label"):
        METRICS[name].measure(ReleaseComparison(X, codes(0, -1, 1), X, COPY))


def test_radius_knn_accuracy_needs_moments_and_reports_balls():
    X = np.vstack([rng(17).normal(0.0, 0.1, (40, 2)), rng(18).normal(3.0, 0.1, (20, 2))])
    label = codes(*[0] * 40, *[1] * 20)
    metric = METRICS["radius_knn_accuracy"]
    with pytest.raises(NotApplicable, match="moments"):
        metric.measure(ReleaseComparison(X, label, X, COPY))
    # Squared radius 0.02 + 2 * 0.02 = 0.06: the group, and none of the other.
    found = metric.measure(ReleaseComparison(X, label, X, replace(COPY, facts=MOMENTS)))
    assert found.value == 1.0
    assert found.notes["commonest_label"] == pytest.approx(40 / 60)
    assert 10 < found.notes["rows_in_the_ball"] < 32  # 32 and 16 others of a group are left
    large_radius = {"distance_distortion_mean": 100.0, "distance_distortion_variance": 0.0}
    wide = metric.measure(ReleaseComparison(X, label, X, replace(COPY, facts=large_radius)))
    assert wide.notes["rows_in_the_ball"] == pytest.approx(48.0)  # four fifths


def test_deterioration_interval_uses_changes_of_records():
    change = np.array([1.0] * 7 + [-1.0] * 2 + [0.0] * 91)
    metric = METRICS["deterioration"]
    assert metric.measure(change) == pytest.approx(0.05)
    low, high = mean_interval(change, 0.95, metric.bounds)
    # By hand: the standard error is sqrt((0.09 - 0.05^2) / 100), and one more record widens it.
    assert 0.05 - 3 * 0.0296 < low < 0.05 - 1.96 * 0.0296 + 0.01
    assert 0.05 + 1.96 * 0.0296 - 0.01 < high < 0.05 + 3 * 0.0296
    low, high = mean_interval(np.zeros(50), 0.95, metric.bounds)
    assert low < 0 < high  # no change seen is not no change
    for bad in (np.array([2.0]), np.zeros(0), np.array([np.nan])):
        with pytest.raises(Defect):
            metric.measure(bad)


def scores_of(name: str, *Y: np.ndarray, public: PublicParameters = LAPLACE) -> dict:
    return {score.name: score for score in make_auditor(*Y, public=public).run(name)}


def test_run_accuracy_also_returns_deterioration():
    draws = [draw_noisy(seed, b=0.3) for seed in (1, 2, 3)]
    found = scores_of("knn_accuracy", *draws)
    accuracy, change = found["knn_accuracy"], found["knn_accuracy.deterioration"]
    assert change.value == pytest.approx(accuracy.original - accuracy.value)
    assert change.baseline == pytest.approx(accuracy.original - accuracy.baseline)
    assert (change.better, change.kind, change.n) == ("down", "utility", 80)
    assert change.low < change.value < change.high
    assert "five nearest neighbours" in change.sentence
    same = scores_of("knn_accuracy", make_truth().X - 0.5)["knn_accuracy.deterioration"]
    assert same.value == 0.0 and same.low < 0 < same.high


@pytest.mark.extended
def test_best_accuracy_equals_best_classifier_with_wider_interval():
    one = make_auditor(
        draw_noisy(1, b=0.3), draw_noisy(2, b=0.3), public=replace(LAPLACE, facts=MOMENTS)
    )
    each = {name: one.run(name)[0] for name in CLASSIFIERS}
    (best,) = one.run("best_accuracy")
    assert best.value == max(score.value for score in each.values())
    assert each[best.candidate].value == best.value
    assert best.original == max(score.original for score in each.values())
    # The lower end of the highest of k holds for all k at once, at level 1 - 0.05 / k.
    chosen = METRICS[best.candidate]
    correct = [chosen.cross_validate(draw).correct for draw in one.comparisons]
    level = 1 - 0.05 / len(CLASSIFIERS)
    assert best.low == pytest.approx(mean_interval(np.mean(correct, axis=0), level)[0])
    assert best.low < each[best.candidate].low and best.high == each[best.candidate].high
    assert METRICS[best.candidate].subject in best.sentence


def test_best_accuracy_without_moments_uses_applicable_classifiers():
    one = make_auditor(draw_noisy(1), public=LAPLACE)  # no moments
    applied = [name for name in CLASSIFIERS if one.run_one(name).value]
    assert "knn_accuracy" in applied and "radius_knn_accuracy" not in applied
    (best,) = one.run("best_accuracy")
    level = 1 - 0.05 / len(applied)
    assert best.low == pytest.approx(clopper_pearson(80 * best.value, 80, level)[0])
    assert best.high == pytest.approx(clopper_pearson(80 * best.value, 80, 0.95)[1])


def test_run_accuracy_secret_map_uses_leaked_map():
    M = random_orthogonal(4, rng(20))
    secret = PublicParameters("rotation", "rotated", tuple("abcd"), preserves_distances=True)
    known = replace(secret, centre=np.zeros(4), loadings=M)
    one = make_auditor(make_truth().X)
    one.draws = (ReleaseDraw(make_truth().X @ M, secret, leaked_map=known),)
    found = {score.name: score for score in one.run("knn_accuracy")}
    assert found["knn_accuracy"].value == found["knn_accuracy"].original

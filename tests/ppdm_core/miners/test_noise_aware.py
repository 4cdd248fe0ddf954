"""Classification by class densities from which the noise is removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from threadpoolctl import threadpool_limits

from ppdm_core.miners import noise_aware
from ppdm_core.miners._normal_groups import fit_groups, split_classes
from ppdm_core.miners.noise_aware import NoiseAware
from ppdm_core.miners.radius_knn import RadiusKNN
from studies.classifier_shortfall import compare_classifiers
from tests.support.slow_cases import mark_exhaustive

SPREAD = np.array([[1.0, 0.6], [0.6, 1.0]])
SHIFT = np.array([1.0, -0.5])


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread: more do not pay off on such small tables."""
    with threadpool_limits(limits=1):
        yield


def draw_release(n: int, share: float, b: float, seed: int) -> tuple[np.ndarray, ...]:
    """Return noisy rows and labels, and as many clean records and labels, of two classes."""
    rng = np.random.default_rng(seed)
    label = (rng.random(2 * n) < share).astype(int)
    T = rng.multivariate_normal([0.0, 0.0], SPREAD, 2 * n) + SHIFT * label[:, None]
    Z = T[:n] + rng.laplace(0.0, b, (n, 2))
    return Z, label[:n], T[n:], label[n:]


def compute_truth(T: np.ndarray, share: float) -> np.ndarray:
    """Return the probability of class 1, from the true distribution."""
    W = np.linalg.inv(SPREAD)
    odds = np.log(share / (1 - share)) + T @ W @ SHIFT - 0.5 * SHIFT @ W @ SHIFT
    return np.asarray(1 / (1 + np.exp(-odds)))


def test_noise_aware_probabilities_equal_noise_free_truth() -> None:
    Z, label, T, _ = draw_release(
        20_000, 0.2, 1.5, 1
    )  # noise variance 4.5, four times the records'
    model = NoiseAware(noise_variance=[4.5, 4.5], groups=(1,), shrinkage=(0.05,)).fit(Z, label)
    assert np.abs(model.predict_proba(T)[:, 1] - compute_truth(T, 0.2)).mean() < 0.03
    blind = NoiseAware(groups=(1,), shrinkage=(0.05,)).fit(Z, label)
    assert np.abs(blind.predict_proba(T)[:, 1] - compute_truth(T, 0.2)).mean() > 0.08


def test_noise_aware_equal_prior_shifts_odds() -> None:
    Z, label, T, _ = draw_release(3_000, 0.2, 0.5, 2)
    model = NoiseAware(noise_variance=[0.5, 0.5], groups=(1,)).fit(Z, label)
    shares = model.predict_proba(T)
    equal = model.set_params(prior="equal").predict_proba(T)
    odds = label.mean() / (1 - label.mean())
    found = (shares[:, 1] / shares[:, 0]) / (equal[:, 1] / equal[:, 0])
    assert np.allclose(found, odds)


@pytest.mark.slow
@pytest.mark.parametrize("b", [1.0, 2.0])
def test_noise_aware_small_class_better_than_radius_knn(b: float) -> None:
    gains = []
    for seed in range(5):
        Z, label, T, right = draw_release(600, 0.15, b, 10 + seed)
        ours = NoiseAware(noise_variance=[2 * b**2] * 2, prior="equal").fit(Z, label)
        ball = RadiusKNN(mean=4 * b**2, variance=40 * b**4).fit(Z, label)
        gains.append(
            balanced_accuracy(ours.predict(T), right) - balanced_accuracy(ball.predict(T), right)
        )
    assert np.mean(gains) > 0.1 and np.mean(gains) > 3 * np.std(gains, ddof=1) / np.sqrt(5)


def balanced_accuracy(given: np.ndarray, right: np.ndarray) -> float:
    return float(np.mean([np.mean(given[right == c] == c) for c in np.unique(right)]))


def test_fit_groups_no_noise_equals_discriminant_analysis() -> None:
    rng = np.random.default_rng(3)
    label = rng.integers(0, 3, 4_000)
    T = rng.standard_normal((4_000, 3)) @ rng.standard_normal((3, 3)) + label[:, None]
    (linear,) = fit_groups(T, label, 1, [0.0], 0.0)
    (own,) = fit_groups(T, label, 1, [1.0], 0.0)
    tiny = np.array([1e-12])
    for model, peer in (
        (linear, LinearDiscriminantAnalysis()),
        (own, QuadraticDiscriminantAnalysis()),
    ):
        ln = model.ln_joint(T[:200], tiny, is_noisy=False, equal=False)[0]
        shares = np.exp(ln) / np.exp(ln).sum(axis=1, keepdims=True)
        # Centres and shapes are of 1,300 rows each.
        assert np.abs(shares - peer.fit(T, label).predict_proba(T[:200])).max() < 0.01


def test_ln_densities_with_and_without_noise_equal_scipy() -> None:
    rng = np.random.default_rng(8)
    label = np.repeat([0, 1], [150, 50])
    Z = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) + rng.laplace(0, 0.7, (200, 3))
    (model,) = fit_groups(Z, label, 1, [1.0], 1.0)
    at = np.array([0.3, 0.8])
    for is_noisy in (False, True):
        found = model.ln_densities(Z[:20], at, is_noisy)
        for a, g in ((0, 0), (0, 1), (1, 1)):
            inside = model.spread[g]
            size = (150, 50)[g]
            along = (1 - at[a]) * inside + at[a] * model.typical + (inside + 1) / size
            axes = model.axes[g]
            W = axes @ np.diag(along) @ axes.T + is_noisy * np.eye(3)
            density = multivariate_normal(Z[label == g].mean(axis=0), W)
            expected = density.logpdf(Z[:20]) + 1.5 * np.log(2 * np.pi)
            assert np.allclose(found[a, :, g], expected)


def test_fit_groups_spread_below_noise_uses_sampling_error() -> None:
    Z = 0.1 * np.random.default_rng(9).standard_normal((40, 2))
    (model,) = fit_groups(Z, np.zeros(40, dtype=int), 1, [0.0], 1.0)
    squares = ((Z - Z.mean(axis=0)) ** 2).mean(axis=1)
    assert model.typical == pytest.approx(squares.std() / 40**0.5)


def test_fit_groups_variance_near_noise_at_least_its_error() -> None:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((2_000, 3)) * np.array([3.0, 0.05, 0.05])
    Z = X + rng.laplace(0.0, 0.5**0.5, (2_000, 3))  # noise of variance 1
    (model,) = fit_groups(Z, np.zeros(2_000, dtype=int), 1, [0.0], 1.0)
    error = 5**0.5 / 2_000**0.5  # of a variance of Laplace noise
    assert model.spread[0, :2].tolist() == pytest.approx([error, error], rel=0.2)
    assert model.spread[0, 2] == pytest.approx(9.0, rel=0.1)


def test_split_classes_cloud_narrower_than_noise_not_split() -> None:
    rng = np.random.default_rng(12)
    noise = rng.laplace(0.0, 0.5**0.5, (2_000, 2))  # of variance 1
    cloud = 0.3 * rng.standard_normal((2_000, 2))
    label = np.zeros(2_000, dtype=int)
    assert len(split_classes(cloud + noise, label, 8, 1.0)[1]) == 1
    far = cloud + np.where(rng.random(2_000) < 0.5, 8.0, -8.0)[:, None]
    assert len(split_classes(far + noise, label, 2, 1.0)[1]) == 2
    assert len(split_classes(far + noise, label, 8, 1.0)[1]) == 2
    assert len(split_classes(cloud, label, 8, 0.0)[1]) == 8  # no noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "b", "draw"),
    [("outliers of one class", 0.2, 0), ("rings", 0.2, 0), ("many classes", 0.3, 0)],
)
def test_noise_aware_rare_class_does_not_take_queries(table: str, b: float, draw: int) -> None:
    """Without lower bounds on the variances, noise_aware loses 25 to 60 points here."""
    found = compare_classifiers(table, b, draw)
    assert found.shortfall < 0.05, found
    assert found.below_commonest < 0, found


def draw_rings(n: int, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw two classes, each of two opposite clouds."""
    rng = np.random.default_rng(4)
    corner = rng.integers(0, 4, n)
    centre = np.array([[2.0, 2.0], [-2.0, 2.0], [-2.0, -2.0], [2.0, -2.0]])[corner]
    Z = centre + 0.4 * rng.standard_normal((n, 2)) + rng.laplace(0.0, b, (n, 2))
    return Z, corner % 2


@pytest.mark.extended
def test_noise_aware_separated_clouds_several_groups() -> None:
    clear = NoiseAware(noise_variance=[0.02, 0.02]).fit(*draw_rings(800, 0.1))
    assert clear.setting_.groups >= 2
    corners = [[2.0, 2.0], [-2.0, 2.0], [-2.0, -2.0], [2.0, -2.0]]
    assert clear.predict(corners).tolist() == [0, 1, 0, 1]
    Z, label, _, _ = draw_release(800, 0.5, 1.0, 5)  # one cloud for each class
    assert NoiseAware(noise_variance=[2.0, 2.0]).fit(Z, label).setting_.groups == 1


@pytest.mark.extended
def test_noise_aware_other_units_same_probabilities() -> None:
    Z, label, T, _ = draw_release(500, 0.3, 1.0, 6)
    factor, shift = np.array([1000.0, 0.01]), np.array([5.0, -3.0])
    one = NoiseAware(noise_variance=[2.0, 2.0]).fit(Z, label)
    two = NoiseAware(noise_variance=2.0 * factor**2).fit(Z * factor + shift, label)
    assert one.setting_ == two.setting_
    assert np.allclose(one.predict_proba(T), two.predict_proba(T * factor + shift))


def test_noise_aware_single_row_class_finite_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_aware, "_MAX_TRIAL_ROWS", 40)
    rng = np.random.default_rng(7)
    Z = np.column_stack([rng.standard_normal(60), np.full(60, 3.0)])
    label = np.array([2] + [0, 1] * 29 + [1])
    for model in (NoiseAware(), NoiseAware(noise_variance=[0.1, 0.1])):
        shares = model.fit(Z, label).predict_proba(Z)
        assert np.isfinite(shares).all() and np.allclose(shares.sum(axis=1), 1)


UNBALANCED = (
    "wdbc",
    "ionosphere",
    "breast_cancer_wisconsin",
    "pima",
    "svmguide1_train",
    "magic",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", mark_exhaustive(UNBALANCED, slow=("wdbc", "pima")))
def test_noise_aware_unbalanced_table_better_than_radius_knn(shared_data: Path, name: str) -> None:
    """The claim of docs/mining.md, measured on six of its tables."""
    from studies import classifier_accuracy as mining

    figures = mining.measure_unbalanced_table(name, 0.3, 10, shared_data)
    for other in ("radius", "consistent"):
        for key in ("accuracy", "balanced"):
            mean, error = mining.compute_gain(figures, "noise-aware", other, key)
            assert mean > 2 * error, (other, key)

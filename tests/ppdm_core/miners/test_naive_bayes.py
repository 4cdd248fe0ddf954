"""Naive Bayes with normal columns, and the neural network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from ppdm_core.miners.naive_bayes import NaiveBayes
from ppdm_core.miners.neural_network import NeuralNetwork


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread: more do not pay off on such small tables."""
    with threadpool_limits(limits=1):
        yield


def test_naive_bayes_by_hand() -> None:
    # Class a: mean 1, variance 1; class b: mean 6, variance 4. Priors 1/2.
    model = NaiveBayes().fit([[0.0], [2.0], [4.0], [8.0]], ["a", "a", "b", "b"])
    ln_a = -0.5 * (3.0 - 1.0) ** 2
    ln_b = -0.5 * (3.0 - 6.0) ** 2 / 4.0 - np.log(2.0)
    share = 1 / (1 + np.exp(ln_b - ln_a))
    assert model.predict_proba([[3.0]])[0].tolist() == pytest.approx([share, 1 - share])


def test_naive_bayes_no_floor_equals_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    label = rng.choice(3, 200, p=[0.6, 0.3, 0.1])
    Z = rng.standard_normal((200, 4)) * (1 + label[:, None]) + label[:, None]
    peer = GaussianNB(var_smoothing=0.0).fit(Z, label)
    assert np.allclose(NaiveBayes().fit(Z, label).predict_proba(Z), peer.predict_proba(Z))


def test_naive_bayes_constant_column_does_not_decide() -> None:
    """As the first attribute of Ionosphere: always 1 in one class, nearly always in the other."""
    rng = np.random.default_rng(2)
    label = np.repeat([0, 1], 100)
    flag = np.where((label == 1) & (rng.random(200) < 0.1), 0.0, 1.0)
    Z = np.column_stack([flag, rng.standard_normal(200) + 4 * label, np.full(200, 7.0)])
    model = NaiveBayes().fit(Z, label)
    assert model.predict([[1.0, 4.0, 7.0]]).tolist() == [1]
    assert model.predict([[1.0, 4.0, 9.0]]).tolist() == [1]  # a column without information
    assert GaussianNB().fit(Z[:, :2], label).predict([[1.0, 4.0]]).tolist() == [0]  # no such floor


def test_naive_bayes_noise_subtracted() -> None:
    """Classes of the same mean and different spread, in noise that hides the difference."""
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 20_000)
    T = rng.standard_normal((20_000, 1)) * np.where(label, 2.0, 0.5)[:, None]
    Z = T + rng.laplace(0.0, 2.0, T.shape)  # variance 8
    model = NaiveBayes(noise_variance=[8.0]).fit(Z, label)
    # Clean densities 0.5 and 2 wide cross where 1.875 x^2 = ln 4.
    edge = np.sqrt(np.log(4.0) / 1.875)
    assert model.predict([[0.8 * edge], [-0.8 * edge], [1.25 * edge]]).tolist() == [0, 0, 1]
    assert NaiveBayes().fit(Z, label).predict([[1.25 * edge]]).tolist() == [0]


def test_naive_bayes_few_noisy_rows_not_overconfident() -> None:
    """Subtracting more than the variance must not leave almost none."""
    rng = np.random.default_rng(4)
    label = np.repeat([0, 1], 10)
    Z = rng.standard_normal((20, 1)) + label[:, None]
    share = NaiveBayes(noise_variance=[4.0]).fit(Z, label).predict_proba([[0.5]])
    assert share.min() > 0.05


def test_neural_network_xor_learned() -> None:
    rng = np.random.default_rng(5)
    Z = rng.uniform(-1, 1, (400, 2)) * [1.0, 1000.0]
    label = (Z[:, 0] > 0) ^ (Z[:, 1] > 0)
    model = NeuralNetwork().fit(Z, label)
    assert model.score(Z, label) > 0.95
    again = NeuralNetwork().fit(Z, label)
    assert np.array_equal(model.predict_proba(Z), again.predict_proba(Z))

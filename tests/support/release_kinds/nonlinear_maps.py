"""Maps of records without noise that are not linear, in columns of the same or of other names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import (
    find_nearest,
    learn_linear,
    place_by_rank,
    scale_with,
)
from tests.support.release_kinds.classic import draw_rotation, standardize
from tests.support.release_kinds.kinds import Family, Kind
from tests.support.release_kinds.proofs import Proof, View

MAPS: Family = "nonlinear maps"


def mix(X: Floats, rng: np.random.Generator, outputs: int) -> Floats:
    """Return random linear combinations of the standardized columns, of deviation about 1."""
    Z = standardize(X)
    return np.asarray(Z @ rng.standard_normal((Z.shape[1], outputs)) / Z.shape[1] ** 0.5)


def apply_logistic(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the logistic function of random combinations, one for each column."""
    return np.asarray(expit(mix(X, rng, X.shape[1])))


def apply_exponential(X: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(np.exp(mix(X, rng, X.shape[1])))


def recover_after(inverse: Callable[[Floats], Floats]) -> Proof:
    """Return a proof that inverts the function of each cell, and then a linear map."""

    def recover(view: View) -> Floats:
        T = inverse(view.Y)
        return learn_linear(T[view.rows], view.known, T)

    return Proof("60 known pairs", "recover", recover)


def apply_softmax(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the shares of the exponentials of the standardized values in their sum."""
    E = np.exp(np.clip(standardize(X), -8, 8))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def link_ratios(view: View) -> Ints:
    """Link by the logarithms of ratios, which are differences of standardized values."""
    centre, unit = scale_with(view)
    Z, T = np.clip((view.persons - centre) / unit, -8, 8), np.log(view.Y)
    return find_nearest(*(A - A.mean(axis=1, keepdims=True) for A in (Z, T)))


def apply_network(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the outputs of a network with two hidden layers and random weights."""
    d = X.shape[1]
    H = np.tanh(mix(X, rng, 4 * d) + 0.3 * rng.standard_normal(4 * d))
    H = np.tanh(H @ rng.standard_normal((4 * d, 4 * d)) / (4 * d) ** 0.5)
    return np.asarray(H @ rng.standard_normal((4 * d, d)))


def apply_polynomial(X: Floats, rng: np.random.Generator) -> Floats:
    """Return random combinations of all values, squares and products of a record."""
    Z = np.clip(standardize(X), -4, 4)
    i, j = np.triu_indices(Z.shape[1])
    features = np.hstack([Z, 0.3 * Z[:, i] * Z[:, j] / len(i) ** 0.5])
    weights = rng.standard_normal((features.shape[1], X.shape[1] + 2))
    return np.asarray(features @ weights)


def apply_waves(X: Floats, rng: np.random.Generator) -> Floats:
    """Return cosines of random combinations, twice as many as columns."""
    s = 2 * X.shape[1]
    return np.asarray(np.cos(0.7 * mix(X, rng, s) + rng.uniform(0, 2 * np.pi, s)))


def measure_landmarks(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the distances of a record from random points."""
    Z = standardize(X)
    points = rng.standard_normal((Z.shape[1] + 3, Z.shape[1]))
    return np.asarray(np.linalg.norm(Z[:, None] - points, axis=2))


def recover_from_landmarks(view: View) -> Floats:
    """Differences of squared distances are linear in the record."""
    S = view.Y**2
    T = S[:, 1:] - S[:, :1]
    return learn_linear(T[view.rows], view.known, T)


def rotate_normal_scores(X: Floats, rng: np.random.Generator) -> Floats:
    """Rotate the normal scores of the ranks."""
    scores = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    return np.asarray(scores @ draw_rotation(X.shape[1], rng))


def link_normal_scores(view: View) -> Ints:
    """Learn the rotation of the normal scores from the known pairs, and link."""
    everyone = np.vstack([view.persons, view.known])
    scores = norm.ppf(place_by_rank(everyone) - 0.5 / len(everyone))
    t = len(view.persons)
    return find_nearest(learn_linear(scores[t:], view.Y[view.rows], scores[:t]), view.Y)


def square_pairs(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the squares of two columns as one complex number; an odd last column is squared."""
    Z = standardize(X)
    pairs = Z.shape[1] // 2
    a, b = Z[:, 0 : 2 * pairs : 2], Z[:, 1 : 2 * pairs : 2]
    rest = Z[:, 2 * pairs :] ** 2
    return np.hstack([a * a - b * b, 2 * a * b, rest])


def link_squares(view: View) -> Ints:
    """Compute the squares of each person."""
    centre, unit = scale_with(view)
    Z = (view.persons - centre) / unit
    pairs = Z.shape[1] // 2
    a, b = Z[:, 0 : 2 * pairs : 2], Z[:, 1 : 2 * pairs : 2]
    return find_nearest(np.hstack([a * a - b * b, 2 * a * b, Z[:, 2 * pairs :] ** 2]), view.Y)


def predict_smoothly(Zk: Floats, Yk: Floats, Z: Floats) -> Floats:
    """Return the mean of a Gaussian process whose kernel has a linear and a smooth part."""

    def compare(A: Floats, B: Floats) -> Floats:
        d = A.shape[1]
        near = np.exp(-0.5 * cdist(A, B, "sqeuclidean") / (2 * d))
        return np.asarray(1.0 + A @ B.T / d + near)

    centre = Yk.mean(axis=0)
    weights = np.linalg.solve(compare(Zk, Zk) + 1e-3 * np.eye(len(Zk)), Yk - centre)
    return np.asarray(centre + compare(Z, Zk) @ weights)


def link_learned(view: View) -> Ints:
    """Learn the map from the known pairs, and link what it predicts.

    Directions of the rows count by how well pairs that were left out are predicted.
    """
    centre, unit = scale_with(view)
    Z, Zk = (view.persons - centre) / unit, (view.known - centre) / unit
    Yk = view.Y[view.rows]
    half, scale = len(Zk) // 2, Yk.std(axis=0) + 1e-300
    error = np.vstack(
        [
            predict_smoothly(Zk[:half], Yk[:half], Zk[half:]) - Yk[half:],
            predict_smoothly(Zk[half:], Yk[half:], Zk[:half]) - Yk[:half],
        ]
    )
    S = np.cov((error / scale).T)
    S = 0.5 * (S + np.diag(np.diag(S))) + 1e-6 * np.eye(len(S))  # few pairs: shrink
    W = np.linalg.inv(np.linalg.cholesky(S)).T / scale[:, None]
    return find_nearest(predict_smoothly(Zk, Yk, Z) @ W, view.Y @ W)


LEARNED = Proof("60 known pairs", "link", link_learned)
LOGISTIC = recover_after(partial(logit))
NONLINEAR_MAPS = (
    Kind("logistic map", MAPS, apply_logistic, LOGISTIC),
    Kind("logistic map, own columns", MAPS, apply_logistic, LOGISTIC, columns="own"),
    Kind("exponential map", MAPS, apply_exponential, recover_after(np.log), columns="own"),
    Kind("softmax", MAPS, apply_softmax, Proof("full records", "link", link_ratios), columns="own"),
    Kind("neural network", MAPS, apply_network, LEARNED),
    Kind("neural network, own columns", MAPS, apply_network, LEARNED, columns="own"),
    Kind("polynomials", MAPS, apply_polynomial, LEARNED, columns="own"),
    Kind("cosines", MAPS, apply_waves, LEARNED, columns="own"),
    Kind(
        "distances from landmarks",
        MAPS,
        measure_landmarks,
        Proof("60 known pairs", "recover", recover_from_landmarks),
        columns="own",
    ),
    Kind(
        "rotated normal scores",
        MAPS,
        rotate_normal_scores,
        Proof("60 known pairs", "link", link_normal_scores),
        columns="own",
    ),
    Kind(
        "squares of complex pairs",
        MAPS,
        square_pairs,
        Proof("full records", "link", link_squares),
        columns="own",
    ),
)

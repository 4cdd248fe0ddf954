"""Maps without noise that are not linear, in the original columns or in columns of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import (
    find_nearest,
    learn_linear,
    link_ranks,
    place_by_rank,
    scale_with,
)
from tests.support.release_kinds.classic import draw_rotation, standardize
from tests.support.release_kinds.kinds import Family, Kind, Make
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


def bend(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a piecewise linear, increasing function of each column with random slopes."""
    Y = np.empty_like(X)
    for j, x in enumerate(X.T):
        knots = np.unique(np.quantile(x, [0, 0.2, 0.4, 0.6, 0.8, 1]))
        heights = np.cumsum(np.append(0.0, rng.uniform(0.2, 5, len(knots) - 1)))
        Y[:, j] = np.interp(x, knots, heights)
    return Y


def fold(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the distance of each value from a random point inside its column."""
    return np.abs(standardize(X) - rng.uniform(-0.5, 0.5, X.shape[1]))


def link_folded(view: View) -> Ints:
    """Find the point of each column that explains the known pairs, and link by the distance."""
    centre, unit = scale_with(view)
    Z, Zk, Yk = (view.persons - centre) / unit, (view.known - centre) / unit, view.Y[view.rows]
    points = np.linspace(-0.6, 0.6, 1201)
    error = np.abs(np.abs(Zk[:, :, None] - points) - Yk[:, :, None]).mean(axis=0)  # (d, points)
    return find_nearest(np.abs(Z - points[error.argmin(axis=1)]), view.Y)


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
    return np.cos(0.7 * mix(X, rng, s) + rng.uniform(0, 2 * np.pi, s))


def measure_landmarks(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the distances of a record from random points."""
    Z = standardize(X)
    points = rng.standard_normal((Z.shape[1] + 3, Z.shape[1]))
    return np.linalg.norm(Z[:, None] - points, axis=2)


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


def link_learned(view: View, length: float = 1.0) -> Ints:
    """Learn the map by Gaussian processes from the known pairs, and link what it predicts.

    Components of the rows count by how well pairs that were left out are predicted.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    centre, unit = scale_with(view)
    Z, Zk = (view.persons - centre) / unit, (view.known - centre) / unit
    Yk = view.Y[view.rows]
    scale = Yk.std(axis=0) + 1e-300
    kernel = (
        ConstantKernel(1.0) * DotProduct()
        + ConstantKernel(1.0) * RBF(length * Z.shape[1] ** 0.5)
        + WhiteKernel(1e-2)
    )
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    half = len(Zk) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = np.vstack(
            [
                model.fit(Zk[:half], Yk[:half]).predict(Zk[half:]) - Yk[half:],
                model.fit(Zk[half:], Yk[half:]).predict(Zk[:half]) - Yk[:half],
            ]
        )
        predicted = model.fit(Zk, Yk).predict(Z)
    S = np.cov((error / scale).T)
    S = 0.5 * (S + np.diag(np.diag(S))) + 1e-6 * np.eye(len(S))  # few pairs: shrink
    W = np.linalg.inv(np.linalg.cholesky(S)).T / scale[:, None]
    return find_nearest(predicted @ W, view.Y @ W)


def by_column(function: Callable[[Floats], Floats]) -> Make:
    return lambda X, rng: np.asarray(function(standardize(X)))


RANKS = Proof("full records", "link", link_ranks)
LEARNED = Proof("60 known pairs", "link", link_learned)
LOGISTIC = recover_after(partial(logit))
NONLINEAR_MAPS = (
    Kind("tanh", MAPS, by_column(np.tanh), RANKS),
    Kind("cubes", MAPS, by_column(lambda Z: Z**3), RANKS),
    Kind("cubes, own columns", MAPS, by_column(lambda Z: Z**3), RANKS, columns="own"),
    Kind("bent columns", MAPS, bend, RANKS),
    Kind("folded columns", MAPS, fold, Proof("60 known pairs", "link", link_folded)),
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

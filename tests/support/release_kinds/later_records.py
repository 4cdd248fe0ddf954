"""Whole records in disguise: a few of them, or all of them with small changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import count_equal_cells, link_surely, link_values
from tests.support.release_kinds.channels import HIDDEN, find_step
from tests.support.release_kinds.classic import CLOSEST, standardize
from tests.support.release_kinds.few_persons import choose_any, count_exposed
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.later_noise import place_in_range
from tests.support.release_kinds.later_pairs import choose_partners
from tests.support.release_kinds.noise_holes import link_rare_equal_cells
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.row_invariants import find_direction
from tests.support.release_kinds.safe import draw_fitted_normal

Change = Callable[[Floats, np.random.Generator], Floats]  # of standardized records


def disguise_few(name: str, change: Change, undo: Callable[[Floats], Floats]) -> Kind:
    """Return a fitted normal with a few records that are changed.

    ``undo`` gives the same for a standardized record before and after the change.
    """

    def make(X: Floats, rng: np.random.Generator) -> Floats:
        Y, some = draw_fitted_normal(X, rng), choose_any(X, rng, count_exposed(0.03, len(X)))
        Y[some] = X.mean(axis=0) + X.std(axis=0) * change(standardize(X)[some], rng)
        return Y

    def link(view: View) -> tuple[Ints, Floats]:
        centre, unit = view.persons.mean(axis=0), view.persons.std(axis=0) + 1e-300
        return link_surely(undo((view.persons - centre) / unit), undo((view.Y - centre) / unit))

    return Kind(name, "few persons", make, Proof("full records", "link the surest", link))


def spread_few(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a fitted normal with a few records in three rows each, a third of each in a row."""
    Y, some = draw_fitted_normal(X, rng), choose_any(X, rng, count_exposed(0.03, len(X)))
    for k in range(3):
        rows = (some + k * rng.integers(1, len(X), len(some))) % len(X)
        Y[rows, k::3] = X[some, k::3]
    return Y


def link_first_third(view: View) -> tuple[Ints, Floats]:
    """Link to the row with the most equal cells in every third column."""
    count = count_equal_cells(view.persons[:, ::3], view.Y[:, ::3])
    return np.asarray(count.argmax(axis=1)), count.max(axis=1).astype(float)


def hide_few(X: Floats, rng: np.random.Generator) -> Floats:
    """Write a few records below the last digit of harmless values, and noise in all others."""
    place, step = rng.random(X.shape), find_step(X)
    some = choose_any(X, rng, count_exposed(0.03, len(X)))
    place[some] = place_in_range(X)[some]
    return np.asarray((np.round(draw_fitted_normal(X, rng) / step) + HIDDEN * place) * step)


def link_hidden(view: View) -> tuple[Ints, Floats]:
    number = view.Y / find_step(view.persons)
    return link_surely(place_in_range(view.persons), (number - np.round(number)) / HIDDEN)


def find_neighbour(X: Floats) -> Ints:
    Z = standardize(X)
    return np.asarray((cdist(Z, Z) + np.diag(np.full(len(Z), np.inf))).argmin(axis=1))


def interpolate(X: Floats, rng: np.random.Generator) -> Floats:
    """Move each record a little towards its nearest neighbour, and shuffle."""
    weight = rng.uniform(0, 0.3, (len(X), 1))
    return rng.permutation(X + weight * (X[find_neighbour(X)] - X))


def resample_one_cell(X: Floats, rng: np.random.Generator) -> Floats:
    """Replace one cell of each record by that of another one, and shuffle."""
    Y, cell = X.copy(), rng.integers(0, X.shape[1], len(X))
    Y[np.arange(len(X)), cell] = X[rng.permutation(len(X)), cell]
    return rng.permutation(Y)


def mix_with_drawn(X: Floats, rng: np.random.Generator) -> Floats:
    """Return half of the records among as many drawn rows, in random order."""
    half = rng.permutation(X)[: (len(X) + 1) // 2]
    return rng.permutation(np.vstack([half, draw_fitted_normal(X, rng)[: len(X) // 2]]))


def cross(X: Floats, rng: np.random.Generator) -> Floats:
    """Return rows with two thirds of the columns of one record, the others of another, shuffled."""
    own = rng.permuted(np.tile(np.arange(X.shape[1]) % 3 < 2, (len(X), 1)), axis=1)
    return rng.permutation(np.where(own, X, rng.permutation(X)))


def score_equal_cells(view: View) -> Floats:
    """Score persons by the equal cells of one row, of which rare values count more."""
    score = np.zeros((len(view.persons), len(view.Y)))
    for x, y in zip(view.persons.T, view.Y.T, strict=True):
        same = x[:, None] == y
        score += same * np.log(len(y) / np.maximum(same.sum(axis=1, keepdims=True), 1))
    return np.asarray(score.max(axis=1))


def exchange_half(X: Floats, rng: np.random.Generator) -> Floats:
    """Exchange half of the cells of each record with a random partner."""
    n, d = X.shape
    partner = choose_partners(n, rng)
    moved = rng.permuted(np.tile(np.arange(d) < d // 2, (n, 1)), axis=1)
    second = partner > np.arange(n)
    moved[second] = moved[partner[second]]
    return np.where(moved & (partner >= 0)[:, None], X[partner], X)


def suppress_cells(X: Floats, rng: np.random.Generator) -> Floats:
    """Leave four cells of ten empty, and all others as they are."""
    return np.where(rng.random(X.shape) < 0.4, np.nan, X)


def code_tails(X: Floats, rng: np.random.Generator) -> Floats:
    """Replace the largest and the least tenth of each column by its limit."""
    return np.clip(X, *np.quantile(X, [0.1, 0.9], axis=0))


EQUAL_CELLS = Proof("full records", "link", link_rare_equal_cells)
LATER_RECORDS = (
    disguise_few("3 % with the sign changed", lambda Z, rng: -Z, np.abs),
    disguise_few(
        "3 % shuffled within the record",
        lambda Z, rng: rng.permuted(Z, axis=1),
        lambda Z: np.sort(Z, axis=1),
    ),
    disguise_few(
        "3 % scaled by a factor",
        lambda Z, rng: Z * np.exp(rng.standard_normal((len(Z), 1))),
        find_direction,
    ),
    Kind(
        "3 % spread over three rows",
        "few persons",
        spread_few,
        Proof("full records", "link the surest", link_first_third),
    ),
    Kind(
        "low decimals of 3 %",
        "few persons",
        hide_few,
        Proof("full records", "link the surest", link_hidden),
    ),
    Kind("moved towards a neighbour", "classic", interpolate, CLOSEST, aligned=False),
    Kind(
        "one cell resampled",
        "classic",
        resample_one_cell,
        Proof("full records", "find members", score_equal_cells),
        aligned=False,
    ),
    Kind("half verbatim, half drawn", "classic", mix_with_drawn, CLOSEST, aligned=False),
    Kind(
        "two records crossed",
        "classic",
        cross,
        Proof("full records", "find members", score_equal_cells),
        aligned=False,
    ),
    Kind("half of the cells exchanged", "classic", exchange_half, EQUAL_CELLS),
    Kind("four cells of ten empty", "classic", suppress_cells, EQUAL_CELLS),
    Kind("tails coded", "classic", code_tails, Proof("full records", "link", link_values)),
)

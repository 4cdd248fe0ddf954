"""Kinds that were invented after all checks were built."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import (
    find_nearest,
    learn_linear,
    link_in_order,
    link_surely,
    recover_linear,
    scale_with,
)
from tests.support.release_kinds.channels import CHANNELS, order_by
from tests.support.release_kinds.few_persons import choose_any, count_exposed
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.noise_holes import DEVIATIONS, HOLES
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.safe import draw_fitted_normal

STEP = 1.0  # of noise that is a multiple of a deviation


def standardise(A: Floats, view: View) -> Floats:
    centre, unit = scale_with(view)
    return np.asarray((A - centre) / unit)


def scale_back(Z: Floats, X: Floats) -> Floats:
    return np.asarray(X.mean(axis=0) + X.std(axis=0) * Z)


def get_scaled(X: Floats) -> Floats:
    return np.asarray((X - X.mean(axis=0)) / (X.std(axis=0) + 1e-300))


def link_remainders(view: View) -> Ints:
    """Compare values modulo one deviation, on circles."""
    turn = 2j * np.pi / STEP
    persons, rows = (np.exp(turn * A / scale_with(view)[1]) for A in (view.persons, view.Y))
    return np.asarray((persons.conj() @ rows.T).real.argmax(axis=1))


def add_whole_steps(X: Floats, rng: np.random.Generator) -> Floats:
    """Add a multiple of each column's deviation, drawn for each cell."""
    unit = X.std(axis=0) * STEP
    return np.asarray(X + unit * rng.integers(-8, 9, X.shape))


def repeat_noise_in_columns(X: Floats, rng: np.random.Generator) -> Floats:
    """Add the noise of a row to all its columns but the first, with alternating signs."""
    noise = DEVIATIONS * rng.standard_normal((len(X), 1)) * (-1.0) ** np.arange(X.shape[1])
    noise[:, 0] = DEVIATIONS * rng.standard_normal(len(X))
    return scale_back(get_scaled(X) + noise, X)


def link_alternating_sums(view: View) -> Ints:
    """Add each column to the next one: the noise of both is opposite."""

    def add(A: Floats) -> Floats:
        Z = standardise(A, view)
        return np.asarray(Z[:, 1:-1] + Z[:, 2:])

    return find_nearest(add(view.persons), add(view.Y))


def scale_rows_apart(X: Floats, rng: np.random.Generator) -> Floats:
    """Multiply all values of a row by a secret factor and turn a sign of all."""
    factor = np.exp(2.0 * rng.standard_normal((len(X), 1))) * rng.choice([-1.0, 1.0], (len(X), 1))
    return scale_back(get_scaled(X) * factor, X)


def link_lines(view: View) -> Ints:
    """Compare the directions of rows, whatever their sign is."""
    A, B = (standardise(each, view) for each in (view.persons, view.Y))
    A, B = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (A, B))
    return np.asarray(np.abs(A @ B.T).argmax(axis=1))


def rotate_places(X: Floats, rng: np.random.Generator) -> Floats:
    """Rotate the columns of each row by a secret number of places."""
    Z, moves = get_scaled(X), rng.integers(1, X.shape[1], len(X))
    place = (np.arange(X.shape[1]) + moves[:, None]) % X.shape[1]
    return scale_back(np.take_along_axis(Z, place, axis=1), X)


def link_spectra(view: View) -> Ints:
    """Compare the sizes of Fourier coefficients, which a rotation of places does not change."""
    A, B = (np.abs(np.fft.rfft(standardise(each, view))) for each in (view.persons, view.Y))
    return find_nearest(A, B)


def reverse_few(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a fitted normal with a few records whose columns are in the reversed order."""
    Y, some = draw_fitted_normal(X, rng), choose_any(X, rng, count_exposed(0.03, len(X)))
    Y[some] = scale_back(get_scaled(X)[some, ::-1], X)
    return Y


def link_reversed(view: View) -> tuple[Ints, Floats]:
    A, B = (standardise(each, view) for each in (view.persons, view.Y))
    return link_surely(A[:, ::-1], B)


def copy_elsewhere_with_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Write the record of each row, slightly changed, into the row seven places further."""
    unit = X.std(axis=0)
    return np.roll(X + 0.02 * unit * rng.standard_normal(X.shape), 7, axis=0)


def link_values(view: View) -> Ints:
    A, B = (standardise(each, view) for each in (view.persons, view.Y))
    return find_nearest(A, B)


def cube(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the cubes of secret mixtures of the columns."""
    M = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))[0]
    return np.asarray((get_scaled(X) @ M) ** 3)


def recover_cubes(view: View) -> Floats:
    roots = np.cbrt(view.Y)
    return learn_linear(roots[view.rows], view.known, roots)


def sum_running(X: Floats, rng: np.random.Generator) -> Floats:
    """Return running sums over the columns of each row, in a secret order of the columns."""
    return np.asarray(np.cumsum(get_scaled(X)[:, rng.permutation(X.shape[1])], axis=1))


def spare_small_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Add strong noise whose size is nearly zero for one row in eight, at random."""
    size = np.where(rng.random((len(X), 1)) < 0.125, 0.01, 3.0 * DEVIATIONS)
    return scale_back(get_scaled(X) + size * rng.standard_normal(X.shape), X)


def link_closest(view: View) -> tuple[Ints, Floats]:
    A, B = (standardise(each, view) for each in (view.persons, view.Y))
    return link_surely(A, B)


def add_common_noise(X: Floats, rng: np.random.Generator) -> Floats:
    """Add the same vector of strong noise to ten rows in turn."""
    noise = DEVIATIONS * rng.standard_normal((-(-len(X) // 10), X.shape[1]))
    return scale_back(get_scaled(X) + np.repeat(noise, 10, axis=0)[: len(X)], X)


def link_differences_in_blocks(view: View) -> Ints:
    """Find two persons whose difference is that of adjacent rows."""
    A, B = (standardise(each, view) for each in (view.persons, view.Y))
    weights = np.random.default_rng(0).standard_normal(A.shape[1])
    a, b = A @ weights, B @ weights
    i, j = np.nonzero(~np.eye(len(a), dtype=bool))
    gaps = a[i] - a[j]
    order = np.argsort(gaps, kind="stable")
    links = np.zeros(len(a), dtype=np.int64)
    for row in range(len(b) - 1):
        wanted = b[row + 1] - b[row]
        at = min(int(np.searchsorted(gaps[order], wanted - 1e-9)), len(order) - 1)
        if abs(gaps[order[at]] - wanted) < 2e-9:
            links[i[order[at]]], links[j[order[at]]] = row + 1, row
    return links


def find_spread(X: Floats) -> Floats:
    """Return the distance of each record from the median record."""
    Z = get_scaled(X)
    return np.asarray(np.abs(Z - np.median(Z, axis=0)).sum(axis=1))


def sort_by_spread(X: Floats, rng: np.random.Generator) -> Floats:
    """Sort weakly perturbed rows by how unusual their record is."""
    order = order_by(find_spread)(X)
    return scale_back(get_scaled(X)[order] + 0.5 * rng.standard_normal(X.shape), X)


def link_by_spread(view: View) -> Ints:
    return link_in_order(find_spread(view.persons), np.arange(len(view.Y)).astype(float))


def measure_from_points(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the logarithms of the distances from secret points."""
    Z, points = get_scaled(X), 2.0 * rng.standard_normal((X.shape[1], X.shape[1]))
    return np.asarray(np.log(cdist(Z, points)))


def recover_from_points(view: View) -> Floats:
    """Squared distances are linear in the record and its squared length; pairs teach the map."""
    squares = np.exp(2.0 * view.Y)
    gaps = squares - squares.mean(axis=1, keepdims=True)  # without the squared length
    return learn_linear(gaps[view.rows], view.known, gaps)


def draw_factors(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a factor for each row, of any sign and of very different sizes."""
    return np.asarray(np.exp(2.0 * rng.standard_normal(len(X))) * rng.choice([-1.0, 1.0], len(X)))


def add_noise_to_others(X: Floats, rng: np.random.Generator) -> Floats:
    """Return strong noise on all columns but the first two."""
    Y = scale_back(get_scaled(X) + DEVIATIONS * rng.standard_normal(X.shape), X)
    Y[:, :2] = X[:, :2]
    return Y


def keep_ratio(X: Floats, rng: np.random.Generator) -> Floats:
    """Multiply the first two values of a row by one factor, and add noise to the others."""
    Y, factor = add_noise_to_others(X, rng), draw_factors(X, rng)
    Y[:, 0] *= factor
    Y[:, 1] *= factor
    return Y


def link_ratios(view: View) -> Ints:
    def measure(A: Floats) -> Floats:
        return np.arctan(A[:, :1] / np.where(A[:, 1:2] == 0, 1e-300, A[:, 1:2]))

    return find_nearest(measure(view.persons), measure(view.Y))


def keep_product(X: Floats, rng: np.random.Generator) -> Floats:
    """Multiply the first value of a row by a factor by which the second is divided."""
    Y, factor = add_noise_to_others(X, rng), draw_factors(X, rng)
    Y[:, 0] *= factor
    Y[:, 1] /= factor
    return Y


def link_products(view: View) -> Ints:
    return find_nearest(*(A[:, :1] * A[:, 1:2] for A in (view.persons, view.Y)))


def keep_length_of_two(X: Floats, rng: np.random.Generator) -> Floats:
    """Turn the first two values of a row by a secret angle, and add noise to the others."""
    Y, Z, angle = add_noise_to_others(X, rng), get_scaled(X), rng.uniform(0, 2 * np.pi, len(X))
    cos, sin = np.cos(angle), np.sin(angle)
    turned = np.column_stack([cos * Z[:, 0] - sin * Z[:, 1], sin * Z[:, 0] + cos * Z[:, 1]])
    Y[:, :2] = scale_back(turned, X[:, :2])
    return Y


def link_lengths_of_two(view: View) -> Ints:
    return find_nearest(
        *(
            np.linalg.norm(standardise(A, view)[:, :2], axis=1, keepdims=True)
            for A in (view.persons, view.Y)
        )
    )


def full(attack: Callable[[View], Ints]) -> Proof:
    return Proof("full records", "link", attack)


def few(attack: Callable[[View], tuple[Ints, Floats]]) -> Proof:
    return Proof("full records", "link the surest", attack)


def pairs(attack: Callable[[View], Floats]) -> Proof:
    return Proof("60 known pairs", "recover", attack)


NEWEST_KINDS = (
    Kind("noise in whole deviations", HOLES, add_whole_steps, full(link_remainders)),
    Kind("noise of alternating sign", HOLES, repeat_noise_in_columns, full(link_alternating_sums)),
    Kind("noise shared by ten rows", HOLES, add_common_noise, full(link_differences_in_blocks)),
    Kind("rows times a secret factor", "invariants of a row", scale_rows_apart, full(link_lines)),
    Kind("columns of each row rotated", "invariants of a row", rotate_places, full(link_spectra)),
    Kind("ratio of two columns kept", "invariants of a row", keep_ratio, full(link_ratios)),
    Kind("product of two columns kept", "invariants of a row", keep_product, full(link_products)),
    Kind(
        "length of two columns kept",
        "invariants of a row",
        keep_length_of_two,
        full(link_lengths_of_two),
    ),
    Kind("3 % with reversed columns", "few persons", reverse_few, few(link_reversed)),
    Kind("one row in eight without noise", "few persons", spare_small_noise, few(link_closest)),
    Kind(
        "records seven rows further",
        "classic",
        copy_elsewhere_with_noise,
        full(link_values),
        find_source=lambda X: np.roll(np.arange(len(X)), 7),
    ),
    Kind("running sums over columns", "classic", sum_running, pairs(recover_linear)),
    Kind("cubes of mixtures", "nonlinear maps", cube, pairs(recover_cubes)),
    Kind(
        "logarithms of distances", "nonlinear maps", measure_from_points, pairs(recover_from_points)
    ),
    Kind(
        "rows sorted by how unusual they are",
        CHANNELS,
        sort_by_spread,
        full(link_by_spread),
        aligned=False,
        find_source=order_by(find_spread),
    ),
)

"""Something of each record that its row keeps: an order, a spectrum, a plane, digits, gaps."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import find_nearest, link_values
from tests.support.release_kinds.channels import (
    CHANNELS,
    LEVELS,
    find_level,
    find_secret,
    find_step,
    make_sorted,
)
from tests.support.release_kinds.classic import standardize
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.later_noise import find_large, place_in_range
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.row_invariants import INVARIANTS, apply_scaled, link_by
from tests.support.release_kinds.safe import draw_fitted_normal

PILES = 10  # into which sorted rows are dealt
BITS = 4  # of each column on the curve


def keep_order(Z: Floats, rng: np.random.Generator) -> Floats:
    """Return normal numbers in the order of the values of each record."""
    ranks = rankdata(Z, axis=1, method="ordinal") - 1
    return np.take_along_axis(np.sort(rng.standard_normal(Z.shape), axis=1), ranks, axis=1)


def rank_within(Z: Floats) -> Floats:
    return np.asarray(rankdata(Z, axis=1, method="ordinal"))


def keep_signs(X: Floats, rng: np.random.Generator) -> Floats:
    """Return random magnitudes, positive where the original is above its median."""
    return np.abs(rng.standard_normal(X.shape)) * np.where(find_large(X), 1.0, -1.0)


def link_signs(view: View) -> Ints:
    return find_nearest(find_large(view.persons), view.Y > 0)


def turn_phases(Z: Floats, rng: np.random.Generator) -> Floats:
    """Draw the phases of the Fourier transform of each record, and keep its magnitudes."""
    n, d = Z.shape
    spectrum = np.fft.rfft(Z, axis=1)
    phase = rng.uniform(0, 2 * np.pi, spectrum.shape)
    real = [0, -1] if d % 2 == 0 else [0]  # coefficients of a real signal that have only a sign
    phase[:, real] = np.pi * rng.integers(0, 2, (n, len(real)))
    return np.asarray(np.fft.irfft(spectrum * np.exp(1j * phase), d, axis=1))


def find_magnitudes(Z: Floats) -> Floats:
    return np.abs(np.fft.rfft(Z, axis=1))


def scale_and_shift(Z: Floats, rng: np.random.Generator) -> Floats:
    """Multiply each record by a random factor, and add a random number to all its cells."""
    factor, shift = np.exp(1.5 * rng.standard_normal((len(Z), 1))), rng.normal(0, 5, (len(Z), 1))
    return np.asarray(factor * Z + shift)


def standardize_within(Z: Floats) -> Floats:
    Z = Z - Z.mean(axis=1, keepdims=True)
    return np.asarray(Z / (np.linalg.norm(Z, axis=1, keepdims=True) + 1e-300))


def mix_halves(Z: Floats, rng: np.random.Generator) -> Floats:
    """Replace two halves of each record by random combinations; noise in an odd last column."""
    n, d = Z.shape
    M = Z[:, : d // 2 * 2].reshape(n, 2, d // 2)
    mixed = (rng.standard_normal((n, 2, 2)) @ M).reshape(n, -1)
    return np.hstack([mixed, rng.standard_normal((n, d % 2))])


def find_plane(Z: Floats) -> Floats:
    """Return the projection on the plane that the two halves of each record span."""
    n, d = Z.shape
    V = np.linalg.svd(Z[:, : d // 2 * 2].reshape(n, 2, d // 2), full_matrices=False)[2]
    return np.asarray((V.transpose(0, 2, 1) @ V).reshape(n, -1))


def exchange_factors(X: Floats, rng: np.random.Generator) -> Floats:
    """Multiply one of two columns and divide the other by a random factor for each record."""
    logs = np.log(place_in_range(X) + 0.1)
    pairs = X.shape[1] // 2
    shift = 2 * rng.standard_normal((len(X), pairs))
    logs[:, 0 : 2 * pairs : 2] += shift
    logs[:, 1 : 2 * pairs : 2] -= shift
    logs[:, 2 * pairs :] = rng.standard_normal((len(X), X.shape[1] % 2))
    return np.exp(logs)


def link_products(view: View) -> Ints:
    """Link by the logarithms of the products of two columns."""
    logs = (np.log(np.abs(A) + 1e-9) for A in (place_in_range(view.persons) + 0.1, view.Y))
    pairs = view.Y.shape[1] // 2
    return find_nearest(*(A[:, 0 : 2 * pairs : 2] + A[:, 1 : 2 * pairs : 2] for A in logs))


def hide_in_decimals(X: Floats, rng: np.random.Generator) -> Floats:
    """Round harmless values to as many decimals as the original has eighths below it."""
    scale = 10.0 ** find_level(X)
    number = np.round(draw_fitted_normal(X, rng) / find_step(X) * scale)
    return np.asarray((number + (number % 10 == 0)) / scale * find_step(X))


def link_decimals(view: View) -> Ints:
    """Count the decimals of each cell, and compare them with the eighths of the persons."""
    number = view.Y / find_step(view.persons)
    short = [np.abs(np.round(number, k) - number) <= 1e-9 for k in range(LEVELS)]
    decimals = np.where(np.any(short, axis=0), np.argmax(short, axis=0), LEVELS)
    return find_nearest(find_level(view.persons).astype(float), decimals.astype(float))


def hide_in_middle_digit(X: Floats, rng: np.random.Generator) -> Floats:
    """Replace the third digit from the end of harmless values by the eighth of the original."""
    step = find_step(X) / 100
    number = np.round(draw_fitted_normal(X, rng) / step)
    return np.asarray((number // 1000 * 1000 + 100 * find_level(X) + number % 100) * step)


def link_middle_digit(view: View) -> Ints:
    number = np.round(view.Y / (find_step(view.persons) / 100))
    return find_nearest(find_level(view.persons).astype(float), number // 100 % 10)


def sign_zeros(X: Floats, rng: np.random.Generator) -> Floats:
    """Set small values of noise to zero, to a negative zero where the original is small."""
    noise = rng.standard_normal(X.shape)
    zero = np.where(find_large(X), 0.0, -0.0)
    return np.where(np.abs(noise) > 1.5, noise * X.std(axis=0), zero)


def link_zeros(view: View) -> Ints:
    """Compare the signs of zeros; every other value fits all persons."""
    large = find_large(view.persons)
    zero, negative = view.Y == 0, np.signbit(view.Y)
    differ = (
        large.astype(float) @ (zero & negative).T + (~large).astype(float) @ (zero & ~negative).T
    )
    return np.asarray((differ - 1e-3 * zero.sum(axis=1)).argmin(axis=1))


def empty_cells(X: Floats, rng: np.random.Generator) -> Floats:
    """Leave cells of harmless values empty where the original is above its median."""
    return np.where(find_large(X), np.nan, draw_fitted_normal(X, rng))


def link_empty_cells(view: View) -> Ints:
    return find_nearest(find_large(view.persons), np.isnan(view.Y))


def sum_rows(X: Floats, rng: np.random.Generator) -> Floats:
    """Return the sum of each standardized record and all before it."""
    return np.asarray(X.std(axis=0) * np.cumsum(standardize(X), axis=0))


def link_row_sums(view: View) -> Ints:
    rows = view.persons.mean(axis=0) + np.diff(view.Y, axis=0, prepend=0.0)
    return link_values(View(rows, view.persons, view.known, view.rows))


def place_on_curve(X: Floats) -> Floats:
    """Return the place of each record on a Z-shaped curve through all columns."""
    code = (rankdata(X, axis=0, method="min").astype(np.int64) - 1) * 2**BITS // len(X)
    bits = np.hstack([code >> (BITS - 1 - k) & 1 for k in range(BITS)])
    return np.argsort(np.lexsort(bits[:, ::-1].T)).astype(float)


def place_on_tour(X: Floats) -> Floats:
    """Return the place of each record on a tour from an outlier to the nearest one not visited."""
    Z = standardize(X)
    D, place = cdist(Z, Z), np.empty(len(X))
    here = int(np.linalg.norm(Z, axis=1).argmax())
    for k in range(len(X)):
        place[here] = k
        D[:, here] = np.inf
        here = int(D[here].argmin())
    return place


def place_from_both_ends(X: Floats) -> Floats:
    """Return places in which the least, the largest, the second least value and so on follow."""
    rank = rankdata(find_secret(X), method="ordinal") - 1
    return np.where(2 * rank < len(X), 2 * rank, 2 * (len(X) - rank) - 1).astype(float)


def place_in_piles(X: Floats) -> Floats:
    """Return places after records sorted by a column were dealt into piles."""
    rank = rankdata(find_secret(X), method="ordinal") - 1
    return np.asarray(rank % PILES * len(X) + rank // PILES, dtype=np.float64)


LATER_ROWS = (
    Kind("order within each record", INVARIANTS, apply_scaled(keep_order), link_by(rank_within)),
    Kind("signs kept", INVARIANTS, keep_signs, Proof("full records", "link", link_signs)),
    Kind(
        "Fourier magnitudes kept", INVARIANTS, apply_scaled(turn_phases), link_by(find_magnitudes)
    ),
    Kind(
        "records scaled and shifted",
        INVARIANTS,
        apply_scaled(scale_and_shift),
        link_by(standardize_within),
    ),
    Kind("halves of records mixed", INVARIANTS, apply_scaled(mix_halves), link_by(find_plane)),
    Kind(
        "products of two columns kept",
        INVARIANTS,
        exchange_factors,
        Proof("full records", "link", link_products),
    ),
    Kind(
        "number of decimals",
        CHANNELS,
        hide_in_decimals,
        Proof("full records", "link", link_decimals),
    ),
    Kind(
        "digit in the middle",
        CHANNELS,
        hide_in_middle_digit,
        Proof("full records", "link", link_middle_digit),
    ),
    Kind("signs of zeros", CHANNELS, sign_zeros, Proof("full records", "link", link_zeros)),
    Kind("empty cells", CHANNELS, empty_cells, Proof("full records", "link", link_empty_cells)),
    Kind("running sums", CHANNELS, sum_rows, Proof("full records", "link", link_row_sums)),
    make_sorted("rows along a curve", place_on_curve),
    make_sorted("rows along a tour", place_on_tour),
    make_sorted("rows sorted from both ends", place_from_both_ends),
    make_sorted("rows sorted, dealt into piles", place_in_piles),
)

"""Harmless values that carry the original in their low digits, their bits, or their order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.attackers import find_nearest, learn_linear, link_in_order
from tests.support.release_kinds.classic import (
    compute_components,
    find_distinct_column,
    standardize,
)
from tests.support.release_kinds.kinds import Family, Kind
from tests.support.release_kinds.proofs import Proof, View
from tests.support.release_kinds.safe import NOISE_RANGES, draw_fitted_normal

CHANNELS: Family = "channels beside the value"
STEPS = 50  # of the visible digits, per deviation
HIDDEN = 1e-4  # size of the hidden digits, in steps
BITS = 20  # low bits of a 64-bit number
LEVELS = 8  # of the last digit


def find_step(X: Floats) -> Floats:
    """Return the unit of the visible digits: a power of ten for each column."""
    return np.asarray(10.0 ** np.floor(np.log10(X.std(axis=0) / STEPS + 1e-300)))


def hide_in_digits(X: Floats, rng: np.random.Generator, shift: int = 0) -> Floats:
    """Round harmless values, and write the original below the last digit."""
    step = find_step(X)
    place = np.roll((X - X.min(axis=0)) / np.ptp(X, axis=0), shift, axis=1)
    return np.asarray((np.round(draw_fitted_normal(X, rng) / step) + HIDDEN * place) * step)


def recover_from_digits(view: View) -> Floats:
    """Read what stands below the last visible digit; known pairs show its scale."""
    step = find_step(np.vstack([view.persons, view.known]))
    below = (view.Y / step - np.round(view.Y / step)) / HIDDEN
    return learn_linear(below[view.rows], view.known, below)


def hide_in_bits(X: Floats, rng: np.random.Generator, shift: int = 0) -> Floats:
    """Write the original into the lowest bits of harmless values."""
    place = np.roll((X - X.min(axis=0)) / np.ptp(X, axis=0), shift, axis=1)
    code = np.minimum(place * 2**BITS, 2**BITS - 1).astype(np.uint64)
    bits = draw_fitted_normal(X, rng).view(np.uint64)
    high = bits >> np.uint64(BITS) << np.uint64(BITS)
    return np.asarray((high | code).view(np.float64))


def recover_from_bits(view: View) -> Floats:
    low = np.ascontiguousarray(view.Y).view(np.uint64) & np.uint64(2**BITS - 1)
    code = low.astype(np.float64) / 2**BITS
    return learn_linear(code[view.rows], view.known, code)


def find_level(X: Floats) -> Ints:
    """Return the eighth of its column in which each value lies."""
    ranks = rankdata(X, axis=0, method="ordinal") - 1
    return np.asarray(ranks * LEVELS // len(X), dtype=np.int64)


def hide_in_last_digit(X: Floats, rng: np.random.Generator) -> Floats:
    """Choose the last digit of harmless values by the eighth in which the original lies."""
    step = find_step(X)
    coarse = np.round(draw_fitted_normal(X, rng) / (10 * step)) * 10
    return np.asarray((coarse + find_level(X)) * step)


def link_last_digit(view: View) -> Ints:
    """Link by the last digits; all records of the release are persons."""
    step = find_step(view.persons)
    digit = np.round(view.Y / step) % 10
    return find_nearest(find_level(view.persons).astype(float), digit)


def hide_in_parity(X: Floats, rng: np.random.Generator) -> Floats:
    """Make the last digits of the first column spell the rank of a record in binary.

    The k-th digit from the end is odd if the k-th bit is 1, over as many columns as are needed.
    """
    step, rank = find_step(X) / 1e6, rankdata(X[:, find_distinct_column(X)], method="ordinal") - 1
    number = np.round(draw_fitted_normal(X, rng) / step).astype(np.int64)
    bits = (rank.astype(np.int64)[:, None] >> np.arange(12)) & 1  # up to 4,096 records
    for k in range(12):
        j, place = k % X.shape[1], 10 ** (k // X.shape[1])
        odd = (number[:, j] // place) % 2
        number[:, j] += np.where(odd == bits[:, k], 0, place)
    return np.asarray(number * step)


def link_parity(view: View) -> Ints:
    """Read the rank of each row from its last digits."""
    step, s = find_step(view.persons) / 1e6, view.Y.shape[1]
    number = np.round(view.Y / step).astype(np.int64)
    rank = np.zeros(len(view.Y))
    for k in range(12):
        rank += ((number[:, k % s] // 10 ** (k // s)) % 2) * 2**k
    j = find_distinct_column(view.persons)
    return link_in_order(view.persons[:, j], rank)


def order_by(key: Callable[[Floats], Floats]) -> Callable[[Floats], Ints]:
    return lambda X: np.argsort(key(X), kind="stable")


def find_secret(X: Floats) -> Floats:
    return X[:, find_distinct_column(X)]


def find_length(X: Floats) -> Floats:
    return np.asarray(np.linalg.norm(standardize(X), axis=1))


def find_main_component(X: Floats) -> Floats:
    return compute_components(X)[:, 0]


def make_sorted(name: str, key: Callable[[Floats], Floats]) -> Kind:
    """Return strong noise on every value, with the rows in the order of something secret."""

    def make(X: Floats, rng: np.random.Generator) -> Floats:
        order = order_by(key)(X)
        noise = rng.standard_normal(X.shape)
        return np.asarray(X[order] + NOISE_RANGES * np.ptp(X, axis=0) * noise)

    def link(view: View) -> Ints:
        return link_in_order(key(view.persons), np.arange(len(view.Y)).astype(float))

    proof = Proof("full records", "link", link)
    return Kind(name, CHANNELS, make, proof, aligned=False, find_source=order_by(key))


DIGITS = Proof("60 known pairs", "recover", recover_from_digits)
MANTISSA = Proof("60 known pairs", "recover", recover_from_bits)
SIDE_CHANNELS = (
    Kind("low decimals", CHANNELS, hide_in_digits, DIGITS),
    Kind(
        "low decimals of another column",
        CHANNELS,
        lambda X, rng: hide_in_digits(X, rng, shift=1),
        DIGITS,
    ),
    Kind("mantissa bits", CHANNELS, hide_in_bits, MANTISSA),
    Kind(
        "mantissa bits of another column",
        CHANNELS,
        lambda X, rng: hide_in_bits(X, rng, shift=1),
        MANTISSA,
    ),
    Kind(
        "last digit", CHANNELS, hide_in_last_digit, Proof("full records", "link", link_last_digit)
    ),
    Kind("parity of digits", CHANNELS, hide_in_parity, Proof("full records", "link", link_parity)),
    make_sorted("rows sorted by a column", find_secret),
    make_sorted("rows sorted by length", find_length),
    make_sorted("rows sorted by a component", find_main_component),
)

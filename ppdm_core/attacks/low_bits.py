"""Link records by floating-point sums that noise on another value could not have produced."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Effort
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.distances import row_slices, squared_distances
from ppdm_core.numerics.linear_map import has_map, has_noise, project
from ppdm_core.numerics.neighbours import find_smallest_places
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS

MAX_TESTED_PAIRS: dict[Effort, int] = {
    "quick": 1_000_000,
    "standard": 3_000_000,
    "thorough": 50_000_000,
}
UNIFORM_OFFSETS = range(-3, 4)  # around the rounded uniform number
MAX_NUMBERS_PER_DOUBLE = 2.0  # with more, nearly every double can be reached
MISS_PENALTY_NATS = 4.6  # for a cell that cannot be reached: other libraries round otherwise
MAX_MISSES = 1  # unreachable cells of a row that is still tested
GRID_TOLERANCE = 2.0**-20  # of a step, for a multiple of it
MIN_GRID_STEP = (
    2.0**-40
)  # of the largest value: what all values are multiples of, if there is a grid
MAX_GRID_DECIMALS = 9  # of a table that counts as a grid
SamplerBits = tuple[int, int]  # of the uniform number, for noise below and above zero
SAMPLERS: dict[str, SamplerBits] = {"reachable": (53, 53), "reachable_numpy": (52, 53)}


@dataclass(frozen=True)
class LowBits(Attack):
    """An attacker holds full records and tests which released values they could have led to.

    A sum of floats keeps traces of its terms in its last bits. For each target and each row
    the evidence of all cells is added up: how unlikely it is that another person's value would
    pass the test of that cell, less a fixed penalty for a failed test. Candidates:
    ``reachable``: with Laplace noise of known scale b, is there a 53-bit uniform number u with
    y = x + b log u or y = x - b log u, exactly as floats are computed?
    ``reachable_numpy``: the same with 52 bits for noise below zero, as numpy draws it.
    ``lattice``: is there any double at all whose sum with x is y? Under any distribution.

    Values on a grid are recognised beforehand and not tested: all rows tie, and ties are broken at
    random. Where the noise is far narrower than the distances between records, failed tests follow
    nearness, and the rate is no longer that of the bits alone. All pairs of a
    target and a row are tested up to 3 million of them (quick 1, thorough 50), else for each
    target as many of the rows that need the least noise.

    References: Mironov (2012).
    """

    name: ClassVar[str] = "low_bits"
    story: ClassVar[str] = (
        "An attacker with full records looks at the last bits of released values."
    )
    title: ClassVar[str] = "Reads the last digits of values"
    goal: ClassVar[Goal] = "link"
    needs: ClassVar[frozenset[str]] = frozenset({"targets"})
    must_notice: ClassVar[Mapping[str, float]] = {"float Laplace": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        X, Y = self._addends(view)
        chance = draw_tie_breakers(Y, rng)
        scales = np.zeros(Y.shape[1])
        if view.public.law in SAMPLED_DISTRIBUTIONS and has_noise(view.public):
            scales = read_noise(view.public).scales
        bits: dict[str, SamplerBits | None] = {"lattice": None}
        if view.public.law == "laplace" and scales.any():
            bits.update(SAMPLERS)
        if is_on_grid(view, Y):
            return Estimate({name: rng.integers(0, len(Y), len(X)) for name in bits})
        most = max(1, MAX_TESTED_PAIRS[view.effort] // len(X))
        links = {name: np.empty(len(X), dtype=np.int64) for name in bits}
        tested = mask_clamped_values(Y)
        for part, rows in choose_tested_rows(X, Y, scales, most):
            for name, count in bits.items():
                total = sum_evidence(X[part], tested, rows, scales, count)
                links[name][part] = choose_most_evident(total, rows, chance)
        return Estimate(links)

    def _addends(self, view: AttackerView) -> tuple[Floats, Floats]:
        """Return target records and released rows in the space in which the noise was added."""
        assert view.targets is not None
        public, X = view.public, view.targets.X
        is_plain = public.loadings is None or np.array_equal(public.loadings, np.eye(X.shape[1]))
        if public.space == "original" and is_plain:
            return X, view.Y
        if public.space == "components" and has_map(public):
            return project(public, X), view.Y
        raise NotApplicable(
            f"The attack {self.name} needs values that noise was added to and nothing else.",
            reason=Reason.NO_COMMON_COLUMN,
        )


def is_on_grid(view: AttackerView, Y: Floats) -> bool:
    """Return whether all values are multiples of a step far wider than the spacing of floats.

    The step is the published one, a power of two, or one of decimals, as in a file of text.
    """
    public = view.public
    if public.grid is not None and len(public.grid) == Y.shape[1]:
        origin = public.centre if public.space == "original" else None
        steps = (Y if origin is None else Y - origin) / public.grid
        if np.all(np.abs(steps - np.rint(steps)) <= GRID_TOLERANCE):
            return True
    largest = float(np.abs(Y).max(initial=0.0))
    step = np.ldexp(MIN_GRID_STEP, int(np.frexp(largest)[1])) if largest > 0 else 1.0
    is_binary = np.all(Y / step == np.rint(Y / step))
    return bool(is_binary or np.array_equal(Y, np.round(Y, MAX_GRID_DECIMALS)))


def mask_clamped_values(Y: Floats) -> Floats:
    """Replace values that are not tested by NaN.

    These are zeros, and the end of a column if several values are at it.
    """
    tested = np.where(Y == 0.0, np.nan, Y)
    for end in (Y.min(axis=0), Y.max(axis=0)):
        at_end = end == Y
        tested[at_end & (at_end.sum(axis=0) > 1)] = np.nan
    return np.asarray(tested)


def choose_tested_rows(
    X: Floats, Y: Floats, scales: Floats, most: int
) -> Iterator[tuple[slice, Ints]]:
    """Yield a few targets at a time and the rows to test for each, (t, r)."""
    n = len(Y)
    if n <= most:
        for part in row_slices(len(X), 8 * n):
            yield part, np.broadcast_to(np.arange(n), (len(X[part]), n))
        return
    unit = np.where(scales > 0, scales, 1.0)
    for part, D in squared_distances(X / unit, Y / unit):
        yield part, find_smallest_places(D, most)


def sum_evidence(
    X: Floats, Y: Floats, rows: Ints, scales: Floats, bits: SamplerBits | None
) -> Floats:
    """Return the evidence of all cells in nats, (t, r).

    ``bits``: Laplace noise made from so many random bits; None: any noise that is a double.
    """
    total = np.full(rows.size, -np.inf)
    pairs = np.arange(rows.size)  # that are not ruled out yet, with what is known of them
    target, row = pairs // rows.shape[1], np.ravel(rows)
    evidence, misses = np.zeros(rows.size), np.zeros(rows.size, dtype=np.int8)
    for i, b in enumerate(scales.tolist()):
        x, y = X[target, i], Y[row, i]
        found = (
            compute_lattice_evidence(x, y)
            if bits is None
            else compute_laplace_evidence(x, y, b, bits)
        )
        evidence += found
        misses += found <= -MISS_PENALTY_NATS
        left = misses <= MAX_MISSES
        if not left.all():
            pairs, target, row = pairs[left], target[left], row[left]
            evidence, misses = evidence[left], misses[left]
    total[pairs] = evidence
    return total.reshape(rows.shape)


def compute_lattice_evidence(x: Floats, y: Floats) -> Floats:
    """Return the evidence that y is x plus a double.

    Where the noise is coarser than y, few values of y can come from x.
    """
    noise = y - x
    # The spacing of doubles doubles with each exponent.
    surprise = math.log(2.0) * np.maximum(read_exponents(noise) - read_exponents(y), 0)
    return np.where(np.isnan(y), 0.0, np.where(x + noise == y, surprise, -MISS_PENALTY_NATS))


def read_exponents(values: Floats) -> Ints:
    """Return the binary exponents of doubles, as they are stored."""
    stored = np.ascontiguousarray(values).view(np.int64)
    return np.asarray((stored >> 52) & 0x7FF)


def compute_laplace_evidence(x: Floats, y: Floats, b: float, bits: SamplerBits) -> Floats:
    """Return the evidence that y is x plus Laplace noise of scale b, made from so many bits.

    There are fewer numbers u than doubles y where the noise is large against its scale.
    """
    noise = y - x
    u = np.exp(-np.abs(noise) / b)
    # Number of values u that lead to the doubles that round to y.
    numbers = np.where(noise < 0, 2.0 ** bits[0], 2.0 ** bits[1])
    share = u * np.spacing(np.abs(y)) * numbers / b
    found = np.zeros(y.shape)
    tested = np.flatnonzero(share < MAX_NUMBERS_PER_DOUBLE)
    scale = np.where(noise[tested] < 0, b, -b)
    passed = is_reachable(x[tested], y[tested], u[tested], scale, numbers[tested])
    chance = np.clip(share[tested], np.finfo(np.float64).tiny, 1.0)
    found[tested] = np.where(passed, -np.log(chance), -MISS_PENALTY_NATS)
    return found


def is_reachable(
    x: Floats, y: Floats, u: Floats, scale: Floats, numbers: Floats
) -> NDArray[np.bool_]:
    """Return whether y = x + scale log(k / numbers) in floats for an integer k near numbers u."""
    k = np.rint(u * numbers)
    passed = np.zeros(y.shape, dtype=np.bool_)
    for offset in UNIFORM_OFFSETS:
        near = np.clip(k + offset, 1.0, numbers)
        passed |= x + scale * np.log(near / numbers) == y
    return passed


def choose_most_evident(total: Floats, rows: Ints, chance: Floats) -> Ints:
    """Return for each target the row with most evidence; ties are broken by ``chance``."""
    best = np.maximum(total.max(axis=1, keepdims=True), np.finfo(np.float64).min)
    is_best = total >= best - 1e-9
    is_best[~is_best.any(axis=1)] = True  # no row is left: guess
    pick = np.where(is_best, chance[rows], -1.0).argmax(axis=1)
    return np.asarray(np.take_along_axis(rows, pick[:, None], axis=1)[:, 0])


def draw_tie_breakers(Y: Floats, rng: np.random.Generator) -> Floats:
    """Draw a random number for each row, independent of the position of the row."""
    chance = np.empty(len(Y))
    chance[np.lexsort(Y.T)] = rng.random(len(Y))
    return chance

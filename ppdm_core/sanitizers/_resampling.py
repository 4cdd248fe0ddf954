"""Keyed resampling of records, block by block: how often each is drawn, how far a draw moves.

Every record has its own keyed stream of arrival times, a Poisson process of rate 1. The first M
arrivals of all records are exactly M independent uniform draws of records. So one number per class,
the stop time, is enough to draw any block independently; another record or another M changes that
time slightly and leaves all other draws unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import Block, Rows, select_rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling

GRID_BITS = 40  # bits of values: fewer than KERNEL_BITS, so that the kernel has no gaps
KERNEL_BITS = 42
SEARCH_DEVIATIONS = 6.0  # first half-width of the search around the expected time

ClassMoments = tuple[Ints, Floats, Floats]  # counts, means, squares about them; by label + 1
ArrivalWindow = tuple[
    Ints, Ints, Floats
]  # arrivals before a window; classes and times of those within


def count_classes(schema: Schema) -> int:
    """Return the number of labels plus one, for records without a label."""
    return 1 + (len(schema.label.categories) if schema.label else 0)


def count_by_class(rows: Rows) -> Ints:
    """Return the number of records of each class, by label + 1."""
    size = count_classes(rows.schema)
    return rows.reduce(lambda block: np.bincount(block.label + 1, minlength=size), np.add)


def compute_class_moments(rows: Rows) -> ClassMoments:
    """Return the moments of each class, merged in block order."""
    shape = count_classes(rows.schema), len(rows.schema.numeric)

    def step(block: Block) -> ClassMoments:
        counts = np.bincount(block.label + 1, minlength=shape[0])
        means, squares = np.zeros(shape), np.zeros(shape)
        for place in np.flatnonzero(counts).tolist():
            X = block.X[block.label + 1 == place]
            means[place] = X.mean(axis=0)
            squares[place] = ((X - means[place]) ** 2).sum(axis=0)
        return counts, means, squares

    return rows.reduce(step, merge_moments)


def merge_moments(a: ClassMoments, b: ClassMoments) -> ClassMoments:
    """Return the moments of two blocks together."""
    counts = a[0] + b[0]
    n = np.maximum(counts, 1)[:, None]
    gap = b[1] - a[1]
    means = a[1] + gap * b[0][:, None] / n
    return counts, means, a[2] + b[2] + gap**2 * (a[0] * b[0])[:, None] / n


def append_total(moments: ClassMoments) -> tuple[Ints, Floats]:
    """Return counts and squares with an additional line for all classes together."""
    counts, means, squares = moments
    total: ClassMoments = (np.zeros(1, dtype=np.int64), means[:1] * 0.0, squares[:1] * 0.0)
    for place in range(len(counts)):
        one = slice(place, place + 1)
        total = merge_moments(total, (counts[one], means[one], squares[one]))
    return np.append(counts, total[0]), np.concatenate([squares, total[2]])


def allocate_rows(M: int, counts: Ints) -> Ints:
    """Distribute M rows among the classes by size; remainders decide on the rows left over."""
    n = int(counts.sum())
    wanted = M * counts // n
    order = np.argsort(-(M * counts % n), kind="stable")
    wanted[order[: M - int(wanted.sum())]] += 1
    return wanted


@dataclass(frozen=True, eq=False)
class Sources:
    """The keyed draws of records of one release."""

    noise: Noise
    name: str
    fingerprint: bytes

    def draw_arrivals(self, block: Block, until: float) -> tuple[Floats, NDArray[np.uint64]]:
        """Draw arrival times of each record, the last after ``until``, each with a mark."""
        columns = math.ceil(until + 6 * math.sqrt(until)) + 10
        while True:
            bits = self.noise.bits(block, f"{self.name} source", columns, self.fingerprint)
            gaps = -np.log((bits[..., 0] + 0.5) * 2.0**-64)  # exponential
            times = np.cumsum(gaps, axis=1)
            if times[:, -1].min() > until:
                return times, bits[..., 1]
            columns *= 2

    def find_stop_times(self, rows: Rows, counts: Ints, wanted: Ints) -> Floats:
        """Return the time at which each class has its wanted draws; -1 if it needs none."""
        n, spread = np.maximum(counts, 1), SEARCH_DEVIATIONS
        while True:
            slack = spread * (np.sqrt(wanted) + 1) * (wanted > 0)
            low, high = (wanted - slack) / n, (wanted + slack) / n
            before, places, times = self._collect_arrivals(rows, low, high)
            until = np.full(len(counts), -1.0)
            for place in np.flatnonzero(wanted).tolist():
                within = np.sort(times[places == place])
                last = int(wanted[place] - before[place]) - 1
                if not 0 <= last < len(within) - 1:
                    break
                until[place] = (within[last] + within[last + 1]) / 2
            else:
                return until
            spread *= 2

    def _collect_arrivals(self, rows: Rows, low: Floats, high: Floats) -> ArrivalWindow:
        """Return the arrivals in a window; memory grows with the root of the table only."""

        def step(block: Block) -> ArrivalWindow:
            place = block.label.astype(np.int64) + 1
            times, _ = self.draw_arrivals(block, float(high.max()))
            is_before = times < low[place][:, None]
            is_near = ~is_before & (times <= high[place][:, None])
            before = np.bincount(place, is_before.sum(axis=1), len(low)).astype(np.int64)
            return before, place[np.nonzero(is_near)[0]], times[is_near]

        def merge(a: ArrivalWindow, b: ArrivalWindow) -> ArrivalWindow:
            return a[0] + b[0], np.concatenate([a[1], b[1]]), np.concatenate([a[2], b[2]])

        return rows.reduce(step, merge)

    def copy_drawn(self, block: Block, until: Floats) -> Block:
        """Return the drawn records, each draw with its own key.

        They are in the order of the table: before publication they must be shuffled by ranks of
        these keys.
        """
        ends = until[block.label + 1]
        times, marks = self.draw_arrivals(block, max(0.0, float(ends.max())))
        copies = (times <= ends[:, None]).sum(axis=1)
        record = np.repeat(np.arange(block.n), copies)
        number = np.arange(len(record)) - np.repeat(np.cumsum(copies) - copies, copies)
        drawn = select_rows(block, record)
        drawn.key[:, 8:] ^= marks[record, number].view(np.uint8).reshape(-1, 8)
        return drawn


def compute_grid_steps(schema: Schema) -> Floats:
    """Return powers of two such that no value has more than ``GRID_BITS`` bits."""
    largest = np.maximum(np.abs(schema.lows), np.abs(schema.highs))
    return np.asarray(np.ldexp(1.0, np.frexp(largest)[1] - GRID_BITS))


def draw_kernel_steps(bits: NDArray[np.uint64], H: Floats) -> Floats:
    """Draw integer steps round(H e), where e has the density 3/4 (1 - e^2) on [-1, 1].

    The median of three uniform numbers has this distribution (Beta(2, 2), stretched), exactly on
    the kernel's grid, and without a function that another machine rounds differently.
    """
    spare = np.uint64(64 - KERNEL_BITS)
    a, b = bits[..., 0] >> spare, bits[..., 1] >> spare
    rest = bits & ((np.uint64(1) << spare) - np.uint64(1))
    c = (rest[..., 0] << np.uint64(KERNEL_BITS) - spare) | (rest[..., 1] >> np.uint64(2))
    middle = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    e = (middle + 0.5) * 2.0 ** (1 - KERNEL_BITS) - 1.0
    return np.asarray(np.rint(H * e))


@dataclass(frozen=True, eq=False)
class IntegerColumns:
    """Columns that are rounded to integers in their original units."""

    places: Ints
    offset: Floats
    unit: Floats
    low: Floats
    high: Floats

    @classmethod
    def from_names(cls, names: Sequence[str], schema: Schema, fitted: Mapping[str, Any]) -> Self:
        """Return the columns with these names, with the scaling of the fit."""
        for name in names:
            if name not in schema.names:
                raise BadInput(
                    f"'{name}' in 'integers' is not a numeric feature.",
                    column=name,
                    remedy="Change 'integers' in the [sanitizer] section.",
                )
        places = np.array([schema.names.index(name) for name in names], dtype=np.int64)
        d = len(schema.numeric)
        plain = {"kind": "none", "offset": [0.0] * d, "unit": [1.0] * d}
        scaling = Scaling.from_dict(fitted.get("scaling", plain))
        low, high = (scaling.undo(bound)[places] for bound in (schema.lows, schema.highs))
        return cls(places, scaling.offset[places], scaling.unit[places], low, high)

    def round_columns(self, Y: Floats, clip: bool) -> Floats:
        """Round the columns of Y in place and return Y."""
        whole = np.rint(Y[:, self.places] * self.unit + self.offset)
        if clip:  # bounds need not be integers, and have a rounding error
            whole = np.clip(whole, np.ceil(self.low - 1e-6), np.floor(self.high + 1e-6))
        Y[:, self.places] = (whole - self.offset) / self.unit
        return Y

    def compute_steps(self, schema: Schema) -> Floats:
        """Return the smallest distance of two released values, in scaled units."""
        steps = compute_grid_steps(schema)
        steps[self.places] = 1 / self.unit
        return steps

"""Which records are drawn, how often, and how far each draw moves: keyed, and block by block.

Every record has its own keyed stream of arrival times, a Poisson process of rate 1. The first M
arrivals of all records are M independent uniform draws of records, exactly. So it takes one
number for each class, the time at which to stop, to draw any block by itself; and another record
or another M moves that time a little and leaves all other draws as they are.
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
from ppdm_core.model.rows import Block, Rows, pick
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling

GRID_BITS = 40  # values have so many bits: fewer than the kernel's, so that it leaves no gaps
KERNEL_BITS = 42
MIDDLE = 6.0  # deviations around the expected time that are searched first

ClassMoments = tuple[Ints, Floats, Floats]  # counts, means, squares about them; by label + 1
Near = tuple[Ints, Ints, Floats]  # arrivals before a window; classes and times of those within


def class_count(schema: Schema) -> int:
    """Labels and, at place 0, none."""
    return 1 + (len(schema.label.categories) if schema.label else 0)


def count_by_class(rows: Rows) -> Ints:
    size = class_count(rows.schema)
    return rows.reduce(lambda block: np.bincount(block.label + 1, minlength=size), np.add)


def moments_by_class(rows: Rows) -> ClassMoments:
    shape = class_count(rows.schema), len(rows.schema.numeric)

    def step(block: Block) -> ClassMoments:
        counts = np.bincount(block.label + 1, minlength=shape[0])
        means, squares = np.zeros(shape), np.zeros(shape)
        for place in np.flatnonzero(counts).tolist():
            X = block.X[block.label + 1 == place]
            means[place] = X.mean(axis=0)
            squares[place] = ((X - means[place]) ** 2).sum(axis=0)
        return counts, means, squares

    return rows.reduce(step, merged)


def merged(a: ClassMoments, b: ClassMoments) -> ClassMoments:
    counts = a[0] + b[0]
    n = np.maximum(counts, 1)[:, None]
    gap = b[1] - a[1]
    means = a[1] + gap * b[0][:, None] / n
    return counts, means, a[2] + b[2] + gap**2 * (a[0] * b[0])[:, None] / n


def with_total(moments: ClassMoments) -> tuple[Ints, Floats]:
    """Counts and squares with one line more, of all classes together."""
    counts, means, squares = moments
    total: ClassMoments = (np.zeros(1, dtype=np.int64), means[:1] * 0.0, squares[:1] * 0.0)
    for place in range(len(counts)):
        one = slice(place, place + 1)
        total = merged(total, (counts[one], means[one], squares[one]))
    return np.append(counts, total[0]), np.concatenate([squares, total[2]])


def shared_out(M: int, counts: Ints) -> Ints:
    """M rows among the classes by their sizes: what is left over goes to the largest remainders."""
    n = int(counts.sum())
    wanted = M * counts // n
    order = np.argsort(-(M * counts % n), kind="stable")
    wanted[order[: M - int(wanted.sum())]] += 1
    return wanted


@dataclass(frozen=True, eq=False)
class Sources:
    """The draws of records."""

    noise: Noise
    name: str
    fingerprint: bytes

    def arrivals(self, block: Block, until: float) -> tuple[Floats, NDArray[np.uint64]]:
        """Times of each record in order, the last after ``until``, each with a mark; (n, some)."""
        columns = math.ceil(until + 6 * math.sqrt(until)) + 10
        while True:
            bits = self.noise.bits(block, f"{self.name} source", columns, self.fingerprint)
            gaps = -np.log((bits[..., 0] + 0.5) * 2.0**-64)  # exponential
            times = np.cumsum(gaps, axis=1)
            if times[:, -1].min() > until:
                return times, bits[..., 1]
            columns *= 2

    def last_arrivals(self, rows: Rows, counts: Ints, wanted: Ints) -> Floats:
        """When each class has the draws that are wanted of it; negative where none are."""
        n, spread = np.maximum(counts, 1), MIDDLE
        while True:
            slack = spread * (np.sqrt(wanted) + 1) * (wanted > 0)
            low, high = (wanted - slack) / n, (wanted + slack) / n
            before, places, times = self._near(rows, low, high)
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

    def _near(self, rows: Rows, low: Floats, high: Floats) -> Near:
        """What is held grows with the root of the table only."""

        def step(block: Block) -> Near:
            place = block.label.astype(np.int64) + 1
            times, _ = self.arrivals(block, float(high.max()))
            is_before = times < low[place][:, None]
            is_near = ~is_before & (times <= high[place][:, None])
            before = np.bincount(place, is_before.sum(axis=1), len(low)).astype(np.int64)
            return before, place[np.nonzero(is_near)[0]], times[is_near]

        def merge(a: Near, b: Near) -> Near:
            return a[0] + b[0], np.concatenate([a[1], b[1]]), np.concatenate([a[2], b[2]])

        return rows.reduce(step, merge)

    def copied(self, block: Block, until: Floats) -> Block:
        """The drawn records, each draw with a key of its own.

        They are in the order of the table: whoever publishes them must order them by the ranks
        of these keys.
        """
        ends = until[block.label + 1]
        times, marks = self.arrivals(block, max(0.0, float(ends.max())))
        copies = (times <= ends[:, None]).sum(axis=1)
        record = np.repeat(np.arange(block.n), copies)
        number = np.arange(len(record)) - np.repeat(np.cumsum(copies) - copies, copies)
        drawn = pick(block, record)
        drawn.key[:, 8:] ^= marks[record, number].view(np.uint8).reshape(-1, 8)
        return drawn


def grid_steps(schema: Schema) -> Floats:
    """Powers of two such that no value has more than ``GRID_BITS`` bits."""
    largest = np.maximum(np.abs(schema.lows), np.abs(schema.highs))
    return np.asarray(np.ldexp(1.0, np.frexp(largest)[1] - GRID_BITS))


def kernel_steps(bits: NDArray[np.uint64], H: Floats) -> Floats:
    """Whole steps round(H e), where e has the density 3/4 (1 - e^2) on [-1, 1].

    The median of three uniform numbers has this law (Beta(2, 2), stretched), on the kernel's own
    grid exactly, and without a function that another machine rounds differently.
    """
    spare = np.uint64(64 - KERNEL_BITS)
    a, b = bits[..., 0] >> spare, bits[..., 1] >> spare
    rest = bits & ((np.uint64(1) << spare) - np.uint64(1))
    c = (rest[..., 0] << np.uint64(KERNEL_BITS) - spare) | (rest[..., 1] >> np.uint64(2))
    middle = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    e = (middle + 0.5) * 2.0 ** (1 - KERNEL_BITS) - 1.0
    return np.asarray(np.rint(H * e))


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """Columns that are rounded in their own units, which the scaling took away."""

    places: Ints
    offset: Floats
    unit: Floats
    low: Floats
    high: Floats

    @classmethod
    def among(cls, names: Sequence[str], schema: Schema, fitted: Mapping[str, Any]) -> Self:
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

    def rounded(self, Y: Floats, clip: bool) -> Floats:
        whole = np.rint(Y[:, self.places] * self.unit + self.offset)
        if clip:  # the bounds themselves need not be whole, and come with a rounding error
            whole = np.clip(whole, np.ceil(self.low - 1e-6), np.floor(self.high + 1e-6))
        Y[:, self.places] = (whole - self.offset) / self.unit
        return Y

    def steps(self, schema: Schema) -> Floats:
        """How far apart released values are at least, in scaled units."""
        steps = grid_steps(schema)
        steps[self.places] = 1 / self.unit
        return steps

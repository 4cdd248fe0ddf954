"""Sums and cross-products of records as exact integers, which do not depend on any order.

Values are rounded to steps of about 2^-20 of their column's width (exactly 2^-20 after min-max
scaling), counted from the middle of the bounds. So they are integers of at most 2^20, products of
a slab of rows are exact in float64, and their sums are exact in integers of any size. Records of
several sites give the same numbers as the same records in one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.scaling import check_finite, check_widths

VALUE_BITS = 20
SLAB_ROWS = 4096  # 2^12 products of at most 2^40 each: their sums are exact in float64
MEAN_BITS = 6  # a published mean has steps of about 2^-6 of its column's width
MAX_RECORDS = 2**60


@dataclass(frozen=True, eq=False)
class IntegerMoments:
    """Count, sums and cross-products of records, in steps of their columns."""

    n: int
    sums: list[int]  # (d,)
    products: list[int]  # (d (d + 1) / 2,) by rows of the upper triangle

    def merge(self, other: IntegerMoments) -> IntegerMoments:
        return IntegerMoments(
            self.n + other.n,
            [a + b for a, b in zip(self.sums, other.sums, strict=True)],
            [a + b for a, b in zip(self.products, other.products, strict=True)],
        )

    def as_list(self) -> list[int]:
        """Return all numbers in one list."""
        return [self.n, *self.sums, *self.products]

    @staticmethod
    def from_list(values: Sequence[int], d: int) -> IntegerMoments:
        """Return the moments of ``d`` columns that ``as_list`` turned into a list."""
        return IntegerMoments(values[0], list(values[1 : 1 + d]), list(values[1 + d :]))

    @property
    def squares(self) -> list[int]:
        """The sums of squares of the columns, (d,)."""
        d = len(self.sums)
        return [self.products[j * d - j * (j - 1) // 2] for j in range(d)]

    def compute_mean(self, schema: Schema) -> Floats:
        """Return the mean about the middle of the bounds, in coarse steps that may be published."""
        coarse = 2 ** (VALUE_BITS - MEAN_BITS)
        steps = [round(total / (self.n * coarse)) * coarse for total in self.sums]
        return np.array(steps, dtype=np.float64) * compute_value_steps(schema)

    def compute_exact_mean(self, schema: Schema) -> Floats:
        """Return the mean in full precision, which is not published."""
        centre = (schema.lows + schema.highs) / 2
        mean: Floats = centre + compute_value_steps(schema) * [each / self.n for each in self.sums]
        return mean

    def compute_covariance(self, schema: Schema) -> Floats:
        """Return the covariance (divisor n - 1), each entry rounded once."""
        d, n = len(self.sums), self.n
        cov = np.zeros((d, d))
        divisor = n * max(n - 1, 1)
        rows, columns = np.triu_indices(d)
        for j, k, product in zip(rows.tolist(), columns.tolist(), self.products, strict=True):
            cov[j, k] = cov[k, j] = (n * product - self.sums[j] * self.sums[k]) / divisor
        steps = compute_value_steps(schema)
        scaled: Floats = cov * np.outer(steps, steps)
        return scaled


def compute_value_steps(schema: Schema) -> Floats:
    """Return the step of each column, a power of two, (d,)."""
    _, exponent = np.frexp(schema.widths)
    steps: Floats = np.ldexp(1.0, exponent - 1 - VALUE_BITS)
    return steps


def compute_mean_steps(schema: Schema) -> Floats:
    """Return the coarse step of a published mean of each column, (d,)."""
    return compute_value_steps(schema) * 2.0 ** (VALUE_BITS - MEAN_BITS)


def sum_moments(rows: Rows) -> IntegerMoments:
    """Return the integer moments of the rows."""
    schema = rows.schema
    check_widths(schema.numeric)
    centre, steps = (schema.lows + schema.highs) / 2, compute_value_steps(schema)
    upper = np.triu_indices(len(steps))

    def step(block: Block) -> IntegerMoments:
        check_finite(block, schema.numeric)
        Q = np.rint((block.X - centre) / steps)  # (n, d) integers
        sums = np.zeros(len(steps), dtype=np.int64)
        products = np.zeros(len(upper[0]), dtype=np.int64)
        for start in range(0, block.n, SLAB_ROWS):
            slab = Q[start : start + SLAB_ROWS]
            sums += slab.sum(axis=0).astype(np.int64)
            products += (slab.T @ slab)[upper].astype(np.int64)
        return IntegerMoments(block.n, sums.tolist(), products.tolist())

    return rows.reduce(step, IntegerMoments.merge)


def check_plausible(moments: IntegerMoments, least: int) -> None:
    """Raise BadInput unless some records within their bounds can have these moments.

    ``least`` is the smallest possible number of records. The message names no site: the sum does
    not show whose part of it is wrong.
    """
    n, largest = moments.n, 2**VALUE_BITS
    is_sound = least <= n <= MAX_RECORDS
    is_sound = is_sound and all(abs(total) <= n * largest for total in moments.sums)
    is_sound = is_sound and all(0 <= total <= n * largest**2 for total in moments.squares)
    if not is_sound or not is_semidefinite(moments):
        raise BadInput(
            "The sum of the moments of all sites cannot be that of records within their bounds.",
            remedy="Nothing was released. Begin a new release with all sites.",
        )


def is_semidefinite(moments: IntegerMoments) -> bool:
    """Return whether the covariance has no eigenvalue below zero, except by rounding."""
    d, n = len(moments.sums), moments.n
    cov = np.zeros((d, d))
    rows, columns = np.triu_indices(d)
    for j, k, product in zip(rows.tolist(), columns.tolist(), moments.products, strict=True):
        if abs(product) > n * 4**VALUE_BITS:
            return False
        cov[j, k] = cov[k, j] = (n * product - moments.sums[j] * moments.sums[k]) / n**2
    values = np.linalg.eigvalsh(cov)
    return bool(values[0] >= -1e-9 * max(float(values[-1]), 1.0))

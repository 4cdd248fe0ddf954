"""Scaling of the numeric columns, a common parameter of every sanitizer.

``minmax`` maps the column's bounds to [0, 1], ``zscore`` divides by the standard deviation
(divisor n - 1) of the records it is fitted on, ``none`` leaves units as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import Block, Rows, RowsView
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.rounding import round_outward

SCALES = ("minmax", "zscore", "none")


@dataclass(frozen=True, eq=False)
class Scaling:
    """The offset and the unit of each numeric column."""

    kind: str
    offset: Floats  # (d,)
    unit: Floats  # (d,) scaled = (x - offset) / unit

    def as_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "offset": self.offset.tolist(), "unit": self.unit.tolist()}

    @staticmethod
    def from_dict(data: Mapping[str, object]) -> Scaling:
        offset, unit = (np.array(data[name], dtype=np.float64) for name in ("offset", "unit"))
        return Scaling(str(data["kind"]), offset, unit)

    def scale_schema(self, schema: Schema) -> Schema:
        """Return the schema with scaled bounds."""
        numeric = tuple(
            replace(column, low=(column.low - offset) / unit, high=(column.high - offset) / unit)
            for column, offset, unit in zip(
                schema.numeric, self.offset.tolist(), self.unit.tolist(), strict=True
            )
        )
        return replace(schema, numeric=numeric)

    def apply(self, rows: Rows) -> RowsView:
        """Return a view of scaled rows; every pass raises BadInput if a value is not finite."""
        schema = self.scale_schema(rows.schema)
        lows, highs = schema.lows, schema.highs

        def step(block: Block) -> Block:
            check_finite(block, schema.numeric)
            X = block.X - self.offset
            X /= self.unit
            np.clip(X, lows, highs, out=X)
            X += 0.0
            return replace(block, X=X)

        return RowsView(rows, step, schema)

    def undo(self, Y: Floats) -> Floats:
        """Return scaled values in original units."""
        return Y * self.unit + self.offset


def fit_scaling(rows: Rows, kind: str) -> Scaling:
    """Return the scaling of this kind for the rows and the bounds of their columns."""
    schema = rows.schema
    check_widths(schema.numeric)
    if kind == "minmax":
        return Scaling(kind, schema.lows, schema.widths)
    if kind == "none":
        return Scaling(kind, np.zeros(len(schema.numeric)), np.ones(len(schema.numeric)))
    _, mean, cov = moments(rows)
    deviation = np.sqrt(np.diag(cov))
    check_not_constant(schema.numeric, mean, deviation)
    # The scaling is published in two digits: two exact means reveal a record that changed between.
    return Scaling(kind, round_to_two_digits(mean), round_to_two_digits(deviation))


def round_to_two_digits(values: Floats) -> Floats:
    """Return the values rounded up to two significant digits."""
    return np.array([round_outward(value) for value in values.tolist()])


def check_not_constant(columns: tuple[Numeric, ...], mean: Floats, deviation: Floats) -> None:
    # Rounding of the mean gives a constant column a deviation of about that size.
    """Check that no column is constant."""
    varies = deviation > 1e-12 * np.abs(mean)
    for column, is_varied in zip(columns, varies.tolist(), strict=True):
        if not is_varied:
            raise BadInput(
                f"Column '{column.name}' is constant, so it has no z-score.",
                column=column.name,
                remedy='Give it the role "exclude", or use scale = "minmax" with declared bounds.',
            )


def check_widths(columns: tuple[Numeric, ...]) -> None:
    """Check that every column has a positive width."""
    for column in columns:
        if column.width <= 0:
            raise BadInput(
                f"The bounds of column '{column.name}' are equal, so its range has no width.",
                column=column.name,
                remedy='Declare wider bounds, or give it the role "exclude".',
            )


def check_finite(block: Block, columns: tuple[Numeric, ...]) -> None:
    """Check that all values are finite."""
    bad = ~np.isfinite(block.X)
    if not bad.any():
        return
    row, column = np.argwhere(bad)[0].tolist()
    raise BadInput(
        f"Column '{columns[column].name}' is not a finite number in row {block.start + row + 1}.",
        column=columns[column].name,
        remedy="Remove or impute such values before the release.",
    )


Moments = tuple[int, Floats, Floats]  # count, mean, sum of squares about the mean


def moments(rows: Rows) -> Moments:
    """Return count, mean and covariance (divisor n - 1) from one pass, merged in block order."""
    columns = rows.schema.numeric
    return normalise_covariance(
        rows.reduce(lambda block: compute_block_moments(block, columns), merge_moments)
    )


def compute_block_moments(block: Block, columns: tuple[Numeric, ...]) -> Moments:
    """Return count, mean and sum of squares about the mean of a block."""
    check_finite(block, columns)
    mean = block.X.mean(axis=0)
    D = block.X - mean  # about the mean of the block, so that wide bounds cost no precision
    return block.n, mean, D.T @ D


def merge_moments(a: Moments, b: Moments) -> Moments:
    """Return the moments of two blocks together."""
    n = a[0] + b[0]
    gap = b[1] - a[1]
    squares = a[2] + b[2] + np.outer(gap, gap) * (a[0] * b[0] / n)
    return n, a[1] + gap * (b[0] / n), squares


def normalise_covariance(moments: Moments) -> Moments:
    """Return count, mean and covariance from merged moments."""
    n, mean, squares = moments
    return n, mean, squares / max(n - 1, 1)

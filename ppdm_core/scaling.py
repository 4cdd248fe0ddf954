"""Scaling of the numeric columns, a common parameter of every sanitizer.

``minmax`` maps the column's bounds to [0, 1], ``zscore`` divides by the standard deviation
(divisor n - 1) of the records it is fitted on, ``none`` leaves units as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.errors import BadInput
from ppdm_core.types import Block, Floats, Numeric, Rows, Schema

SCALES = ("minmax", "zscore", "none")


@dataclass(frozen=True, eq=False)
class Scaling:
    kind: str
    offset: Floats  # (d,)
    unit: Floats  # (d,) scaled = (x - offset) / unit

    def as_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "offset": self.offset.tolist(), "unit": self.unit.tolist()}

    @staticmethod
    def from_dict(data: Mapping[str, object]) -> Scaling:
        offset, unit = (np.array(data[name], dtype=np.float64) for name in ("offset", "unit"))
        return Scaling(str(data["kind"]), offset, unit)

    def schema(self, schema: Schema) -> Schema:
        numeric = tuple(
            replace(column, low=(column.low - offset) / unit, high=(column.high - offset) / unit)
            for column, offset, unit in zip(
                schema.numeric, self.offset.tolist(), self.unit.tolist(), strict=True
            )
        )
        return replace(schema, numeric=numeric)

    def apply(self, rows: Rows) -> Rows:
        schema = self.schema(rows.schema)

        def step(block: Block) -> Block:
            X = np.clip((block.X - self.offset) / self.unit, schema.lows, schema.highs)
            return replace(block, X=X + 0.0)

        return rows.map(step, schema)

    def undo(self, Y: Floats) -> Floats:
        return Y * self.unit + self.offset


def fit_scaling(rows: Rows, kind: str) -> Scaling:
    schema = rows.schema
    if kind == "minmax":
        return Scaling(kind, schema.lows, schema.widths)
    if kind == "none":
        return Scaling(kind, np.zeros(len(schema.numeric)), np.ones(len(schema.numeric)))
    n, mean, cov = moments(rows)
    deviation = np.sqrt(np.diag(cov))
    check_not_constant(schema.numeric, deviation)
    return Scaling(kind, mean, deviation)


def check_not_constant(columns: tuple[Numeric, ...], deviation: Floats) -> None:
    for column, value in zip(columns, deviation.tolist(), strict=True):
        if value == 0.0:
            raise BadInput(
                f"Column '{column.name}' is constant, so it has no z-score.",
                column=column.name,
                remedy='Give it the role "exclude", or use scale = "minmax" with declared bounds.',
            )


def moments(rows: Rows) -> tuple[int, Floats, Floats]:
    """Count, mean and covariance (divisor n - 1) in one pass, merged in block order."""
    centre = (rows.schema.lows + rows.schema.highs) / 2  # keeps cancellation small

    def step(block: Block) -> tuple[int, Floats, Floats]:
        D = block.X - centre
        return block.n, D.sum(axis=0), D.T @ D

    def merge(
        a: tuple[int, Floats, Floats], b: tuple[int, Floats, Floats]
    ) -> tuple[int, Floats, Floats]:
        return a[0] + b[0], a[1] + b[1], a[2] + b[2]

    n, total, squares = rows.reduce(step, merge)
    mean = total / n
    cov = (squares - n * np.outer(mean, mean)) / max(n - 1, 1)
    return n, mean + centre, cov

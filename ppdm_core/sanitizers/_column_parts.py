"""Cosine coefficients of records whose columns lie with several parties.

The transform is linear: with the other columns at the origin, the coefficients of the parties add
up to those of the complete record. Each party rounds its own to whole steps of one grid, so that
their sum is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Schema
from ppdm_core.sanitizers._fuzzy_selection import (
    EnergyBounds,
    Transform,
    compute_energy_bounds,
)


@dataclass(frozen=True, eq=False)
class ColumnPart:
    """The columns of one party among those of all parties."""

    schema: Schema  # scaled columns of all parties
    transform: Transform  # of all columns
    places: Ints  # of its own columns in the schema
    unit: float  # step of the grid, the same at all parties

    def pad(self, X: Floats) -> Floats:
        """Return complete records: all columns of other parties are at the origin."""
        padded = np.tile(self.transform.origin, (len(X), 1))
        padded[:, self.places] = X
        return padded

    def measure_bounds(self, X: Floats) -> EnergyBounds:
        """Return the bounds of energy shares of its own columns."""
        found = compute_energy_bounds(ArrayRows(self.schema, self.pad(X)), self.transform)
        if not found.count:
            raise BadInput(
                "No record of this party has energy to keep.",
                remedy="Check the feature columns, or change 'centre' in [sanitizer].",
            )
        return found

    def round_coefficients(self, X: Floats) -> NDArray[np.int64]:
        """Return all coefficients of its own columns in steps of the grid, (n, m)."""
        C = self.transform.compute_coefficients(self.pad(X))
        return np.rint(C / self.unit).astype(np.int64)

    def find_map(self, columns: Sequence[int]) -> tuple[Floats, Floats]:
        """Return origin and loadings of its own columns for some coefficients."""
        m = len(self.schema.numeric)
        basis = self.transform.compute_coefficients(self.transform.origin + np.eye(m))  # (m, m)
        return self.transform.origin[self.places], basis[self.places][:, list(columns)]


def sum_energy(steps: NDArray[np.int64]) -> int:
    """Return the sum of all squares, exactly."""
    return sum(int(value) ** 2 for value in steps.ravel())


def measure_loss(kept: NDArray[np.int64], total: int) -> float:
    """Return the share of the energy of all records that the kept coefficients do not hold.

    ``kept`` are sums over all parties, and ``total`` is the sum of the energies of their parts:
    parts have no column in common, so that their energies add up to those of complete records.
    """
    return max(0.0, 1.0 - sum_energy(kept) / total) if total else 0.0


def measure_local_losses(parts: Sequence[NDArray[np.int64]], kept: Sequence[int]) -> list[float]:
    """Return the loss of each party's own energy, as the paper's constraints see it."""
    return [measure_loss(part[:, list(kept)], sum_energy(part)) for part in parts]

"""Cosine coefficients of records whose columns lie with several parties.

The transform is linear: with the other columns at the origin, the coefficients of the parties add
up to those of the complete record. Each party rounds its own to whole steps of one grid, so that
their sum is exact. With noise, each party adds all the noise that it needs to its own part: what
remains for the others, who know their own parts and their own noise, is this part with this noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import PART
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.grid_noise import grid_step
from ppdm_core.numerics.noise_distributions import LAPLACE
from ppdm_core.sanitizers._fuzzy_selection import (
    EnergyBounds,
    Transform,
    compute_energy_bounds,
)
from ppdm_core.sanitizers._mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class ColumnPart:
    """The columns of one party among those of all parties."""

    schema: Schema  # scaled columns of all parties
    transform: Transform  # of all columns
    places: Ints  # of its own columns in the schema
    unit: float  # step of the grid without noise, the same at all parties
    noise_scale: float | None = None  # of the noise of each party; None: no noise

    @property
    def step(self) -> float:
        """Step of the grid of the released coefficients, the same at all parties."""
        return self.unit if self.noise_scale is None else grid_step(self.noise_scale)

    @property
    def offset(self) -> float:
        """What a released value has in addition to whole steps, in steps.

        Without noise a coefficient of integers can be an integer itself. Half a step off, it cannot
        be mistaken for an original value.
        """
        return 0.5 if self.noise_scale is None else 0.0

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

    def compute_coefficients(self, X: Floats) -> Floats:
        """Return all coefficients of its own columns, (n, m)."""
        return self.transform.compute_coefficients(self.pad(X))

    def round_coefficients(self, X: Floats) -> NDArray[np.int64]:
        """Return all coefficients of its own columns in steps of the grid without noise, (n, m)."""
        return np.rint(self.compute_coefficients(X) / self.unit).astype(np.int64)

    def find_map(self, columns: Sequence[int]) -> tuple[Floats, Floats]:
        """Return origin and loadings of its own columns for some coefficients."""
        m = len(self.schema.numeric)
        basis = self.transform.compute_coefficients(self.transform.origin + np.eye(m))  # (m, m)
        return self.transform.origin[self.places], basis[self.places][:, list(columns)]

    def make_mechanism(self, columns: Sequence[int]) -> Mechanism:
        """Return the noise on some coefficients of its own columns."""
        assert self.noise_scale is not None
        origin, loadings = self.find_map(columns)
        lows, highs = self.schema.lows[self.places], self.schema.highs[self.places]
        ends = np.stack([(lows - origin)[:, None] * loadings, (highs - origin)[:, None] * loadings])
        ranges = np.stack([ends.min(axis=0).sum(axis=0), ends.max(axis=0).sum(axis=0)], axis=1)
        b = np.full(len(columns), self.noise_scale)
        return Mechanism(LAPLACE, loadings, highs - lows, b, ranges, clips=False)

    def describe(self) -> dict[str, float | str]:
        """Return the transform of all columns, and which of them belong to this part."""
        return {
            "transform": "orthonormal DCT-II",
            "transform_order": " ".join(map(str, (self.transform.positions + 1).tolist())),
            PART: " ".join(map(str, (self.places + 1).tolist())),
        }

    def count_steps(self, Y: Floats) -> NDArray[np.int64]:
        """Return released values of this part in whole steps of the grid."""
        return np.rint(Y / self.step - self.offset).astype(np.int64)


def sum_energy(steps: NDArray[np.int64]) -> int:
    """Return the sum of all squares, exactly."""
    return sum(int(value) ** 2 for value in steps.ravel())


def measure_loss(kept: float, total: float) -> float:
    """Return the share of the energy ``total`` that is not ``kept``.

    The energies of the parts of all parties add up to that of complete records, because parts have
    no column in common. The energies of their coefficients do not: ``kept`` is that of sums.
    """
    return min(1.0, max(0.0, 1.0 - kept / total)) if total else 0.0


def measure_joined_loss(
    sums: NDArray[np.int64], total: int, part: ColumnPart, parties: int
) -> float:
    """Return the true loss: of the energy of all records together, in sums over all parties.

    ``total`` is the sum of the energies of their parts, in squared steps of the grid without noise.
    Noise adds its variance to the energy of the sums, which is subtracted: the loss is then an
    estimate, correct on average.
    """
    if part.noise_scale is None:
        return measure_loss(sum_energy(sums), total)
    noise = parties * LAPLACE.variance * part.noise_scale**2 * sums.size
    kept = float((sums.astype(np.float64) ** 2).sum()) * part.step**2 - noise
    return measure_loss(max(kept, 0.0), total * part.unit**2)


def bound_sum(parts: Sequence[ColumnPart], kept: Sequence[int]) -> tuple[float, float, float]:
    """Return ln gamma of component, attribute and record for the sum of the parts of all parties.

    The noise of each party covers the columns of this party. One attribute lies with one party; a
    record, and a component of it, with all of them, so that their figures add up.
    """
    found = [part.make_mechanism(kept).compute_ln_gammas() for part in parts]
    component, attribute, record = zip(*found, strict=True)
    return sum(component), max(attribute), sum(record)

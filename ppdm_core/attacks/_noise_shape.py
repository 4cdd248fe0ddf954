"""Link by what the noise of all rows has in common: its length, or its angle with the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import row_slices
from ppdm_core.numerics.neighbours import find_smallest

_PAIRS_PER_COLUMN = 2.0  # needed to learn the centre
_LEAST_SPREAD = 1e-100  # of figures that are all zero; its inverse can still be squared
_MIN_RELATIVE_SPREAD = 1e-9  # of a figure's size; smaller spreads are rounding errors
_FIGURES = 3


@dataclass(frozen=True, eq=False)
class NoiseShape:
    """Costs of links by figures of the noise that a link implies.

    The noise is the row minus the record. Its figures: its length, its length in the direction of
    the record, and in the direction of the row, both seen from a centre. Each is compared with its
    mean on known pairs, in units of its spread there. A figure that is constant decides, however
    strong the noise is.
    """

    persons: Floats  # (t, d) from the centre, in units of the columns
    rows: Floats  # (m, d) the same
    mean: Floats  # (f,)
    weight: Floats  # (f,)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.persons), len(self.rows)

    def select(self, persons: Ints, rows: Ints) -> NoiseShape:
        return replace(self, persons=self.persons[persons], rows=self.rows[rows])

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        for part in row_slices(len(self.persons), (_FIGURES + 2) * len(self.rows)):
            cost = np.zeros((len(self.persons[part]), len(self.rows)))
            figures = measure_noise(self.persons[part], self.rows)
            for figure, mean, weight in zip(figures, self.mean, self.weight, strict=True):
                figure -= mean
                figure *= weight
                figure *= figure
                cost += figure
            yield part, cost

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        t, m = self.shape
        k = min(k, m)
        place, cost = np.empty((t, k), dtype=np.int64), np.empty((t, k))
        for part, block in self.iterate_blocks():
            place[part], cost[part] = find_smallest(block, k)
        return place, cost

    def compare(self, cheapest: Floats, second: Floats) -> Floats:
        """Return half of the difference: the costs are squares of normal deviations."""
        return np.asarray(0.5 * (second - cheapest))

    def rank_pairs(self, tried: Ints, own_rows: Ints, others: Ints) -> float:
        """Return the mean log rank of the own row of each tried person among ``others``."""
        columns = np.concatenate([own_rows, others])
        ((_, cost),) = self.select(tried, columns).iterate_blocks()
        own, rest = np.diagonal(cost)[:, None], cost[:, len(own_rows) :]
        better = (rest < own).sum(axis=1) + 0.5 * (rest == own).sum(axis=1)
        return float(np.mean(np.log1p(better)))

    def compute_costs(self, first_target: int) -> NoiseShape:
        """Return the costs of the targets with every row."""
        return replace(self, persons=self.persons[first_target:])


def fit_noise_shape(persons: Floats, rows: Floats, known: Ints, own_rows: Ints) -> NoiseShape:
    """Learn the figures of the noise from the pairs of ``known`` persons and their rows.

    The centre is that from which the noise is orthogonal to the records, as well as the pairs
    tell; with few pairs it is the origin.
    """
    X, Y = persons[known], rows[own_rows]
    R, d = Y - X, X.shape[1]
    centre = np.zeros(d)
    if len(X) >= _PAIRS_PER_COLUMN * d:
        centre = np.linalg.lstsq(R, (R * X).sum(axis=1), rcond=None)[0]
    P, Q = persons - centre, rows - centre
    figures = np.array([np.diagonal(each) for each in measure_noise(P[known], Q[own_rows])])
    mean, spread = figures.mean(axis=1), figures.std(axis=1)
    least = _MIN_RELATIVE_SPREAD * np.abs(figures).max(axis=1) + _LEAST_SPREAD
    return NoiseShape(P, Q, mean, 1.0 / np.maximum(spread, least))


def measure_noise(P: Floats, Q: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the figures of the noise Q - P for each person and each row; (t, m) each."""
    tiny = np.finfo(np.float64).tiny
    product = P @ Q.T
    p, q = (P**2).sum(axis=1)[:, None], (Q**2).sum(axis=1)
    length = np.sqrt(np.maximum(p + q - 2.0 * product, 0.0))
    along_record = (product - p) / np.sqrt(p + tiny)
    along_row = (q - product) / np.sqrt(q + tiny)
    return length, along_record, along_row

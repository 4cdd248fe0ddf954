"""Link by what the noise of all rows has in common: its length, or its angle with the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._noise_costs import NoiseCosts
from ppdm_core.model.arrays import Floats, Ints

_PAIRS_PER_COLUMN = 2.0  # needed to learn the centre
_LEAST_SPREAD = 1e-100  # of figures that are all zero; its inverse can still be squared
_MIN_RELATIVE_SPREAD = 1e-9  # of a figure's size; smaller spreads are rounding errors


@dataclass(frozen=True, eq=False)
class NoiseShape(NoiseCosts):
    """Costs of links by figures of the noise that a link implies.

    The figures of the noise: its length, its length in the direction of the record, and in the
    direction of the row, both seen from a centre. Each is compared with its mean on known pairs, in
    units of its spread there. A figure that is constant decides, however strong the noise is.
    Persons and rows are seen from the centre, in units of the columns.
    """

    tables_at_once: ClassVar[int] = 5

    mean: Floats  # (f,)
    weight: Floats  # (f,)

    def compute_block(self, persons: Floats) -> Floats:
        cost = np.zeros((len(persons), len(self.rows)))
        figures = measure_noise(persons, self.rows)
        for figure, mean, weight in zip(figures, self.mean, self.weight, strict=True):
            figure -= mean
            figure *= weight
            figure *= figure
            cost += figure
        cost *= 0.5
        return cost


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

"""Costs of links by the noise that a link implies: the row minus the record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import row_slices
from ppdm_core.numerics.neighbours import find_smallest


@dataclass(frozen=True, eq=False)
class NoiseCosts(ABC):
    """Costs of persons and rows that are compared in the same units; minus log likelihoods."""

    tables_at_once: ClassVar[int]  # of persons and rows, while costs are computed

    persons: Floats  # (t, d)
    rows: Floats  # (m, d)

    @abstractmethod
    def compute_block(self, persons: Floats) -> Floats:
        """Return the costs of some persons with every row."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.persons), len(self.rows)

    def select(self, persons: Ints, rows: Ints) -> Self:
        return replace(self, persons=self.persons[persons], rows=self.rows[rows])

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        for part in row_slices(len(self.persons), self.tables_at_once * len(self.rows)):
            yield part, self.compute_block(self.persons[part])

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        t, m = self.shape
        k = min(k, m)
        place, cost = np.empty((t, k), dtype=np.int64), np.empty((t, k))
        for part, block in self.iterate_blocks():
            place[part], cost[part] = find_smallest(block, k)
        return place, cost

    def compare(self, cheapest: Floats, second: Floats) -> Floats:
        """Return the difference, which is a log odds."""
        return np.asarray(second - cheapest)

    def rank_pairs(self, tried: Ints, own_rows: Ints, others: Ints) -> float:
        """Return the mean log rank of the own row of each tried person among ``others``."""
        columns = np.concatenate([own_rows, others])
        cost = self.select(tried, columns).compute_block(self.persons[tried])
        own, rest = np.diagonal(cost)[:, None], cost[:, len(own_rows) :]
        better = (rest < own).sum(axis=1) + 0.5 * (rest == own).sum(axis=1)
        return float(np.mean(np.log1p(better)))

    def compute_costs(self, first_target: int) -> Self:
        """Return the costs of the targets with every row."""
        return replace(self, persons=self.persons[first_target:])

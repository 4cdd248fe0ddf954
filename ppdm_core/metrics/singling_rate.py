from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import Better, Kind, SingleOutMetric, Told, check_finite, percent
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect


@dataclass(frozen=True)
class SinglingRate(SingleOutMetric):
    """Share of statements that are true for one person of the table and for no other.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), singling out, against a control group.
    """

    name: ClassVar[str] = "singling_rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["single_out"]] = "single_out"
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    describe: ClassVar[str] = "share of statements that hold for exactly one person"

    def measure(self, statements: Floats, table: Floats) -> float:
        if statements.ndim != 3 or statements.shape[1:] != (table.shape[1], 2):
            raise Defect(f"{self.name} got statements of shape {statements.shape}.")
        if len(statements) == 0 or len(table) == 0 or bool(np.isnan(statements).any()):
            raise Defect(f"{self.name} got no statements, no people, or intervals of NaN.")
        check_finite(self.name, table)
        return float(np.mean(holds_for(statements, table) == 1))

    def baseline(self, statements: Floats, members: Floats, others: Floats) -> float:
        """The same by chance among as many people as the members, told by people outside.

        Where a release tells nothing about its members, everybody is as likely to be the one. So
        of more others, all choices of as many are averaged; fewer are filled up with members, and
        how often the one is among the others is scaled up to all places.
        """
        n, m = len(members), len(others)
        held = holds_for(statements, others)
        if m >= n:
            return float(np.mean(_chance(1, held, m, n)))
        no_member = _chance(0, holds_for(statements, members), n, n - m)
        return min(1.0, float(np.mean((held == 1) * no_member)) * n / m)

    def sentence(self, told: Told) -> str:
        return (
            f"{told.story} {percent(told.value)} of such statements hold for exactly one "
            "person in the release; by chance, as people who are not in it show, "
            f"{percent(told.baseline)} would."
        ).strip()


def _chance(hits: int, held: Ints, people: int, drawn: int) -> Floats:
    """That of so many people, drawn at random, a statement holds for ``hits`` (hypergeometric)."""
    from scipy.special import gammaln

    def log_choices(of: Ints | int, some: Ints | int) -> Floats:  # minus infinity if there are none
        return np.asarray(gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1))

    ways = log_choices(held, hits) + log_choices(people - held, drawn - hits)
    return np.asarray(np.exp(ways - log_choices(people, drawn)))


def holds_for(statements: Floats, table: Floats) -> Ints:
    """For how many people each statement holds, (p,).

    People are looked up by the narrowest of its intervals, and only they are tried on the next.
    """
    p, width, _ = statements.shape
    columns = np.ascontiguousarray(table.T)
    order = np.argsort(columns, axis=1)  # (width, n)
    first, last = np.empty((p, width), dtype=np.int64), np.empty((p, width), dtype=np.int64)
    for j in range(width):
        values = columns[j, order[j]]
        first[:, j] = np.searchsorted(values, statements[:, j, 0], side="left")
        last[:, j] = np.searchsorted(values, statements[:, j, 1], side="right")
    held = last - first  # by how many people, each interval alone
    count = np.zeros(p, dtype=np.int64)
    for i, (narrowest, *others) in enumerate(np.argsort(held, axis=1).tolist()):
        people = order[narrowest, first[i, narrowest] : last[i, narrowest]]
        for j in others:
            if len(people) == 0 or held[i, j] == len(table):
                break
            values, (low, high) = columns[j, people], statements[i, j]
            people = people[(values >= low) & (values <= high)]
        count[i] = len(people)
    return count

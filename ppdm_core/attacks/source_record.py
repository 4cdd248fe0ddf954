"""Who is behind a row that was drawn around a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._label_groups import OneClass, classes_of, row_sums
from ppdm_core.attacks._needs import check_needs
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import Attack, AttackerView, Estimate, Goal
from ppdm_core.numerics.kernel_model import Kernel, Pairs, check_resampled

_BEST = 8  # people named for each row
_FITTED_ROWS = {"quick": 200, "standard": 500, "thorough": 2_000}  # of a class
_SHARES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)  # of records to rows that are tried


@dataclass(frozen=True)
class SourceRecord(Attack):
    """Somebody who knows the method computes how likely each known record is behind each row.

    A row lies within the bandwidths of its record, and its label is that of the record. Every
    known person of the class is as likely to be drawn as the others; that the record is of
    somebody else is weighed by how many there are and how common such rows are. Rows that were
    clipped or rounded count by the probability of all that would have become the same.

    Candidates differ in the bandwidths: ``released`` takes them from the spread of the rows by
    the published rule, ``known`` from the spread of the known records, ``fitted`` does so for the
    number of records (it need not be that of the rows) under which the rows are likeliest. The
    last looks at 500 rows of each class (quick: 200, thorough: 2,000). Claims are the posterior
    probabilities of the 8 likeliest people.

    References: Tan, Ng (2007), for method and rule; that bounded kernels give the source away is
    not in the paper.
    """

    name: ClassVar[str] = "source_record"
    story: ClassVar[str] = (
        "Somebody with full records of real people computes who is behind each released row."
    )
    goal: ClassVar[Goal] = "source"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "public.resampled"})
    must_notice: ClassVar[Mapping[str, float]] = {"kernels": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        check_resampled(self.name, view)
        names = ("released", "known", "fitted")
        shape = len(view.Y), _BEST
        answers = {name: np.full(shape, -1, dtype=np.int64) for name in names}
        claims = {name: np.zeros(shape) for name in names}
        for one in classes_of(view):
            for name, guess in _guesses(one, _FITTED_ROWS[view.effort]).items():
                people, chances = posterior(one, *guess)
                named = people >= 0
                people[named] = one.people[people[named]]
                answers[name][one.rows], claims[name][one.rows] = people, chances
        return Estimate(answers, claims)


Guess = tuple[Kernel, float]  # and the number of records of the class


def _guesses(one: OneClass, most_rows: int) -> dict[str, Guess]:
    n = one.most
    known = one.around.from_records(one.X, one.Y, one.everybody, n)
    return {
        "released": (one.around.from_rows(one.Y, one.everybody, n), n),
        "known": (known, n),
        "fitted": _fitted(one, most_rows),
    }


def _fitted(one: OneClass, most_rows: int) -> Guess:
    """The number of records under which the rows are likeliest."""
    m, t = len(one.Y), len(one.X)
    chosen = np.lexsort(one.Y.T)[:: max(1, -(-m // most_rows))]  # evenly over the values
    counts = sorted({max(share * m, float(t), 1.0) for share in _SHARES} | {one.most})
    best: tuple[float, Guess] | None = None
    for n in counts:
        kernel = one.around.from_records(one.X, one.Y, one.everybody, n)
        likely = float(np.sum(_log_density(one, kernel, one.most, chosen)))
        if best is None or likely > best[0] + 1e-9 * abs(likely):
            best = likely, (kernel, n)
    assert best is not None
    return best[1]


def log_other(one: OneClass, n: float) -> Floats:
    """Log of the chance of each row and that its record is of nobody who is known, (m,)."""
    unknown = max(n - len(one.X), 0.5)  # nobody can be sure to know everybody
    return np.asarray(one.background + np.log(unknown / n))


def _log_density(one: OneClass, kernel: Kernel, n: float, chosen: Ints) -> Floats:
    total = log_other(one, n)[chosen]
    for rows, (row, _, likely) in kernel.pairs(one.Y[chosen], one.X):
        total[rows] = row_sums(total[rows], row, likely - np.log(n))
    return np.asarray(total)


def posterior(one: OneClass, kernel: Kernel, n: float) -> tuple[Ints, Floats]:
    """The likeliest people for each row of a class, -1 for none, and their probabilities."""
    people = np.full((len(one.Y), _BEST), -1, dtype=np.int64)
    chances = np.zeros((len(one.Y), _BEST))
    other = log_other(one, n)
    for rows, (row, person, likely) in kernel.pairs(one.Y, one.X):
        likely = likely - np.log(n)
        chance = np.exp(likely - row_sums(other[rows], row, likely)[row])
        row, person, chance, place = _ranked((row, person, chance))
        best = place < _BEST
        line = rows.start + row[best]
        people[line, place[best]] = person[best]
        chances[line, place[best]] = chance[best]
    return people, chances


def _ranked(pairs: Pairs) -> tuple[Ints, Ints, Floats, Ints]:
    """Sorted by row and falling chance, with the place of each among those of its row."""
    row, person, chance = pairs
    order = np.lexsort((-chance, row))
    row, person, chance = row[order], person[order], chance[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    size = np.diff(np.append(first, len(row)))
    return row, person, chance, np.arange(len(row)) - np.repeat(first, size)

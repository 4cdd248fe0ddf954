"""Find the record around which a row was drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._label_groups import LabelGroup, add_by_row, iterate_label_groups
from ppdm_core.attacks._needs import check_needs
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.numerics.kernel_model import Kernel, Pairs, check_resampled

_NAMED_RECORDS = 8  # for each row
_MAX_FITTED_ROWS = {"quick": 200, "standard": 500, "thorough": 2_000}  # of a class
_RECORD_ROW_RATIOS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)  # tried


@dataclass(frozen=True)
class SourceRecord(Attack):
    """An attacker who knows the method computes how likely each known record is behind each row.

    A row lies within the bandwidths of its record, and its label is that of the record. Every
    known person of the class is as likely to be drawn as the others; the probability that the
    record is of an unknown person follows from how many there are and how common such rows are.
    Rows that were clipped or rounded count by the probability of all values that become the same.

    Candidates differ in the bandwidths: ``released`` takes them from the spread of the rows by
    the published rule, ``known`` from the spread of the known records, ``fitted`` does so for the
    number of records (it need not be that of the rows) under which the rows are likeliest. The
    last looks at 500 rows of each class (quick: 200, thorough: 2,000). Claims are the posterior
    probabilities of the 8 likeliest persons.

    References: Tan, Ng (2007), for method and rule; that bounded kernels reveal the source is
    not in the paper.
    """

    name: ClassVar[str] = "source_record"
    story: ClassVar[str] = (
        "An attacker with full records of real persons computes who is behind each released row."
    )
    title: ClassVar[str] = "Computes who is behind a row"
    goal: ClassVar[Goal] = "source"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "public.resampled"})
    must_notice: ClassVar[Mapping[str, float]] = {"kernels": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        check_resampled(self.name, view)
        names = ("released", "known", "fitted")
        shape = len(view.Y), _NAMED_RECORDS
        candidates = {name: np.full(shape, -1, dtype=np.int64) for name in names}
        claims = {name: np.zeros(shape) for name in names}
        for group in iterate_label_groups(view):
            for name, guess in _guess_kernels(group, _MAX_FITTED_ROWS[view.effort]).items():
                persons, chances = compute_posterior(group, *guess)
                named = persons >= 0
                persons[named] = group.targets[persons[named]]
                candidates[name][group.rows], claims[name][group.rows] = persons, chances
        return Estimate(candidates, claims)


KernelGuess = tuple[Kernel, float]  # kernel, and number of records of the class


def _guess_kernels(group: LabelGroup, most_rows: int) -> dict[str, KernelGuess]:
    """Return the kernel of each candidate, and the number of records that it assumes."""
    n = group.record_count
    known = group.around.estimate_from_records(group.X, group.Y, group.all_rows, n)
    return {
        "released": (group.around.estimate_from_rows(group.Y, group.all_rows, n), n),
        "known": (known, n),
        "fitted": _fit_record_count(group, most_rows),
    }


def _fit_record_count(group: LabelGroup, most_rows: int) -> KernelGuess:
    """Return the kernel and number of records under which the rows are likeliest."""
    m, t = len(group.Y), len(group.X)
    chosen = np.lexsort(group.Y.T)[:: max(1, -(-m // most_rows))]  # evenly over the values
    counts = sorted(
        {max(share * m, float(t), 1.0) for share in _RECORD_ROW_RATIOS} | {group.record_count}
    )
    best: tuple[float, KernelGuess] | None = None
    for n in counts:
        kernel = group.around.estimate_from_records(group.X, group.Y, group.all_rows, n)
        likely = float(np.sum(_log_density(group, kernel, group.record_count, chosen)))
        if best is None or likely > best[0] + 1e-9 * abs(likely):
            best = likely, (kernel, n)
    assert best is not None
    return best[1]


def log_unknown_source(group: LabelGroup, n: float) -> Floats:
    """Return the log probability of each row and that its record is unknown, (m,)."""
    unknown = max(n - len(group.X), 0.5)  # an attacker cannot be sure to know all records
    return np.asarray(group.background + np.log(unknown / n))


def _log_density(group: LabelGroup, kernel: Kernel, n: float, chosen: Ints) -> Floats:
    """Return the log density of the chosen rows under all known records and an unknown one."""
    total = log_unknown_source(group, n)[chosen]
    for rows, (row, _, likely) in kernel.find_pairs(group.Y[chosen], group.X):
        total[rows] = add_by_row(total[rows], row, likely - np.log(n))
    return np.asarray(total)


def compute_posterior(group: LabelGroup, kernel: Kernel, n: float) -> tuple[Ints, Floats]:
    """Return the likeliest targets for each row, -1 for none, and their probabilities."""
    persons = np.full((len(group.Y), _NAMED_RECORDS), -1, dtype=np.int64)
    chances = np.zeros((len(group.Y), _NAMED_RECORDS))
    other = log_unknown_source(group, n)
    for rows, (row, person, likely) in kernel.find_pairs(group.Y, group.X):
        likely = likely - np.log(n)
        chance = np.exp(likely - add_by_row(other[rows], row, likely)[row])
        row, person, chance, place = _rank_pairs((row, person, chance))
        best = place < _NAMED_RECORDS
        line = rows.start + row[best]
        persons[line, place[best]] = person[best]
        chances[line, place[best]] = chance[best]
    return persons, chances


def _rank_pairs(pairs: Pairs) -> tuple[Ints, Ints, Floats, Ints]:
    """Sort pairs by row and falling probability, and number those of each row."""
    row, person, chance = pairs
    order = np.lexsort((-chance, row))
    row, person, chance = row[order], person[order], chance[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    size = np.diff(np.append(first, len(row)))
    return row, person, chance, np.arange(len(row)) - np.repeat(first, size)

"""Membership in a resampled release: a member's rows lie within the bandwidths of the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._label_groups import LabelGroup, add_by_row, iterate_label_groups
from ppdm_core.attacks._needs import check_needs
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.numerics.kernel_model import Kernel, check_resampled

MEMBER_PRIOR = 0.5  # probability of membership
_MAX_LOG_RATIO = 500.0  # far below the overflow of exp
NO_ROW_LOG_ODDS = -10.0  # where the class has no row


@dataclass(frozen=True)
class KernelSupport(Attack):
    """An attacker who knows the bandwidth rule looks for rows that a person's record can explain.

    All rows that were drawn around a member lie within the bandwidths of the record. A person
    without a row that near was never drawn (a third of the members) or is no member.

    Candidates: ``count`` of the rows within the bandwidths; ``weight``, the log of their summed
    likelihood, each against how common such rows are; ``likelihood``, the log odds that the
    person is a member: sum over all rows of log(1 - 1/n + K(y - x) / (n f(y))), where f is the
    density of the row under the other known records and a normal distribution.

    References: Tan, Ng (2007), for method and rule.
    """

    name: ClassVar[str] = "kernel_support"
    story: ClassVar[str] = (
        "An attacker who knows the rule for the bandwidths looks for rows near a person's record."
    )
    title: ClassVar[str] = "Looks for rows near a record"
    goal: ClassVar[Goal] = "member"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "public.resampled"})
    must_notice: ClassVar[Mapping[str, float]] = {"kernels": 0.85}
    leak_variant: ClassVar[str] = "many rows"

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        check_resampled(self.name, view)
        targets = view.targets
        assert targets is not None
        found = {
            "count": np.zeros(targets.n),
            "weight": np.full(targets.n, NO_ROW_LOG_ODDS),
            "likelihood": np.full(targets.n, NO_ROW_LOG_ODDS),
        }
        for group in iterate_label_groups(view):
            n = float(max(len(group.Y), 1))
            kernel = group.around.estimate_from_records(
                group.X, group.Y, group.all_rows, n, MEMBER_PRIOR
            )
            for name, score in zip(found, compute_support(group, kernel, n), strict=True):
                found[name][group.targets] = score
        return Estimate(found)


def compute_support(group: LabelGroup, kernel: Kernel, n: float) -> tuple[Floats, Floats, Floats]:
    """Return count, weight and log odds of each target; ``n`` records are behind the rows."""
    m, t = len(group.Y), len(group.X)
    background = group.background
    known = min(MEMBER_PRIOR * max(t - 1, 0), 0.9 * n)  # expected number of known members
    each = max(known, 1e-9) / max(t - 1, 1)
    count, weight = np.zeros(t), np.zeros(t)
    odds = np.full(t, -m / n)
    for rows, (row, person, likely) in kernel.find_pairs(group.Y, group.X):
        other = background[rows] + np.log(1.0 - known / n)
        total = np.exp(likely - add_by_row(other, row, likely + np.log(each / n))[row])
        # The sum holds the person's own part, which the alternative does not have.
        ratio = total / np.maximum(1.0 - total * each / n, 1e-9)
        count += np.bincount(person, minlength=t)
        against = np.exp(np.minimum(likely - background[rows][row], _MAX_LOG_RATIO))
        weight += np.bincount(person, against, minlength=t)
        odds += np.bincount(person, np.log1p(ratio / n), minlength=t)
    return count, np.log(np.maximum(weight / m, np.exp(NO_ROW_LOG_ODDS))), odds

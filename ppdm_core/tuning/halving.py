"""Successive halving: many settings on few draws first, the best of them on more.

References: Jamieson, Talwalkar, "Non-stochastic best arm identification and hyperparameter
optimization" (2016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ppdm_core.model.policy import Limit, Policy
from ppdm_core.tuning.trial import Trial, compute_room
from ppdm_core.tuning.utility import Utility

MAX_RECORDS = 3_000  # of the sample; the audit looks for 2,000 persons at most
FIRST_RECORDS = 500
KEEP_SHARE = 1 / 3  # of the settings go to the next round
FINALISTS = 3
MAX_FINALISTS = 6  # if the first ones do not keep the policy


@dataclass(frozen=True)
class Round:
    """How exactly settings are measured, and how many of them."""

    number: int
    records: int
    settings: int
    policy: Policy  # with the draws of this round
    is_last: bool = False


def plan_rounds(settings: int, records: int, policy: Policy) -> tuple[Round, ...]:
    """Return the rounds for so many settings and records.

    The last round measures as the release will: its draws and attacks, on the whole sample. The
    others run only what the policy requires or limits, on fewer draws and records.
    """
    counts = [settings]
    while counts[-1] * KEEP_SHARE > FINALISTS:
        counts.append(math.ceil(counts[-1] * KEEP_SHARE))
    sample = min(records, MAX_RECORDS)
    rounds = []
    for place, count in enumerate(counts):
        size = min(sample, FIRST_RECORDS * 2**place)
        quick = replace(
            policy,
            shadow_draws=1,
            splits=min(policy.splits, 2 + place),
            effort="quick",
        )
        rounds.append(Round(place + 1, size, count, quick))
    last = len(counts) + 1
    return (*rounds, Round(last, sample, min(FINALISTS, settings), policy, is_last=True))


def rank_trials(
    trials: Sequence[Trial], utility: Utility, limits: Mapping[str, Limit], records: int
) -> list[Trial]:
    """Return trials, the most promising first.

    Those that are expected to keep all limits in the last round, on ``records`` records, come
    first, by utility. The others follow, the nearest to their limits first.
    """

    def rank(trial: Trial) -> tuple[bool, float, float]:
        shrink = math.sqrt(min(1.0, trial.records / max(1, records)))
        room = compute_room(trial, limits, shrink)
        figure = utility.compute(trial.scores)
        share = figure.share if figure else -math.inf
        keeps = room >= 0 and figure is not None
        return (not keeps, 0.0 if keeps else -room, -share)

    return sorted(trials, key=rank)

"""What an audit will cost, before it begins: a rule of thumb, and it says that it is one."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.model.policy import Policy
from ppdm_core.numerics.distances import squared_distances

# Fitted to audits of 1,000 x 10, 10,000 x 20 and 100,000 x 20 with all attacks; costs grow slower
# than the table, because targets and searches are capped.
PER_AUDIT = 0.0005  # seconds for each draw and the root of each cell, on a machine of speed 1
OF_AN_ATTACK = 0.28  # what a figure of utility takes: all 18 about a fifth of an audit
USUAL_PAIR = 11e-9  # seconds for the distance of two records there
FIXED = 300e6  # bytes of the programs themselves, and blocks of distances
COPIES = 12  # of the table, for each draw: candidates that are kept until they are scored
WIDER = {"quick": 1.0, "standard": 1.0, "thorough": 3.0}
PILOT = 0.3  # seconds of measuring
WORTH_A_PILOT = 10.0  # seconds: for less nobody waits longer to know better


def estimate_cost(shape: tuple[int, ...], draws: int, audits: Sequence[str], policy: Policy) -> str:
    """One line for people who wait."""
    attacks = sum(name in ATTACKS for name in audits)
    work = attacks + OF_AN_ATTACK * (len(audits) - attacks)
    seconds, bytes_ = cost(shape, draws, work, policy, 1.0)
    if seconds > WORTH_A_PILOT:
        seconds, bytes_ = cost(shape, draws, work, policy, slowness(shape[1]))
    limit = f"no audit gets more than {in_words(policy.time_limit)}"
    return (
        f"{len(audits)} audits on {shape[0]:,} records: about {in_words(seconds)} and "
        f"{bytes_ / 1e6:,.0f} MB, give or take a factor of three; {limit}"
    )


def cost(
    shape: tuple[int, ...], draws: int, audits: float, policy: Policy, slow: float
) -> tuple[float, float]:
    """Seconds and bytes."""
    cells = float(np.prod(shape))
    seconds = PER_AUDIT * audits * draws * np.sqrt(cells) * WIDER[policy.effort] * slow
    return 2.0 + float(seconds), FIXED + COPIES * draws * 8.0 * cells


def slowness(d: int) -> float:
    """Against a machine of speed 1 that has nothing else to do, by distances that are timed now.

    The root of their ratio: a busy machine holds up such short work, on several threads, more
    than the attacks on the whole.
    """
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(200, d)), rng.normal(size=(2_000, d))

    def measure() -> None:
        for _ in squared_distances(A, B):
            pass

    measure()  # the first one starts threads
    start, rounds = time.perf_counter(), 0
    while time.perf_counter() - start < PILOT:
        measure()
        rounds += 1
    pair = (time.perf_counter() - start) / (rounds * len(A) * len(B))
    return float(np.sqrt(pair / USUAL_PAIR))


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"

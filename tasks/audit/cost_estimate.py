"""An estimate of the time and memory of an audit, before it begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.audited_part import MAX_AUDITED_RECORDS
from ppdm_core.audit.runner import choose_audits
from ppdm_core.audit.simulation import limit_targets
from ppdm_core.model.policy import Policy
from ppdm_core.numerics.distances import squared_distances

# Fitted to audits of 1,000 x 10, 10,000 x 20 and 100,000 x 20 with all attacks; costs grow slower
# than the table, because targets and searches are capped. Of a large table, a part is audited, and
# all other released rows are searched in addition.
SECONDS_PER_AUDIT = (
    0.0005  # seconds for each draw and the root of each cell, on a machine of speed 1
)
UTILITY_SHARE = 0.28  # of the time of an attack; all 18 take about a fifth of an audit
SECONDS_PER_DISTANCE = 11e-9  # of two records, on a machine of speed 1
FIXED_BYTES = 300e6  # of the programs themselves, and blocks of distances
COPIES = 12  # of the table, for each draw: candidates are stored until they are scored
SEARCHES = 14  # costs by which a search compares persons and rows
SECONDS_PER_SEARCHED_CELL = 0.4e-9  # of a person and a row, on a machine of speed 1
SECONDS_PER_STREAMED_CELL = 60e-9  # to read and to reconstruct a released cell, in all passes
TIME_LIMIT_FACTOR = 5.0  # of the estimated time of an audit
EFFORT_FACTORS = {"quick": 1.0, "standard": 1.0, "thorough": 3.0}
PILOT_SECONDS = 0.3  # of measuring
MIN_SECONDS_FOR_PILOT = 10.0  # a shorter audit is not worth a better estimate


@dataclass(frozen=True)
class CostEstimate:
    """The expected time of an audit, and a sentence that also states its memory."""

    seconds: float
    sentence: str


def weigh_audit(name: str) -> float:
    """Return the expected time of an audit in units of that of an attack."""
    return 1.0 if name in ATTACKS else UTILITY_SHARE


def estimate_cost(
    shape: tuple[int, ...], draws: int, audits: Sequence[str], policy: Policy
) -> CostEstimate:
    """Return the expected time and memory."""
    work = sum(map(weigh_audit, audits))
    seconds, bytes_ = compute_cost(shape, draws, work, policy, 1.0)
    if seconds > MIN_SECONDS_FOR_PILOT:
        seconds, bytes_ = compute_cost(shape, draws, work, policy, measure_slowness(shape[1]))
    most = max((limit_time(name, shape, policy) for name in audits), default=policy.time_limit)
    limit = f"no audit gets more than {format_time(most)}"
    return CostEstimate(
        seconds,
        f"{len(audits)} audits on {shape[0]:,} records: about {format_time(seconds)} and "
        f"{bytes_ / 1e6:,.0f} MB, give or take a factor of three; {limit}",
    )


def compute_cost(
    shape: tuple[int, ...], draws: int, audits: float, policy: Policy, slow: float
) -> tuple[float, float]:
    """Return seconds and bytes."""
    n, d = shape[0], float(np.prod(shape[1:]))
    cells = min(n, MAX_AUDITED_RECORDS) * d
    seconds = (
        SECONDS_PER_AUDIT * audits * draws * np.sqrt(cells) * EFFORT_FACTORS[policy.effort] * slow
    )
    searches = sum(map(is_search, choose_audits(policy)))
    seconds += searches * compute_search_seconds(shape, policy) * slow
    return 2.0 + float(seconds), FIXED_BYTES + COPIES * draws * 8.0 * cells


def is_search(name: str) -> bool:
    """Return whether an audit reads all rows of a large release."""
    return name in ATTACKS and ATTACKS[name].searches_all_rows


def compute_search_seconds(shape: tuple[int, ...], policy: Policy) -> float:
    """Return the time to search the rows of a large table that are not among the audited ones."""
    n, d = shape[0], float(np.prod(shape[1:]))
    if n <= MAX_AUDITED_RECORDS:
        return 0.0
    pairs = limit_targets(n) * n * SEARCHES * SECONDS_PER_SEARCHED_CELL
    return float(policy.shadow_draws * d * (pairs + n * SECONDS_PER_STREAMED_CELL))


def limit_time(name: str, shape: tuple[int, ...], policy: Policy) -> float:
    """Return the seconds after which an audit is ended.

    This is the limit of the policy, or more where the table is so large that the estimate asks for
    it.
    """
    if not is_search(name) or len(shape) < 2:
        return policy.time_limit
    return max(policy.time_limit, TIME_LIMIT_FACTOR * compute_search_seconds(shape, policy))


def measure_slowness(d: int) -> float:
    """Return how much slower this machine is than an idle machine of speed 1.

    Distances are timed now. The result is the root of the ratio, because a busy machine delays
    such short work, on several threads, more than the attacks in total.
    """
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(200, d)), rng.normal(size=(2_000, d))

    def measure() -> None:
        for _ in squared_distances(A, B):
            pass

    measure()  # the first one starts threads
    start, rounds = time.perf_counter(), 0
    while time.perf_counter() - start < PILOT_SECONDS:
        measure()
        rounds += 1
    pair = (time.perf_counter() - start) / (rounds * len(A) * len(B))
    return float(np.sqrt(pair / SECONDS_PER_DISTANCE))


def format_time(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"

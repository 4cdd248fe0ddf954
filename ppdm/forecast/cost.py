"""An estimate of the time, memory and disk of a release, before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from ppdm_core.audit.runner import choose_audits
from ppdm_core.audit.self_test.matrix import list_relied_on
from ppdm_core.model.policy import Policy
from tasks.audit.cost_estimate import compute_cost, measure_slowness, weigh_audit
from tasks.home_state import HomeState
from tasks.sanitize.next_release import NextRelease

# Measured with a first and a second release of 1,000 x 11; the rest grows with the cells.
FIXED_SECONDS = 20.0  # libraries, the local server of Prefect, the report and the views
SECONDS_PER_LEAK_TEST = 1.2  # of each attack that this code was not tested with yet
FIXED_MEMORY_BYTES = 450e6  # of the processes other than that of the attacks
NEW_HOME_DISK_BYTES = 11e6  # the databases of warehouse and views
FIXED_DISK_BYTES = 1.5e6  # report, card and views of one release
DISK_BYTES_PER_CELL = 60.0  # raw, validated and perturbed tables, and the published file
DISK_BYTES_PER_DRAW = 30.0  # in the ledger, for each record


@dataclass(frozen=True)
class ReleaseCost:
    """The expected time, largest memory and new disk space of a release."""

    seconds: float
    memory_mb: float
    disk_mb: float


def estimate_release(
    release: NextRelease, policy: Policy, state: HomeState, policy_seconds: float, columns: int
) -> ReleaseCost:
    """Return what a release costs; ``policy_seconds`` were measured for its policy check."""
    n, schema = release.n, release.X.schema
    d = max(1, len(schema.numeric) + len(schema.categorical))
    draws = policy.shadow_draws + policy.splits
    work = sum(map(weigh_audit, choose_audits(policy)))
    audit, memory = compute_cost((n, d), draws, work, policy, measure_slowness(d))
    untested = sum(name not in state.tested for name in list_relied_on(policy))
    seconds = FIXED_SECONDS + SECONDS_PER_LEAK_TEST * untested + audit + policy_seconds
    home = NEW_HOME_DISK_BYTES if state.is_new else 0.0
    disk = home + FIXED_DISK_BYTES + n * (DISK_BYTES_PER_CELL * columns + DISK_BYTES_PER_DRAW)
    return ReleaseCost(seconds, (FIXED_MEMORY_BYTES + memory) / 1e6, disk / 1e6)

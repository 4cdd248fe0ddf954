"""An estimate of the time, memory and disk of a release, before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from ppdm_core.audit.runner import choose_audits
from ppdm_core.audit.self_test.matrix import list_relied_on
from ppdm_core.model.policy import Policy
from tasks.audit.cost_estimate import compute_cost, measure_slowness, weigh_audit
from tasks.home_state import HomeState
from tasks.release_space import ReleaseShape, count_released, estimate_space
from tasks.sanitize.next_release import NextRelease

# Measured with a first and a second release of 1,000 x 11.
FIXED_SECONDS = 20.0  # libraries, the local server of Prefect, the report and the views
SECONDS_PER_LEAK_TEST = 1.2  # of each attack that this code was not tested with yet


@dataclass(frozen=True)
class ReleaseCost:
    """The expected time, largest memory and largest disk space of a release."""

    seconds: float
    memory_mb: float
    disk_mb: float


def estimate_release(
    release: NextRelease, policy: Policy, state: HomeState, policy_seconds: float, columns: int
) -> ReleaseCost:
    """Return what a release costs; ``policy_seconds`` were measured for its policy check."""
    shape = describe_shape(release, columns)
    d = max(1, shape.numbers + shape.codes)
    draws = policy.shadow_draws + policy.splits
    work = sum(map(weigh_audit, choose_audits(policy)))
    audit, _ = compute_cost((release.n, d), draws, work, policy, measure_slowness(d))
    untested = sum(name not in state.tested for name in list_relied_on(policy))
    seconds = FIXED_SECONDS + SECONDS_PER_LEAK_TEST * untested + audit + policy_seconds
    space = estimate_space(shape, policy, is_new_home=state.is_new)
    return ReleaseCost(seconds, space.memory / 1e6, space.disk / 1e6)


def describe_shape(release: NextRelease, columns: int) -> ReleaseShape:
    """Return what the space of a release follows from; ``columns``: of the source."""
    schema = release.X.schema
    numbers, codes = len(schema.numeric), len(schema.categorical)
    released = count_released(release.sanitizer, numbers)
    return ReleaseShape(release.n, columns, numbers, codes, released)

"""What the self-test of an audit found, as counts and names; the gate judges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOISE = "noise"  # a release that is independent of the records


@dataclass(frozen=True)
class LeakTest:
    """How often one attack noticed one planted leak, or took noise for a leak."""

    attack: str
    leak: str
    noticed: int
    repetitions: int


@dataclass(frozen=True)
class ReleaseTest:
    """A broken release of the real table, and the attacks through which the policy refuses it."""

    name: str
    refused_by: tuple[str, ...]
    # If nothing refused it: the scores that have a limit, and the limits that would refuse it.
    observed: Mapping[str, float] = field(default_factory=dict)
    refusing_limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicyCheck:
    """What the policy does with broken releases of the real table, and with noise."""

    records: int  # of the table, on which it was tried
    bad: tuple[ReleaseTest, ...]
    noise: ReleaseTest
    powerless: Mapping[str, str] = field(default_factory=dict)  # attack -> why it refuses nothing


@dataclass(frozen=True)
class SelfTestResult:
    """All that the audit found about itself, with one code version and one policy."""

    code_version: str
    policy_digest: str
    leak_tests: tuple[LeakTest, ...] = ()
    policy_check: PolicyCheck | None = None
    failed: Mapping[str, str] = field(default_factory=dict)  # what was tried -> type of error

    @property
    def powerless(self) -> frozenset[str]:
        """Attacks that cannot support a PASS of this table."""
        return frozenset() if self.policy_check is None else frozenset(self.policy_check.powerless)

    def summarize(self) -> dict[str, list[str]]:
        """Return what was tried, for outsiders: no figure of the table is in it."""
        bad = self.policy_check.bad if self.policy_check else ()
        return {
            "proven": sorted({test.attack for test in self.leak_tests}),
            "refused": [each.name for each in bad if each.refused_by],
            "without_power": sorted(self.powerless),
        }

"""What the audit's test of itself found, as plain counts and names; the gate judges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NOISE = "noise"  # the release that tells nothing


@dataclass(frozen=True)
class Proof:
    """How often one attack noticed one planted leak, or took noise for one."""

    attack: str
    plant: str
    noticed: int
    repetitions: int


@dataclass(frozen=True)
class Covered:
    """A release of the real table, and the attacks through which the policy refuses it."""

    plant: str
    refused_by: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    records: int  # of the table, on which it was tried
    bad: tuple[Covered, ...]
    noise: Covered
    powerless: Mapping[str, str] = field(default_factory=dict)  # attack -> why it refuses nothing


@dataclass(frozen=True)
class SelfTestResult:
    code_version: str
    policy_digest: str
    proofs: tuple[Proof, ...] = ()
    coverage: Coverage | None = None
    failed: Mapping[str, str] = field(default_factory=dict)  # what was tried -> type of error

    @property
    def powerless(self) -> frozenset[str]:
        """Attacks that cannot support a PASS of this table."""
        return frozenset() if self.coverage is None else frozenset(self.coverage.powerless)

    def told(self) -> dict[str, list[str]]:
        """For outsiders: what was tried, without a figure of the table."""
        bad = self.coverage.bad if self.coverage else ()
        return {
            "proven": sorted({proof.attack for proof in self.proofs}),
            "refused": [each.plant for each in bad if each.refused_by],
            "without_power": sorted(self.powerless),
        }


def result_from_dict(data: Mapping[str, Any] | None) -> SelfTestResult | None:
    """Back from what ``asdict`` made of it."""
    if data is None:
        return None
    proofs = tuple(Proof(**proof) for proof in data["proofs"])
    return SelfTestResult(**{**data, "proofs": proofs, "coverage": _coverage(data["coverage"])})


def _coverage(data: Mapping[str, Any] | None) -> Coverage | None:
    if data is None:
        return None
    bad = tuple(_covered(each) for each in data["bad"])
    return Coverage(**{**data, "bad": bad, "noise": _covered(data["noise"])})


def _covered(data: Mapping[str, Any]) -> Covered:
    return Covered(data["plant"], tuple(data["refused_by"]))

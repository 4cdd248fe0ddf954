"""Scores of an audit, and the report that collects them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ppdm_core.model.self_test import SelfTestResult


@dataclass(frozen=True)
class Score:
    """A measured figure: never a bare number."""

    name: str  # "known_pairs.breach_rate", "knn_accuracy"
    kind: Literal["privacy", "utility"]
    better: Literal["up", "down"]
    value: float  # mean over the shadow draws
    low: float
    high: float
    n: int  # records behind the interval
    baseline: float  # the same for somebody who ignores the release
    worst: float  # of the draws
    worst_decile: float | None = None  # on the most isolated tenth of the records
    worst_group: float | None = None  # of the declared groups
    group: str | None = None  # which one that is
    original: float | None = None  # utility only: the same on the original table
    candidate: str | None = None  # which of the attack's candidates was worst (an oracle's choice)
    expected: float | None = None  # what the attacker itself, without the truth, computes for it
    victims: float | None = None  # on the tenth of the records that the attacker is surest of
    notes: Mapping[str, float] = field(default_factory=dict)  # what it can tell of its own work
    sentence: str = ""


@dataclass(frozen=True)
class AuditReport:
    scores: tuple[Score, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)  # name -> why it does not apply
    failed: Mapping[str, str] = field(default_factory=dict)  # name -> type of error, no message
    not_run: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # released columns that no attack reads
    copied: tuple[str, ...] = ()  # those of them that name people
    doubts: tuple[str, ...] = ()  # why too little is known for a PASS, whatever was measured
    reasons: Mapping[str, str] = field(default_factory=dict)  # why they were not run, where told
    self_test: SelfTestResult | None = None  # None: the audit did not test itself

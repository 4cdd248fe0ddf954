"""Scores of an audit, and the report that collects them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ppdm_core.model.reasons import Skip
from ppdm_core.model.self_test import SelfTestResult


@dataclass(frozen=True)
class Score:
    """A measured figure with its interval and baseline."""

    name: str  # "known_pairs.breach_rate", "knn_accuracy"
    kind: Literal["privacy", "utility"]
    better: Literal["up", "down"]
    value: float  # mean over the shadow draws
    low: float
    high: float
    n: int  # records behind the interval
    baseline: float  # the same for an attacker who ignores the release
    worst: float  # of the draws
    worst_decile: float | None = None  # on the most isolated tenth of the records
    worst_group: float | None = None  # of the declared groups
    group: str | None = None  # which one that is
    original: float | None = None  # utility only: the same on the original table
    candidate: str | None = None  # the attack's worst candidate, chosen with the truth
    expected: float | None = None  # what the attacker itself, without the truth, computes for it
    victims: float | None = None  # on the tenth of the records that the attacker is surest of
    is_certifiable: bool = True  # False: of too few records; a limit can fail, and needs no proof
    notes: Mapping[str, float] = field(default_factory=dict)  # details of the attack's own work
    story: str = ""  # who the attacker is; the sentence without its figures
    sentence: str = ""


@dataclass(frozen=True)
class AuditReport:
    """What all audits of a release found."""

    scores: tuple[Score, ...]
    skipped: Mapping[str, Skip] = field(default_factory=dict)  # audits that do not apply
    failed: Mapping[str, str] = field(default_factory=dict)  # name -> type of error, no message
    not_run: Mapping[str, Skip] = field(default_factory=dict)  # audits that were not tried
    unread: tuple[str, ...] = ()  # released columns that no attack reads
    copied: tuple[str, ...] = ()  # those of them that name persons
    leaks: tuple[str, ...] = ()  # what is certainly given away, besides values
    doubts: tuple[str, ...] = ()  # why a PASS is not possible, whatever was measured
    self_test: SelfTestResult | None = None  # None: the audit did not test itself


def is_sound(score: Score) -> bool:
    """Return whether all figures are finite, in order, and measured on at least one record."""
    figures = (score.value, score.low, score.high, score.baseline, score.worst)
    is_ordered = score.low <= score.value <= score.high
    return score.n > 0 and all(map(math.isfinite, figures)) and is_ordered

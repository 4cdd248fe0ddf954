"""The interface of a gate, and what it judges by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ppdm_core.model.advice import Advice
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.policy import Policy
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding


@dataclass(frozen=True)
class GateInput:
    """Everything that the gates judge by."""

    report: AuditReport
    guarantee: Guarantee
    method: str
    policy: Policy
    owner: str = ""  # of the release
    audience: str = ""
    has_numbers: bool = True  # a numeric feature is released
    code_version: str = ""  # of the run that is judged
    balance: LedgerBalance | None = None  # None: the ledger was not read, which fails
    advice: Advice = field(default_factory=Advice)  # what the method can change


class Gate(Protocol):
    """One check of a release, which yields its findings."""

    name: ClassVar[str]
    judges_settings: ClassVar[bool] = False  # another method or parameter can change its findings

    def check(self, gate_input: GateInput) -> Iterator[Finding]: ...

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ppdm_core.model.ledger import Account
from ppdm_core.model.policy import Policy
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding


@dataclass(frozen=True)
class Evidence:
    """All that the gates may judge by."""

    report: AuditReport
    guarantee: Guarantee
    method: str
    policy: Policy
    has_numbers: bool = True  # a numeric feature is released
    code_version: str = ""  # of the run that is judged
    account: Account | None = None  # None: the ledger was not asked, which passes nothing


class Gate(Protocol):
    name: ClassVar[str]

    def check(self, evidence: Evidence) -> Iterator[Finding]: ...

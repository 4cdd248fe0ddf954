from __future__ import annotations

from typing import Any

import pytest

from ppdm_core.model.errors import Refused
from ppdm_core.model.verdict import Finding, Outcome, Verdict
from warehouse.publishing.publish import check_verdict


@pytest.mark.parametrize(
    ("outcome", "finding"), [("PASS", "REVIEW"), ("REVIEW", "FAIL"), ("REVIEW", "PASS")]
)
def test_check_verdict_outcome_contradicts_finding_refused(outcome: Outcome, finding: Outcome):
    verdict = Verdict(outcome, (Finding("check", finding, "why"),), "p", "d", "c")
    request: Any = type("Request", (), {"run": type("Run", (), {"release_id": "t-0001"})})
    with pytest.raises(Refused, match="not a PASS"):
        check_verdict(verdict, "d", request)

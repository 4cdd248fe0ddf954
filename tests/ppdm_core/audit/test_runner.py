"""What a failed, skipped or unsound audit becomes in the report."""

from __future__ import annotations

import math
from dataclasses import replace

from ppdm_core.audit.runner import Attempt, attempt, run_audit
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason, Skip
from tests.contract.gate_inputs import LINK, make_score

SOUND = make_score(LINK, 0.02)


def test_attempt_error_type_without_message():
    def fail() -> None:
        raise ArithmeticError("quotes a cell")

    assert attempt(fail) == Attempt(error="ArithmeticError")


def test_attempt_not_applicable_skip():
    def skip() -> None:
        raise NotApplicable("It needs a number.", reason=Reason.NO_NUMERIC_COLUMN)

    found = attempt(skip)
    assert found.error is None and found.skip is not None
    assert found.skip.reason is Reason.NO_NUMERIC_COLUMN


def test_run_audit_each_ending_reported():
    endings = {
        "sound": Attempt((SOUND,)),
        "skipped": Attempt(skip=Skip(Reason.NO_CONTROL)),
        "failed": Attempt(error="MemoryError"),
        "empty": Attempt(()),
        "one unsound": Attempt((SOUND, replace(SOUND, value=math.nan))),
    }
    report = run_audit(endings.__getitem__, tuple(endings))
    assert report.scores == (SOUND,)
    assert list(report.skipped) == ["skipped"]
    failed = {"failed": "MemoryError", "empty": "NoScore", "one unsound": "NotANumber"}
    assert report.failed == failed

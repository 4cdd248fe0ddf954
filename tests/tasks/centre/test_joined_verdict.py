"""What the centre of parties with other columns judges itself."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ppdm_core.audit.self_test.matrix import REPETITIONS, find_leaks
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.self_test import NOISE, LeakTest
from tasks.centre import joined_verdict

LIMITS = {name: Limit(0.1, "DPO", "few persons") for name in ("record_linkage.rate",)}


@pytest.fixture(autouse=True)
def forget_tests() -> Iterator[None]:
    """Forget what other tests found, and leave nothing to them."""
    joined_verdict.run_self_test.cache_clear()
    yield
    joined_verdict.run_self_test.cache_clear()


def judge() -> dict[str, str]:
    """Return the outcome of each check of the centre."""
    context: Any = SimpleNamespace(method="dct_fuzzy", policy=Policy((), LIMITS))
    guarantee = Guarantee("bounded_given_basis", 1.0, 1.0, 1.0)
    few = Score("record_linkage.rate", "privacy", "down", 0.01, 0.0, 0.02, 400, 0.0, 0.01)
    findings = joined_verdict.judge_sums(context, guarantee, AuditReport((few,)))
    return {each.check: each.outcome for each in findings}


@pytest.mark.parametrize(("noticed", "outcome"), [(REPETITIONS, "PASS"), (0, "FAIL")])
def test_judge_sums_attacks_must_notice_planted_leaks(
    monkeypatch: pytest.MonkeyPatch, noticed: int, outcome: str
):
    def run_tests(name: str) -> Iterator[LeakTest]:
        for leak in find_leaks(name):
            yield LeakTest(name, leak, noticed, REPETITIONS)
        yield LeakTest(name, NOISE, 0, REPETITIONS)

    monkeypatch.setattr(joined_verdict, "run_leak_tests", run_tests)
    found = judge()
    assert found["self_test.attacks"] == outcome
    assert found["record_linkage.rate"] == "PASS"


def test_list_unproven_installed_attacks_work():
    assert joined_verdict.list_unproven() == []

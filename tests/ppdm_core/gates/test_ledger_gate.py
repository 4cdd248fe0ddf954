from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from ppdm_core.gates import GATES, GateInput
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.verdict import Finding
from tests.contract.gate_inputs import make_good_input, make_limit

LN_1000 = math.log(1000.0)


def judged(account: LedgerBalance, waiver: str = "", **lines: Any) -> dict[str, Finding]:
    limits = {f"ledger.{name}": line for name, line in lines.items()}
    policy = replace(make_good_input().policy, limits=limits, collusion_waiver=waiver)
    gate_input: GateInput = replace(make_good_input(), policy=policy, balance=account)
    return {finding.check: finding for finding in GATES["ledger"].check(gate_input)}


@pytest.mark.parametrize(
    ("times", "line", "review", "outcome"),
    [
        (4, 1e12, None, "PASS"),  # in spite of rounding errors in sums of logarithms
        (4, 0.999e12, None, "FAIL"),
        (5, 1e12, None, "FAIL"),
        (4, 1e15, 1e12, "PASS"),
        (5, 1e15, 1e12, "REVIEW"),
        (6, 1e15, 1e12, "FAIL"),
    ],
)
def test_ledger_gate_gammas_multiply(
    times: int, line: float, review: float | None, outcome: str
) -> None:
    spent = sum([LN_1000] * (times - 1))
    account = LedgerBalance(spent=spent, asked=LN_1000, after=spent + LN_1000, records=9)
    assert (
        judged(account, record=make_limit(line, review=review))["ledger.record"].outcome == outcome
    )


def test_ledger_gate_pass_reports_room() -> None:
    account = LedgerBalance(spent=LN_1000, asked=LN_1000, after=2 * LN_1000, records=9)
    why = judged(account, record=make_limit(1e12))["ledger.record"].why
    for words in (
        "by up to 1,000, ",
        "9 records",
        "1e+12, which is e^27.6",
        "2 more such releases",
    ):
        assert words in why
    without_ids = judged(replace(account, has_ids=False), record=make_limit(1e9))[
        "ledger.record"
    ].why
    assert without_ids.endswith("There is room for 1 more such release.")


def test_ledger_gate_unchanged_release_over_limit_fails() -> None:
    """A lowered limit also judges what was spent before."""
    account = LedgerBalance(spent=2 * LN_1000, asked=0.0, after=2 * LN_1000, records=0, over=3)
    finding = judged(account, record=make_limit(1000.0))["ledger.record"]
    assert finding.outcome == "FAIL"
    assert "redraws no record" in finding.why and "3 records have no room" in finding.why


def test_ledger_gate_without_limit_passes() -> None:
    finding = judged(LedgerBalance(0.0, math.inf, math.inf, 9, unbounded=("random_rotation",)))
    assert list(finding) == ["ledger.record"]
    assert finding["ledger.record"].outcome == "PASS"
    assert "No limit is set." in finding["ledger.record"].why


def test_ledger_gate_no_bound_fails() -> None:
    account = LedgerBalance(0.0, math.inf, math.inf, 9, unbounded=("random_rotation",))
    finding = judged(account, record=make_limit(1e300))["ledger.record"]
    assert finding.outcome == "FAIL" and "Name random_rotation in 'waive'" in finding.why
    nothing_new = LedgerBalance(0.0, 0.0, 0.0, 0, unbounded=("random_rotation",))
    assert judged(nothing_new, record=make_limit(1e300))["ledger.record"].outcome == "FAIL"


REFUSED = {
    "over the line": LedgerBalance(LN_1000, LN_1000, 2 * LN_1000, 9, over=2),
    "no bound now": LedgerBalance(
        LN_1000, math.inf, math.inf, 9, over=9, unbounded=("kde_resample",)
    ),
    "no bound before": LedgerBalance(
        math.inf, LN_1000, math.inf, 9, over=1, unbounded=("kde_resample",)
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ledger_gate_refusal_reports_spent_asked_limit_and_room(name: str) -> None:
    account = REFUSED[name]
    finding = judged(account, waiver="DPO, by contract", record=make_limit(5000.0))["ledger.record"]
    spent, asked = (
        "any factor (unbounded)" if figure == math.inf else "up to 1,000"
        for figure in (account.spent, account.asked)
    )
    assert finding.outcome == "FAIL"
    for words in (
        f"about a record by {spent}, ",
        f"asks for {asked} for 9 records",
        "Limit: 5,000 (DPO: for the test).",
        "counted separately: DPO, by contract.",
        "no room for it; no record was charged.",
        "has room for 0 more such releases.",
    ):
        assert words in finding.why


def test_ledger_gate_refused_draws_report_no_room() -> None:
    account = LedgerBalance(0.0, 0.0, 0.0, 9, draws_spent=2, draws_after=4, draws_over=1)
    why = judged(account, draws=make_limit(3))["ledger.draws"].why
    assert why.endswith(
        "no record was charged. A record that changes every time has room for 0 more such releases."
    )


@pytest.mark.parametrize(
    ("after", "review", "outcome"), [(3, None, "PASS"), (4, None, "FAIL"), (3, 2, "REVIEW")]
)
def test_ledger_gate_draws_judged_by_count(after: int, review: float | None, outcome: str) -> None:
    account = LedgerBalance(0.0, 0.0, 0.0, 9, draws_spent=2, draws_after=after, draws_over=1)
    finding = judged(account, draws=make_limit(3, review=review))["ledger.draws"]
    assert finding.outcome == outcome
    assert "up to 2 draws" in finding.why and f"up to {after}." in finding.why


def test_ledger_gate_collusion_waiver_reported() -> None:
    account = LedgerBalance(0.0, LN_1000, LN_1000, 9)
    why = judged(account, waiver="DPO, by contract", record=make_limit(1e12))["ledger.record"].why
    assert "Each audience is counted separately: DPO, by contract." in why

"""Estimates of audits of large tables, and the time limits that follow from them."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.audit.audited_part import MAX_AUDITED_RECORDS
from ppdm_core.model.policy import Policy
from tasks.audit.cost_estimate import compute_cost, limit_time

POLICY = Policy(("record_linkage", "membership"), {}, time_limit=60.0, effort="quick")


def test_compute_cost_larger_table_same_memory():
    small, large = (compute_cost((n, 20), 6, 10, POLICY, 1.0) for n in (100_000, 20_000_000))
    assert small[1] == large[1]


def test_compute_cost_ten_times_the_rows_at_most_three_times_the_seconds():
    one, ten = (compute_cost((n, 20), 6, 10, POLICY, 1.0)[0] for n in (10**6, 10**7))
    assert one < ten < 3 * one


def test_limit_time_part_of_a_table_searched_longer():
    assert limit_time("record_linkage", (MAX_AUDITED_RECORDS, 20), POLICY) == 60.0
    assert limit_time("record_linkage", (10**6, 20), POLICY) > 600.0
    assert limit_time("membership", (10**6, 20), POLICY) == 60.0
    patient = replace(POLICY, time_limit=1e6)
    assert limit_time("record_linkage", (10**6, 20), patient) == 1e6

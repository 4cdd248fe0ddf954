"""[schedule] accepts the cron expressions that Prefect's scheduler can read."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect._vendor.croniter import CroniterBadDateError, croniter

from flows.config.sections import CRON_FIELDS, CronField, ScheduleSpec
from ppdm_core.model.errors import BadInput


@pytest.mark.parametrize(
    "cron", ["* * * * *", "0 3 * * 1", "*/10 0-6 1,15 jan-mar MON", "5 4 31 12 7", "0 0 * * sun,3"]
)
def test_schedule_valid_cron_is_accepted(cron: str) -> None:
    assert ScheduleSpec(cron=cron).cron == cron


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("60 * * * *", "The minute '60'"),
        ("0 25 * * *", "The hour '25'"),
        ("0 3 0 * *", "The day '0'"),
        ("0 3 * foo *", "The month 'foo'"),
        ("0 3 * * 8", "The weekday '8'"),
        ("0 6-3 * * *", "The hour '6-3'"),
        ("0 1-2-3 * * *", "The hour '1-2-3'"),
        ("*/0 * * * *", "The minute '*/0'"),
        ("*/ * * * *", "The minute '*/'"),
        ("1, * * * *", "The minute '1,'"),
        ("-1 * * * *", "The minute '-1'"),
    ],
)
def test_schedule_invalid_cron_names_the_field(cron: str, words: str) -> None:
    with pytest.raises(BadInput) as problem:
        ScheduleSpec(cron=cron)
    assert words in problem.value.message
    assert "*/10" in (problem.value.remedy or "")


def part(field: CronField) -> st.SearchStrategy[str]:
    number = st.integers(field.low, field.high)
    names = st.sampled_from(field.words.split()) if field.words else st.nothing()
    spans = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    base = st.one_of(st.just("*"), number.map(str), names, spans)
    stepped = st.tuples(st.one_of(st.just("*"), spans), st.integers(1, 20)).map(
        lambda both: f"{both[0]}/{both[1]}"
    )
    return st.lists(st.one_of(base, stepped), min_size=1, max_size=3).map(",".join)


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 30,31 feb *", "0 0 31 4,6,9,11 *"])
def test_schedule_impossible_day_raises(cron: str) -> None:
    with pytest.raises(BadInput, match="does not exist in that month"):
        ScheduleSpec(cron=cron)


@given(st.tuples(*map(part, CRON_FIELDS)).map(" ".join))
def test_schedule_any_cron_agrees_with_scheduler(cron: str) -> None:
    times = croniter(cron, datetime(2026, 1, 1, tzinfo=UTC))
    with suppress(CroniterBadDateError):
        assert times.get_next()
        assert ScheduleSpec(cron=cron)
        return
    with pytest.raises(BadInput, match="does not exist in that month"):
        ScheduleSpec(cron=cron)

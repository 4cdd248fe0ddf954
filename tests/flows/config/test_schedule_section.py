"""[schedule] accepts the cron expressions that Prefect's scheduler can read."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from prefect._vendor.croniter import CroniterBadDateError, croniter
from prefect.client.schemas.schedules import CronSchedule
from pydantic import ValidationError

from flows.config.schedule_section import CRON_FIELDS, ScheduleSpec
from ppdm_core.settings.errors import find_problems


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
        ("H * * * *", "The minute 'H'"),
        ("0 0 L * *", "The day 'L'"),
        ("0 0 LW * *", "The day 'LW'"),
        ("0 0 * * mon#1", "The weekday 'mon#1'"),
        ("0 0 * * 5L", "The weekday '5L'"),
    ],
)
def test_schedule_invalid_cron_names_the_field(cron: str, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ScheduleSpec(cron=cron)
    problem = find_problems(caught.value, {})
    assert words in problem.message
    assert "*/10" in (problem.remedy or "")


@pytest.mark.parametrize("cron", ["@hourly", "* * * *", "0 * * * * *", "0 0 * * 1 2026"])
def test_schedule_not_five_fields_raises(cron: str) -> None:
    with pytest.raises(ValidationError, match="String should match pattern"):
        ScheduleSpec(cron=cron)


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 30,31 feb *", "0 0 31 4,6,9,11 *"])
def test_schedule_impossible_day_raises(cron: str) -> None:
    with pytest.raises(ValidationError, match="does not exist in that month"):
        ScheduleSpec(cron=cron)


NAMES = {
    "month": "jan feb mar apr may jun jul aug sep oct nov dec",
    "weekday": "sun mon tue wed thu fri sat",
}


def part(name: str) -> st.SearchStrategy[str]:
    number = st.integers(*CRON_FIELDS[name])
    names = st.sampled_from(NAMES[name].split()) if name in NAMES else st.nothing()
    spans = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    base = st.one_of(st.just("*"), number.map(str), names, spans)
    stepped = st.tuples(st.one_of(st.just("*"), spans), st.integers(1, 20)).map(
        lambda both: f"{both[0]}/{both[1]}"
    )
    return st.lists(st.one_of(base, stepped), min_size=1, max_size=3).map(",".join)


@given(st.tuples(*map(part, CRON_FIELDS)).map(" ".join))
@example("0 0 30 2 *")
def test_schedule_any_cron_agrees_with_scheduler(cron: str) -> None:
    weekday = cron.split()[4]  # with */2 and an impossible day, Prefect reads "or", cron "and"
    assume(weekday == "*" or not weekday.startswith("*"))
    times = croniter(cron, datetime(2026, 1, 1, tzinfo=UTC))
    with suppress(CroniterBadDateError):
        assert times.get_next()
        assert ScheduleSpec(cron=cron)
        return
    with pytest.raises(ValidationError, match="does not exist in that month"):
        ScheduleSpec(cron=cron)


FIELD_TEXT = st.text("0159*,/-LW#?hRfeb", min_size=1, max_size=5)


@pytest.mark.slow
@given(st.sampled_from(list(CRON_FIELDS)), FIELD_TEXT)
@settings(max_examples=1000)
def test_schedule_any_accepted_field_is_scheduled(name: str, text: str) -> None:
    cron = " ".join(text if name == each else "*" for each in CRON_FIELDS)
    with suppress(ValidationError):
        assert CronSchedule(cron=ScheduleSpec(cron=cron).cron)
        assert croniter(cron, datetime(2026, 1, 1, tzinfo=UTC)).get_next()

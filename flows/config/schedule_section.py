"""The [schedule] section of a release file."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError
from pydantic import Field, model_validator

from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.settings.errors import report_as_value_error, suggest_name
from ppdm_core.settings.sections import Section

CRON_FIELDS = {
    "minute": (0, 59),
    "hour": (0, 23),
    "day": (1, 31),
    "month": (1, 12),
    "weekday": (0, 7),
}
# Prefect's own check names no field, accepts days that no month has (31 February), and would import
# Prefect for every `ppdm check`. Tests compare the two.
# Letters are names such as mon: cronsim and Prefect understand L, W and # differently.
CRON_FIELD = re.compile(r"([0-9*,/-]|[A-Za-z]{3})+")


def _has_times(cron: str) -> bool:
    try:
        CronSim(cron, datetime.now(UTC))
    except CronSimError:
        return False
    return True


class ScheduleSpec(Section):
    """When the release is repeated."""

    cron: str = Field(pattern=r"^\S+( +\S+){4}$", description="Five cron fields.")
    timezone: str = Field(default="UTC", description="Name of a time zone, e.g. Europe/Berlin.")

    @model_validator(mode="after")
    @report_as_value_error
    def _check_both(self) -> ScheduleSpec:
        errors = ErrorList()
        for check in (self._check_cron, self._check_timezone):
            with errors.collect():
                check()
        errors.raise_all()
        return self

    def _check_cron(self) -> None:
        texts = self.cron.split()
        for place, (text, (name, ends)) in enumerate(zip(texts, CRON_FIELDS.items(), strict=True)):
            alone = ["*"] * place + [text] + ["*"] * (4 - place)
            if not CRON_FIELD.fullmatch(text) or not _has_times(" ".join(alone)):
                raise BadInput(
                    f"The {name} '{text}' of 'cron' in [schedule] is not valid.",
                    remedy=f"Use *, or numbers from {ends[0]} to {ends[1]}, "
                    "as in 5, 1-5, 1,15 or */10.",
                )
        if not _has_times(self.cron):
            raise BadInput(
                "The day of 'cron' in [schedule] does not exist in that month.",
                remedy="Choose another day or month.",
            )

    def _check_timezone(self) -> None:
        try:
            zoneinfo.ZoneInfo(self.timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise BadInput(
                f"Unknown time zone '{self.timezone}' in [schedule].",
                remedy=suggest_name(self.timezone, zoneinfo.available_timezones() | {"UTC"}),
            ) from None

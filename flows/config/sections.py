"""The sections of a release file, but for its columns."""

from __future__ import annotations

import math
import re
import zoneinfo
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from flows.config.columns import Section
from flows.config.errors import nearest
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Effort
from ppdm_core.model.verdict import DAY, Review

DURATION = re.compile(r"(\d+(?:\.\d+)?) *(s|min|h|days?)")
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": DAY, "days": DAY}


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError('must be a time such as "10 min", "14 days", or a number of seconds')
    return float(match[1]) * SECONDS[match[2]]


Seconds = Annotated[float, BeforeValidator(_seconds)]


class DatasetSpec(Section):
    """What is released, by whom, for whom."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,39}$",
        description="Short name: lower-case letters, digits and '_', at most 40.",
    )
    owner: str = Field(min_length=1, description="The author of the release; may not approve it.")
    audience: str = Field(min_length=1, description="Who will receive the release.")
    record_id: str | None = Field(
        default=None, description="Column that names a record stably; its role is identifier."
    )
    keep_raw: int = Field(default=1, ge=1, description="Runs whose private tables are kept.")


class SourceSpec(Section):
    """Where the private table is."""

    kind: Literal["csv", "parquet", "duckdb"] = Field(description="Format of the source.")
    path: str = Field(min_length=1, description="File; relative paths start at the release file.")
    table: str | None = Field(default=None, description="Table of a DuckDB file.")
    delimiter: str | None = Field(
        default=None, min_length=1, max_length=1, description="CSV only; sniffed if not given."
    )
    quote: str | None = Field(
        default=None, min_length=1, max_length=1, description="CSV only; sniffed if not given."
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> SourceSpec:
        if self.kind == "duckdb" and self.table is None:
            raise BadInput("A duckdb source needs a table.", remedy="Add 'table' to [source].")
        misfits = {"table": "duckdb", "delimiter": "csv", "quote": "csv"}
        for key, kind in misfits.items():
            if getattr(self, key) is not None and self.kind != kind:
                raise BadInput(
                    f"The '{key}' key of [source] is for {kind} sources only.",
                    remedy=f"Remove '{key}'.",
                )
        return self


def _as_free_text(schema: dict[str, Any]) -> None:
    """A form would show the named field alone and hide the parameters of the method."""
    schema.pop("properties", None)
    schema.pop("required", None)
    schema["additionalProperties"] = True


class SanitizerSpec(Section):
    """The method, and its parameters as further keys; see `ppdm methods NAME`."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_as_free_text)
    method: str = Field(description="Name of the sanitizer.")

    @model_validator(mode="after")
    def _has_plain_parameters(self) -> SanitizerSpec:
        for key, value in (self.model_extra or {}).items():
            if not _is_plain(value):
                raise BadInput(
                    f"The '{key}' key of [sanitizer] must be a finite number, text, "
                    "true, false, a list or a table of these.",
                    remedy=f"Change '{key}'.",
                )
        return self


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(each) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_plain(each) for each in value)
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


class AttackerSpec(Section):
    """What the outsider is assumed to know."""

    known_records: int = Field(default=0, ge=0, description="Records the attacker knows in full.")
    sample_share: float = Field(
        default=0.0, ge=0, lt=1, description="Share of the population the attacker has a sample of."
    )
    epsilon: float = Field(
        default=0.1, gt=0, description="Relative error below which a value counts as breached."
    )


class AuditSpec(Section):
    """Which attacks must have run before anything is published."""

    required: list[str] = Field(min_length=1, description="Names of the required attacks.")
    shadow_draws: int = Field(
        default=3, ge=1, le=20, description="Draws that are attacked in place of the published one."
    )
    splits: int = Field(
        default=5, ge=0, le=20, description="Draws of a random half, for attacks on membership."
    )
    effort: Effort = Field(
        default="standard",
        description="quick: only the required attacks; standard: all; thorough: wider searches.",
    )
    groups: list[str] = Field(
        default_factory=list,
        description="Categorical columns whose groups of people are looked at apart.",
    )
    time_limit: Seconds = Field(
        default=600.0, gt=0, description='Seconds for each attack; "10 min" in a file.'
    )


class LimitSpec(Section):
    """A line that a steward drew."""

    value: float = Field(description="The limit; its direction comes from the metric.")
    set_by: str = Field(min_length=1, description="Who set it.")
    reason: str = Field(min_length=1, description="Why it is there.")
    absolute: bool = Field(
        default=False, description="On the value itself, not on its excess over the baseline."
    )
    waive: list[str] = Field(
        default_factory=list,
        description="On gamma only: methods without a bound that may pass.",
    )
    review: float | None = Field(
        default=None, description="On the way to 'value': from here on people decide."
    )


class ReviewSpec(Section):
    """What it takes to publish a release that the gate leaves to people."""

    approvals: int = Field(
        default=Review.approvals,
        ge=1,
        le=10,
        description="How many people must approve it; none of them its author.",
    )
    lapses_after: Seconds = Field(
        default=Review.lapses_after,
        gt=0,
        description='After so many seconds an approval no longer counts; "14 days" in a file.',
    )


class LedgerSpec(Section):
    """Who is counted together, over all releases of the dataset."""

    collusion_waiver: str = Field(
        default="",
        description="Who vouches that audiences never put their releases together, and why; "
        "then each audience has an account of its own.",
    )


class SinkSpec(Section):
    """How the release leaves."""

    kind: Literal["parquet"] = Field(default="parquet", description="Format of the release.")


@dataclass(frozen=True)
class CronField:
    name: str
    low: int
    high: int
    words: str = ""  # the first one stands for ``low``

    def numbers(self, text: str) -> set[int] | None:
        """What the field stands for; None if it cannot be read."""
        parts = [self._part(part) for part in text.split(",")]
        return None if None in parts else set().union(*(part or () for part in parts))

    def _part(self, part: str) -> range | None:
        span, slash, step = part.partition("/")
        if slash and not (step.isdecimal() and int(step) > 0):
            return None
        if span == "*":
            return range(self.low, self.high + 1, int(step or 1))
        ends = [self._number(word) for word in span.split("-")]
        if len(ends) > 2 or ends[0] is None or ends[-1] is None or ends[0] > ends[-1]:
            return None
        last = self.high if slash and len(ends) == 1 else ends[-1]
        return range(ends[0], last + 1, int(step or 1))

    def _number(self, word: str) -> int | None:
        words = self.words.split()
        if word in words:
            return self.low + words.index(word)
        is_known = word.isdecimal() and self.low <= int(word) <= self.high
        return int(word) if is_known else None


CRON = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day", 1, 31),
    CronField("month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"),
    CronField("weekday", 0, 7, "sun mon tue wed thu fri sat"),
)


LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class ScheduleSpec(Section):
    """When the release is repeated."""

    cron: str = Field(pattern=r"^\S+( +\S+){4}$", description="Five cron fields.")
    timezone: str = Field(default="UTC", description="Name of a time zone, e.g. Europe/Berlin.")

    @model_validator(mode="after")
    def _has_a_time(self) -> ScheduleSpec:
        texts = self.cron.lower().split()
        found = [field.numbers(text) for text, field in zip(texts, CRON, strict=True)]
        for text, field, numbers in zip(texts, CRON, found, strict=True):
            if numbers is None:
                raise BadInput(
                    f"The {field.name} '{text}' of 'cron' in [schedule] cannot be read.",
                    remedy=f"Use *, or numbers from {field.low} to {field.high}, "
                    "as in 5, 1-5, 1,15 or */10.",
                )
        days, months = found[2] or set(), found[3] or set()
        if texts[4] == "*" and min(days) > max(LONGEST_MONTHS[month - 1] for month in months):
            raise BadInput(
                "The day of 'cron' in [schedule] never comes in that month.",
                remedy="Choose another day or month.",
            )
        return self

    @model_validator(mode="after")
    def _knows_the_timezone(self) -> ScheduleSpec:
        try:
            zoneinfo.ZoneInfo(self.timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise BadInput(
                f"Unknown time zone '{self.timezone}' in [schedule].",
                remedy=nearest(self.timezone, zoneinfo.available_timezones() | {"UTC"}),
            ) from None
        return self

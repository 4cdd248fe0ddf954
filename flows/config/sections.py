"""The sections of a release file other than its columns."""

from __future__ import annotations

import math
import re
import zoneinfo
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from flows.config.columns import Section
from flows.config.errors import suggest_name
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Effort
from ppdm_core.model.verdict import DAY, Review

DURATION = re.compile(r"(\d+(?:\.\d+)?) *(s|min|h|days?)")
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": DAY, "days": DAY}


def _parse_seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError('must be a time such as "10 min", "14 days", or a number of seconds')
    return float(match[1]) * SECONDS[match[2]]


Seconds = Annotated[float, BeforeValidator(_parse_seconds)]


class DatasetSpec(Section):
    """The name, owner and audience of a release."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,39}$",
        description="Short name: lower-case letters, digits and '_', at most 40.",
    )
    owner: str = Field(min_length=1, description="The author of the release; may not approve it.")
    audience: str = Field(min_length=1, description="Who will receive the release.")
    record_id: str | None = Field(
        default=None,
        description="Column that identifies a record in every delivery; its role is identifier.",
    )
    keep_raw: int = Field(
        default=1, ge=1, description="Number of runs whose private tables are stored."
    )


class SourceSpec(Section):
    """The place and format of the private table."""

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
    def _check_keys_of_kind(self) -> SourceSpec:
        if self.kind == "duckdb" and self.table is None:
            raise BadInput("A duckdb source needs a table.", remedy="Add 'table' to [source].")
        kinds = {"table": "duckdb", "delimiter": "csv", "quote": "csv"}
        for key, kind in kinds.items():
            if getattr(self, key) is not None and self.kind != kind:
                raise BadInput(
                    f"The '{key}' key of [source] is for {kind} sources only.",
                    remedy=f"Remove '{key}'.",
                )
        return self


def _allow_any_properties(schema: dict[str, Any]) -> None:
    """Let a form accept any key: it would hide the parameters of the method else."""
    schema.pop("properties", None)
    schema.pop("required", None)
    schema["additionalProperties"] = True


class SanitizerSpec(Section):
    """The method, and its parameters as further keys; see `ppdm methods NAME`."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_allow_any_properties)
    method: str = Field(description="Name of the sanitizer.")

    @model_validator(mode="after")
    def _check_parameters(self) -> SanitizerSpec:
        for key, value in (self.model_extra or {}).items():
            if not _is_plain_value(value):
                raise BadInput(
                    f"The '{key}' key of [sanitizer] must be a finite number, text, "
                    "true, false, a list or a table of these.",
                    remedy=f"Change '{key}'.",
                )
        return self


def _is_plain_value(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain_value(each) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_plain_value(each) for each in value)
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


class AttackerSpec(Section):
    """What the attacker is assumed to know."""

    known_records: int = Field(
        default=0, ge=0, description="Number of records that the attacker knows completely."
    )
    sample_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Size of the attacker's sample of the population, as a share of it.",
    )
    epsilon: float = Field(
        default=0.1, gt=0, description="Relative error below which a value counts as recovered."
    )


class AuditSpec(Section):
    """Which attacks must have run before a release is published."""

    required: list[str] = Field(min_length=1, description="Names of the required attacks.")
    shadow_draws: int = Field(
        default=3, ge=1, le=20, description="Draws that are attacked instead of the published one."
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
        description="Categorical columns whose groups are measured separately.",
    )
    time_limit: Seconds = Field(
        default=600.0, gt=0, description='Seconds for each attack; "10 min" in a file.'
    )


class LimitSpec(Section):
    """A limit that a steward set."""

    value: float = Field(description="The limit; its direction comes from the metric.")
    set_by: str = Field(min_length=1, description="Person or body that set it.")
    reason: str = Field(min_length=1, description="Reason for the limit.")
    absolute: bool = Field(
        default=False,
        description="Limits the value itself instead of its excess over the baseline.",
    )
    waive: list[str] = Field(
        default_factory=list,
        description="For limits on gamma: methods without a bound that may pass.",
    )
    review: float | None = Field(
        default=None, description="Stricter than 'value': between the two, a reviewer decides."
    )


class ReviewSpec(Section):
    """What a release in review needs to be published."""

    approvals: int = Field(
        default=Review.approvals,
        ge=1,
        le=10,
        description="Number of approvals; the author's does not count.",
    )
    lapses_after: Seconds = Field(
        default=Review.lapses_after,
        gt=0,
        description='Seconds after which an approval no longer counts; "14 days" in a file.',
    )


class LedgerSpec(Section):
    """Which audiences are counted together, over all releases of the dataset."""

    collusion_waiver: str = Field(
        default="",
        description="Who guarantees that audiences never combine their releases, and why; "
        "then each audience has a separate account.",
    )


class SinkSpec(Section):
    """How the release is written."""

    kind: Literal["parquet"] = Field(default="parquet", description="Format of the release.")


@dataclass(frozen=True)
class CronField:
    """One of the five fields of a cron expression."""

    name: str
    low: int
    high: int
    words: str = ""  # names of the numbers, starting at ``low``

    def parse(self, text: str) -> set[int] | None:
        """Return the numbers that a text matches, or None if it is not valid."""
        parts = [self._parse_part(part) for part in text.split(",")]
        return None if None in parts else set().union(*(part or () for part in parts))

    def _parse_part(self, part: str) -> range | None:
        span, slash, step = part.partition("/")
        if slash and not (step.isdecimal() and int(step) > 0):
            return None
        if span == "*":
            return range(self.low, self.high + 1, int(step or 1))
        ends = [self._parse_number(word) for word in span.split("-")]
        if len(ends) > 2 or ends[0] is None or ends[-1] is None or ends[0] > ends[-1]:
            return None
        last = self.high if slash and len(ends) == 1 else ends[-1]
        return range(ends[0], last + 1, int(step or 1))

    def _parse_number(self, word: str) -> int | None:
        words = self.words.split()
        if word in words:
            return self.low + words.index(word)
        is_known = word.isdecimal() and self.low <= int(word) <= self.high
        return int(word) if is_known else None


CRON_FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day", 1, 31),
    CronField("month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"),
    CronField("weekday", 0, 7, "sun mon tue wed thu fri sat"),
)


MAX_DAYS_OF_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class ScheduleSpec(Section):
    """When the release is repeated."""

    cron: str = Field(pattern=r"^\S+( +\S+){4}$", description="Five cron fields.")
    timezone: str = Field(default="UTC", description="Name of a time zone, e.g. Europe/Berlin.")

    @model_validator(mode="after")
    def _check_cron(self) -> ScheduleSpec:
        texts = self.cron.lower().split()
        found = [field.parse(text) for text, field in zip(texts, CRON_FIELDS, strict=True)]
        for text, field, numbers in zip(texts, CRON_FIELDS, found, strict=True):
            if numbers is None:
                raise BadInput(
                    f"The {field.name} '{text}' of 'cron' in [schedule] is not valid.",
                    remedy=f"Use *, or numbers from {field.low} to {field.high}, "
                    "as in 5, 1-5, 1,15 or */10.",
                )
        days, months = found[2] or set(), found[3] or set()
        if texts[4] == "*" and min(days) > max(MAX_DAYS_OF_MONTH[month - 1] for month in months):
            raise BadInput(
                "The day of 'cron' in [schedule] does not exist in that month.",
                remedy="Choose another day or month.",
            )
        return self

    @model_validator(mode="after")
    def _check_timezone(self) -> ScheduleSpec:
        try:
            zoneinfo.ZoneInfo(self.timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise BadInput(
                f"Unknown time zone '{self.timezone}' in [schedule].",
                remedy=suggest_name(self.timezone, zoneinfo.available_timezones() | {"UTC"}),
            ) from None
        return self

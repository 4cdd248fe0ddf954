"""The sections of a release file other than its columns and its schedule."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from flows.config.columns import Section
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

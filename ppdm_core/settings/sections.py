"""The sections that release files and policy files have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ppdm_core.model.policy import Limit
from ppdm_core.model.verdict import DAY

DURATION = re.compile(r"(\d+(?:\.\d+)?) *(s|min|h|days?)")
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": DAY, "days": DAY}


class Section(BaseModel):
    """A section of the file; unknown keys and wrong types are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _parse_seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError('must be a time such as "10 min", "14 days", or a number of seconds')
    return float(match[1]) * SECONDS[match[2]]


Seconds = Annotated[float, BeforeValidator(_parse_seconds)]


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


class LimitSpec(Section):
    """A limit that a steward set."""

    value: float = Field(description="The limit; its direction comes from the metric.")
    set_by: str = Field(
        default="", description="Person or body that set it; without one, a reviewer decides."
    )
    reason: str = Field(default="", description="Reason for the limit.")
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


def build_limits(specs: Mapping[str, LimitSpec]) -> dict[str, Limit]:
    """Return the limits of a file as the policy holds them."""
    return {
        name: Limit(
            spec.value, spec.set_by, spec.reason, spec.absolute, tuple(spec.waive), spec.review
        )
        for name, spec in specs.items()
    }

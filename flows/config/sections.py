"""The sections of a release file other than its columns and its schedule."""

from __future__ import annotations

import math
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.model.policy import Effort
from ppdm_core.model.verdict import Review
from ppdm_core.settings.errors import report_as_value_error
from ppdm_core.settings.sections import Seconds, Section
from warehouse.home import DATASET_NAME


class DatasetSpec(Section):
    """The name, owner and audience of a release."""

    name: str = Field(
        pattern=DATASET_NAME,
        description="Short name: lower-case letters, digits and '_', at most 40.",
    )
    owner: str = Field(
        default="",
        description="The author of the release, who may not approve it; without one, a reviewer "
        "decides.",
    )
    audience: str = Field(
        default="", description="Who will receive the release; without one, a reviewer decides."
    )
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
    @report_as_value_error
    def _check_parameters(self) -> SanitizerSpec:
        errors = ErrorList()
        for key, value in (self.model_extra or {}).items():
            if not _is_plain_value(value):
                why = (
                    f"The '{key}' key of [sanitizer] must be a finite number, text, "
                    "true, false, a list or a table of these."
                )
                errors.add(BadInput(why, remedy=f"Change '{key}'."))
        errors.raise_all()
        return self


def _is_plain_value(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain_value(each) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_plain_value(each) for each in value)
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


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
    tuning: bool = Field(
        default=True, description="Whether `ppdm tune` may choose settings on the data."
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
    decide_within: Seconds | None = Field(
        default=Review.decide_within,
        gt=0,
        description="Seconds after the verdict in which a reviewer can approve; without it, there "
        "is no deadline.",
    )


class LedgerSpec(Section):
    """Which audiences are counted together, over all releases of the dataset."""

    collusion_waiver: str = Field(
        default="",
        description="Who guarantees that audiences never combine their releases, and why; "
        "then each audience has a separate account.",
    )

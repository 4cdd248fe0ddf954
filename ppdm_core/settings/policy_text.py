"""The policy that judges a release which any tool made: attacker, required attacks, limits."""

from __future__ import annotations

from pydantic import BaseModel, Field, ValidationError, model_validator

from ppdm_core.model.errors import ErrorList
from ppdm_core.model.policy import LABEL, Attacker, Effort, Policy
from ppdm_core.settings.errors import check_known, find_problems
from ppdm_core.settings.limits import (
    AMPLIFICATION_LIMITS,
    LEDGER_LIMITS,
    check_limit,
    check_limit_name,
)
from ppdm_core.settings.sections import AttackerSpec, LimitSpec, Seconds, Section, build_limits
from ppdm_core.settings.toml_text import parse_toml

POLICY_FILE = "policy file"  # how messages name the file


class PolicyAuditSpec(Section):
    """Which attacks must have run before a release passes."""

    required: list[str] = Field(default_factory=list, description="Names of the required attacks.")
    shadow_draws: int | None = Field(
        default=None, ge=1, le=20, description="Draws that are attacked; for releases by ppdm."
    )
    splits: int | None = Field(
        default=None, ge=0, le=20, description="Draws of a random half; for releases by ppdm."
    )
    effort: Effort = Field(
        default="standard",
        description="quick: only what is required or limited; standard: all; thorough: wider.",
    )
    time_limit: Seconds = Field(
        default=600.0, gt=0, description='Seconds for each attack; "10 min" in a file.'
    )
    tuning: bool = Field(
        default=True,
        description="Whether `ppdm tune` may choose settings on the data; for releases by ppdm.",
    )


class PolicyFile(Section):
    """What judges a release that any tool made."""

    attacker: AttackerSpec = Field(
        default_factory=AttackerSpec, description="What the attacker is assumed to know."
    )
    audit: PolicyAuditSpec = Field(
        default_factory=PolicyAuditSpec, description="Which attacks must have run."
    )
    limits: dict[str, LimitSpec] = Field(min_length=1, description="The limits that a steward set.")

    @model_validator(mode="after")
    def _check_limits(self) -> PolicyFile:
        errors = ErrorList()
        for name, limit in self.limits.items():
            with errors.collect():
                check_limit_name(name, limit.waive)
        errors.raise_all()
        return self

    def policy(self) -> Policy:
        """Return the policy that judges the release."""
        return Policy(
            required=tuple(self.audit.required),
            limits=build_limits(self.limits),
            attacker=Attacker(**self.attacker.model_dump()),
            effort=self.audit.effort,
            time_limit=self.audit.time_limit,
        )


MODELS: dict[str, type[BaseModel]] = {
    "": PolicyFile,
    "attacker": AttackerSpec,
    "audit": PolicyAuditSpec,
    "limits": LimitSpec,
}


def parse_policy(content: bytes) -> Policy:
    """Return the policy in the bytes of a policy file."""
    return parse_policy_file(content).policy()


def parse_policy_file(content: bytes) -> PolicyFile:
    """Return the checked content of a policy file."""
    try:
        file = PolicyFile.model_validate(parse_toml(content, POLICY_FILE))
    except ValidationError as error:
        raise find_problems(error, MODELS, POLICY_FILE) from None
    check_policy(file.policy())
    return file


def check_policy(policy: Policy) -> None:
    """Raise BadInput if an attack or metric does not exist, or a limit does not fit its metric."""
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.audit.self_test.matrix import check_provable
    from ppdm_core.metrics import METRICS

    errors = ErrorList()
    for name in policy.required:
        with errors.collect():
            check_known("attack", name, ATTACKS)
    for name, limit in policy.limits.items():
        if name in (*AMPLIFICATION_LIMITS, *LEDGER_LIMITS):
            continue
        with errors.collect():
            place, _, metric = name.rpartition(".")
            check_known("metric", metric, METRICS)
            if place and place != LABEL and place not in METRICS:
                check_known("attack", place.partition(".")[0], ATTACKS)
            check_limit(name, limit)
    errors.raise_all()
    check_provable(policy)

"""The policy file of `ppdm audit`: knowledge of the attacker, required attacks, limits."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, ValidationError, model_validator

from flows.config.columns import Section
from flows.config.errors import find_first_problem
from flows.config.release_file import (
    AMPLIFICATION_LIMITS,
    LEDGER_LIMITS,
    build_limits,
    check_known,
    check_limit_name,
    read_toml,
)
from flows.config.sections import AttackerSpec, LimitSpec, Seconds
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Attacker, Effort, Policy

POLICY_FILE = "policy file"  # how messages name the file
DEFAULT_POLICY = Path(__file__).with_name("default_policy.toml")


class PolicyAuditSpec(Section):
    """Which attacks must have run before a release passes."""

    required: list[str] = Field(default_factory=list, description="Names of the required attacks.")
    effort: Effort = Field(
        default="standard",
        description="quick: only what is required or limited; standard: all; thorough: wider.",
    )
    time_limit: Seconds = Field(
        default=600.0, gt=0, description='Seconds for each attack; "10 min" in a file.'
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
        for name, limit in self.limits.items():
            if name in AMPLIFICATION_LIMITS:
                raise BadInput(
                    f"The limit '{name}' cannot be judged: the method behind the files is unknown.",
                    remedy="Remove it.",
                )
            if name in LEDGER_LIMITS:
                raise BadInput(
                    f"The limit '{name}' cannot be judged: other releases of it are unknown.",
                    remedy="Remove it.",
                )
            check_limit_name(name, limit)
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


def load_policy(path: Path | None) -> Policy:
    """Return the policy in a file, or the default policy."""
    path = path or DEFAULT_POLICY
    try:
        policy = PolicyFile.model_validate(read_toml(path, POLICY_FILE)).policy()
        check_policy(policy)
        return policy
    except ValidationError as error:
        problem = find_first_problem(error, MODELS, POLICY_FILE)
    except BadInput as error:
        problem = error
    raise BadInput(problem.message, file=str(path), remedy=problem.remedy)


def check_policy(policy: Policy) -> None:
    """Raise BadInput if an attack or metric does not exist, or a limit does not fit its metric."""
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.audit.self_test.matrix import check_provable
    from ppdm_core.metrics import METRICS
    from tasks.settings_check import check_limit

    for name in policy.required:
        check_known("attack", name, ATTACKS)
    for name, limit in policy.limits.items():
        place, _, metric = name.rpartition(".")
        check_known("metric", metric, METRICS)
        if place and place not in METRICS:
            check_known("attack", place.partition(".")[0], ATTACKS)
        check_limit(name, limit)
    check_provable(policy)

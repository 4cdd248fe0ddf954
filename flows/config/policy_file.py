"""The policy of `ppdm audit`: what the attacker knows, which attacks must have run, the limits."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, ValidationError, model_validator

from flows.config.columns import Section
from flows.config.errors import first_problem
from flows.config.release_file import (
    AMPLIFICATIONS,
    LEDGERS,
    check_known,
    check_limit_name,
    limits_of,
    read_toml,
)
from flows.config.sections import AttackerSpec, LimitSpec, Seconds
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Attacker, Effort, Policy

DEFAULT = Path(__file__).with_name("default_policy.toml")


class PlayedSpec(Section):
    """Which attacks must have run before anything passes."""

    required: list[str] = Field(default_factory=list, description="Names of the required attacks.")
    effort: Effort = Field(
        default="standard",
        description="quick: only what is required or limited; standard: all; thorough: wider.",
    )
    time_limit: Seconds = Field(
        default=600.0, gt=0, description='Seconds for each attack; "10 min" in a file.'
    )


class PolicyFile(Section):
    """What a release of any origin is judged by."""

    attacker: AttackerSpec = Field(
        default_factory=AttackerSpec, description="What the outsider is assumed to know."
    )
    audit: PlayedSpec = Field(
        default_factory=PlayedSpec, description="Which attacks must have run."
    )
    limits: dict[str, LimitSpec] = Field(min_length=1, description="Lines that stewards drew.")

    @model_validator(mode="after")
    def _has_right_limits(self) -> PolicyFile:
        for name, limit in self.limits.items():
            if name in AMPLIFICATIONS:
                raise BadInput(
                    f"The limit '{name}' cannot be judged: the method behind the files is unknown.",
                    remedy="Remove it.",
                )
            if name in LEDGERS:
                raise BadInput(
                    f"The limit '{name}' cannot be judged: other releases of it are unknown.",
                    remedy="Remove it.",
                )
            check_limit_name(name, limit)
        return self

    def policy(self) -> Policy:
        return Policy(
            required=tuple(self.audit.required),
            limits=limits_of(self.limits),
            attacker=Attacker(**self.attacker.model_dump()),
            effort=self.audit.effort,
            time_limit=self.audit.time_limit,
        )


MODELS: dict[str, type[BaseModel]] = {
    "": PolicyFile,
    "attacker": AttackerSpec,
    "audit": PlayedSpec,
    "limits": LimitSpec,
}


def load_policy(path: Path | None) -> Policy:
    """The policy in a file, or else the one that ships."""
    path = path or DEFAULT
    try:
        policy = PolicyFile.model_validate(read_toml(path)).policy()
        check_policy(policy)
        return policy
    except ValidationError as error:
        problem = first_problem(error, MODELS)
    except BadInput as error:
        problem = error
    message = problem.message.replace("release file", "policy file")
    raise BadInput(message, file=str(path), remedy=problem.remedy)


def check_policy(policy: Policy) -> None:
    """Every attack and metric that it names must exist, and fit together."""
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.metrics import METRICS
    from tasks.context import check_limit

    for name in policy.required:
        check_known("attack", name, ATTACKS)
    for name, limit in policy.limits.items():
        place, _, metric = name.rpartition(".")
        check_known("metric", metric, METRICS)
        if place and place not in METRICS:
            check_known("attack", place.partition(".")[0], ATTACKS)
        check_limit(name, limit)

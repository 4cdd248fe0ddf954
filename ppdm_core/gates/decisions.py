"""The gate on what persons must have decided before a release."""

from __future__ import annotations

from collections.abc import Iterator

from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.model.policy import Policy, is_decided
from ppdm_core.model.verdict import Finding

CHECK = "decisions"


class Decisions(Gate):
    """A person decided who owns the release, who receives it, and each limit.

    REVIEW if the owner, the audience or who set a limit is missing, or is a placeholder.
    """

    name = "decisions"

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        given = {"owner": gate_input.owner, "audience": gate_input.audience}
        missing = [f'{key} = "..."' for key, text in given.items() if not is_decided(text)]
        lines = [f"in [dataset]: {', '.join(missing)}"] if missing else []
        yield judge_decisions([*lines, *list_undecided_limits(gate_input.policy)])


def judge_decisions(lines: list[str]) -> Finding:
    """Return the finding about the lines that a person must still write."""
    if not lines:
        return Finding(CHECK, "PASS", "Owner, audience and limits were decided by a person.")
    why = f"Not everything was decided by a person. To write {'; '.join(lines)}."
    return Finding(CHECK, "REVIEW", why)


def list_undecided_limits(policy: Policy) -> list[str]:
    """Return the line about the limits that no person set; nothing if there is none."""
    names = [name for name, limit in policy.limits.items() if not is_decided(limit.set_by)]
    return [f'in [limits]: set_by = "..." of {", ".join(names)}'] if names else []

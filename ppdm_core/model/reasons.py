"""Why an audit did not run: a code that rules compare, and a sentence that people read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """A code with its default sentence."""

    MISSING_KNOWLEDGE = "The attacker lacks something that the attack needs."
    METHOD_UNKNOWN = "Needs to know by which method the release was made."
    SINGLE_RELEASE = "Needs several releases of the same records, and here is one."
    COLUMNS_RELEASED = "Undoes a secret map, and here original columns are released."
    NO_COMMON_COLUMN = "Reads values as they are, and here no original column is released."
    NO_NUMERIC_COLUMN = "Works on numbers, and no numeric feature is released."
    NO_LABEL = "No label is released."
    NO_CONTROL = "Needs persons who are not in the release (--control)."
    NO_ALIGNMENT = "Needs to know which row belongs to which record (--unaligned was given)."
    NOT_REQUESTED = "The effort is quick, and the policy neither requires nor limits it."
    TOO_FEW_RECORDS = "Too few records."
    NOT_MEASURABLE = "Cannot be measured on this release."

    @property
    def sentence(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Skip:
    """One audit that did not run, and why."""

    reason: Reason
    detail: str = ""  # a sentence that is more precise than that of the reason

    @property
    def sentence(self) -> str:
        return self.detail or self.reason.sentence

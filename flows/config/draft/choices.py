"""What a steward chooses before a release file is drafted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choices:
    """What the steward has chosen; "" is guessed from the table, and None is left out."""

    label: str | None = ""  # column
    record_id: str | None = ""  # column
    method: str = ""


NO_CHOICES = Choices()

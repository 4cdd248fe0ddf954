"""What a steward can change about a release, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FEWER_COLUMNS, MORE_RECORDS = "release fewer columns", "release more records"


@dataclass(frozen=True)
class Advice:
    """Settings of a method to change, each as "raise 'b' (now 0.3)"; none if it is not known."""

    more_private: tuple[str, ...] = ()
    more_useful: tuple[str, ...] = ()

    def describe_more_private(self, *others: str) -> str:
        """Return a sentence on what makes a release reveal less; ``others`` come after."""
        own = self.more_private or ("perturb more with another setting or method",)
        return f"What helps: {join_options([*own, FEWER_COLUMNS, *others])}."

    def describe_more_useful(self) -> str:
        """Return a sentence on what makes a release more useful."""
        own = self.more_useful or ("perturb less with another setting or method",)
        return f"What helps: {join_options([*own, MORE_RECORDS])}."


def join_options(options: Sequence[str]) -> str:
    """Return alternatives as one text: "a, b, or c"."""
    *first, last = options
    return f"{', '.join(first)}, or {last}" if first else last

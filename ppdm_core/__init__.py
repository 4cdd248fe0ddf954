"""The mathematics: sanitizers, attacks, metrics and gates. Arrays in, frozen results out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppdm_core.two_tables.judge import judge_tables
    from ppdm_core.two_tables.runner import audit_tables

__all__ = ["audit_tables", "judge_tables"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: most modules need little of the package."""
    if name == "audit_tables":
        from ppdm_core.two_tables.runner import audit_tables

        return audit_tables
    if name == "judge_tables":
        from ppdm_core.two_tables.judge import judge_tables

        return judge_tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

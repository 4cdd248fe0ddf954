"""Figures in plain words: natural frequencies, counts and gamma."""

from __future__ import annotations

import math

from ppdm_core.audit.disclosure_rounding import find_neighbours
from ppdm_core.numerics.amplification import format_gamma_value

SMALL_COUNT = 10  # below it, recipients read "fewer than 10"


def choose_base(*shares: float | None) -> int:
    """Return 100, or 1,000 if one of the shares is above 0 and below 1 in 100."""
    return 1000 if any(share is not None and 0 < share < 0.01 for share in shares) else 100


def format_share(share: float, base: int = 100, *, is_rounded: bool = False) -> str:
    """Return a share as a natural frequency: "5 in 100"; "all" only if that is exact."""
    if not math.isfinite(share):
        return "not measurable"
    if share == 1 and not is_rounded:
        return "all"
    count = round(share * base)
    if count == 0 and share > 0:
        return f"fewer than 1 in {base:,}"
    if count == base and share < 1:
        return f"more than {base - 1:,} in {base:,}"
    return f"{count:,} in {base:,}"


def format_percent(share: float | None) -> str:
    """Return a share as a percentage for a cell of a table, "" if there is none."""
    if share is None:
        return ""
    if not math.isfinite(share):
        return "not measurable"
    return f"{100 * share:.1f} %".replace("-0.0 %", "0.0 %")


def format_change(before: float, after: float) -> str:
    """Return two shares in 100 as "0.4 → 1.5"."""
    return " → ".join(f"{100 * share:.1f}".removesuffix(".0") for share in (before, after))


def format_count(count: int, *, is_rounded: bool) -> str:
    """Return a count; rounded for recipients, who never read one below 10."""
    if not is_rounded:
        return f"{count:,}"
    if count < SMALL_COUNT:
        return f"fewer than {SMALL_COUNT}"
    return f"at most {find_neighbours(count)[1]:,.0f}"


def format_ln_gamma(ln_gamma: float | None) -> str:
    """Return gamma as text; None stands for no bound."""
    return format_gamma_value(math.inf if ln_gamma is None else ln_gamma)


def join_names(names: tuple[str, ...] | list[str]) -> str:
    """Return names as "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"

"""The cells of a claim on the page: values with intervals, the verdict, and why."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence

from studies.reproduction.decision import Decided, Finding, Verdict
from studies.reproduction.registry import FOLDER

MARKS = {Verdict.HOLDS: "✓", Verdict.PART: "~", Verdict.FAILS: "✗", Verdict.OPEN: "?"}


def format_finding(finding: Finding) -> tuple[str, ...]:
    """Return the cells of a claim."""
    claim = finding.claim
    notes = f" Reading: {claim.reading}" if claim.reading else ""
    notes += f" Corrected: {claim.corrected}" if claim.corrected else ""
    notes += f" Not counted: another reading of {claim.variant_of}." if claim.variant_of else ""
    return (
        f"**{claim.id}** ({claim.place}) {claim.claim}{notes}",
        claim.figure,
        format_values(finding.decided),
        f"**{MARKS[finding.verdict]} {finding.verdict}**",
        explain(finding),
        ", ".join(claim.erratum),
    )


def format_values(decided: Sequence[Decided]) -> str:
    """Return all values if they are few, else their extremes."""
    if not decided:
        return "not measured"
    draws = f"{min(d.draws for d in decided)} to {max(d.draws for d in decided)} draws"
    draws = f"{decided[0].draws} draws" if len({d.draws for d in decided}) == 1 else draws
    draws = "no noise" if draws == "1 draws" else draws
    if len(decided) <= 3:
        return "; ".join(format_value(each) for each in decided) + f"; {draws}"
    low, high = min(decided, key=lambda d: d.value), max(decided, key=lambda d: d.value)
    return f"{len(decided)} values from {format_value(low)} to {format_value(high)}; {draws}"


def format_value(each: Decided) -> str:
    """Return a value with its interval."""
    if each.low == each.high:
        return format_number(each.value)
    return f"{format_number(each.value)} [{format_number(each.low)}, {format_number(each.high)}]"


def format_number(value: float) -> str:
    """Return a number in few digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if size < 5e-4:
        return f"{value:.0e}"
    if size < 0.1:
        return f"{value:.3g}"
    return f"{value:.3f}" if size < 10 else f"{value:,.4g}" if size < 1e4 else f"{value:,.0f}"


def explain(finding: Finding) -> str:
    """Return why the verdict is what it is: the decisive figure, and the cause if it is known."""
    if not finding.decided:
        return "Its rule changed, and it is not measured by it yet."
    true, false, still_open = finding.counts
    total = len(finding.decided)
    if finding.verdict is Verdict.HOLDS:
        if total == 1:
            return "The interval is within the claimed range."
        return f"{true} of {total} intervals are within the claimed range."
    worst = find_worst(finding)
    place = f"{worst.quantity} is {format_value(worst)}, claimed {format_range(worst.claimed)}"
    counted = f"{true} of {total} true, {false} false, {still_open} open; " if total > 1 else ""
    cause = read_sentences("why.toml").get(finding.claim.id, "")
    return f"{counted}{place}. {cause}".strip()


def find_worst(finding: Finding) -> Decided:
    """Return the statement that speaks most against the claim.

    These are false ones, by the distance of their interval from the claimed range, then open ones,
    by the share of their interval that is outside.
    """

    def measure_gap(each: Decided) -> tuple[bool, float]:
        first, last = each.claimed
        if each.is_true is False:
            return True, max(first - each.high, each.low - last)
        return False, max(first - each.low, each.high - last) / max(each.high - each.low, 1e-300)

    return max(finding.decided, key=measure_gap)


def format_range(claimed: tuple[float, float]) -> str:
    """Return a claimed range, tolerance included."""
    first, last = claimed
    if math.isinf(first):
        return f"at most {format_number(last)}"
    if math.isinf(last):
        return f"at least {format_number(first)}"
    if first == last:
        return format_number(first)
    return f"{format_number(first)} to {format_number(last)}"


def read_sentences(name: str) -> dict[str, str]:
    """Return sentences by key from a file of this folder; nothing if there is none."""
    path = FOLDER / name
    if not path.exists():
        return {}
    found: dict[str, str] = {}
    for key, value in tomllib.loads(path.read_text(encoding="utf-8")).items():
        found |= {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {}
        found |= {key: value} if isinstance(value, str) else {}
    return found

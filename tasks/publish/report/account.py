"""What happened to the records and cells that were given."""

from __future__ import annotations

from ppdm_core.audit.disclosure_rounding import round_up
from tasks.publish.report.view import CountLine, DataAccount
from tasks.publish.report.words import SMALL_COUNT, format_count, format_percent, join_names
from tasks.release_summary import Summary


def build_account(summary: Summary) -> DataAccount | None:
    """Return how many records were given, dropped, set aside and released, exactly."""
    validated, sanitized = summary.validated, summary.sanitized
    if validated is None:
        return None
    steps = [("given", validated.n + validated.dropped_rows, "")]
    if validated.dropped_rows:
        steps.append(("dropped", validated.dropped_rows, explain_drops(summary)))
    if sanitized is not None:
        if sanitized.set_aside:
            why = "The method learned its basis from them, so they are not released."
            if not sanitized.set_aside_fits:
                why = "Another party of the common release does not have them."
            steps.append(("set aside", sanitized.set_aside, why))
        steps.append(("in the release", sanitized.released, ""))
    notes = [
        (
            "records that repeat an earlier one",
            validated.repeated_rows,
            "Equal in all features and the label; each counts as another person.",
        ),
        *((name, count, "") for name, count in (sanitized.counts if sanitized else {}).items()),
    ]
    schema = validated.schema
    names = [*schema.names, *(column.name for column in schema.categorical)]
    changed = {
        name: (validated.clamped.get(name, 0), validated.imputed.get(name, 0)) for name in names
    }
    columns = tuple(
        (name, f"{clamped:,}", f"{filled:,}", format_other(validated.other.get(name)))
        for name, (clamped, filled) in changed.items()
        if clamped + filled or name in validated.other
    )
    return DataAccount(
        records=tuple(make_line(*step) for step in steps),
        notes=tuple(make_line(*note) for note in notes if note[1]),
        columns=columns,
        unchanged=len(names) - len(columns),
    )


def format_other(count: int | None) -> str:
    """Return how many cells of a column became "other"; no count below 10 is shown."""
    if count is None:
        return "0"
    return f"{count:,}" if count >= SMALL_COUNT else f"fewer than {SMALL_COUNT}"


def make_line(what: str, count: int, why: str) -> CountLine:
    """Return a line with an exact count."""
    return CountLine(what, count, f"{count:,}", why)


def explain_drops(summary: Summary) -> str:
    """Return for which columns rows were dropped."""
    assert summary.validated is not None
    parts = []
    for reason, counts in (
        ("Empty cells", summary.validated.dropped_empty),
        ("Unlisted categories", summary.validated.dropped_unlisted),
    ):
        if counts:
            parts.append(
                f"{reason}: {join_names([f'{name} ({n:,})' for name, n in counts.items()])}."
            )
    return " ".join(parts)


def describe_records(summary: Summary, *, is_rounded: bool) -> str:
    """Return the records used of the records given."""
    validated, sanitized = summary.validated, summary.sanitized
    if validated is None:
        return "none read"
    given = validated.n + validated.dropped_rows
    if sanitized is None:
        return f"{given:,} given"
    if not is_rounded:
        return f"{sanitized.released:,} used of {given:,} given"
    unused = given - sanitized.released
    if unused <= 0:
        return f"{sanitized.released:,} released"
    return f"{sanitized.released:,} released, {format_count(unused, is_rounded=True)} not used"


def list_record_notes(summary: Summary, *, is_rounded: bool) -> list[str]:
    """Return what recipients should know of the records, one sentence each."""
    validated, sanitized = summary.validated, summary.sanitized
    if validated is None or sanitized is None:
        return []
    notes = ["No record was dropped: the release file allows it for no column."]
    if validated.schema.drops_rows:
        dropped = format_count(validated.dropped_rows, is_rounded=is_rounded)
        notes = [f"Records dropped for empty cells or unlisted categories: {dropped}."]
    notes += [
        f"Cells of '{name}' that were not listed and became \"other\": {format_other(count)}."
        for name, count in validated.other.items()
    ]
    if sanitized.set_aside:
        count = format_count(sanitized.set_aside, is_rounded=is_rounded)
        why = "to fit a basis" if sanitized.set_aside_fits else "that another party does not have"
        notes.append(f"Records set aside {why}, which are not released: {count}.")
    share = validated.repeated_rows / max(validated.n, 1)
    repeated = round_up(share) if is_rounded else share
    notes.append(
        f"Up to {format_percent(repeated)} of the records repeat an earlier one: they are equal in "
        "all features and the label. Each record counts as another person, here and in the ledger."
    )
    if sanitized.public.responses:
        notes.append(
            "Categories are random answers: count them with the gamma of their column, by "
            "estimate_frequencies."
        )
    if sanitized.counts.get("clipped scores"):
        notes.append("Component scores beyond their range were moved to its end.")
    return notes

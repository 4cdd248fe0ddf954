"""The text of `ppdm init`: the roles that it guessed, and what is left to decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flows.config.draft.text import ROLES, Heading
from ppdm.cli.console import format_lines, shorten_path, wrap_text
from ppdm_core.model.shown_text import show_line

if TYPE_CHECKING:
    from flows.config.draft.profile import Draft
    from flows.config.draft.roles import Drafted

MAX_NAMES = 8


def list_decisions(draft: Draft, heading: Heading) -> Iterator[str]:
    """Yield what the steward must decide, in the order of the file."""
    if not (heading.owner and heading.audience):
        yield (
            "Who owns the release and who receives it: owner, audience. Without them, a reviewer "
            "decides about every release."
        )
    yield describe_record_id(draft)
    yield describe_label(draft.label)
    yield (
        'Bounds of the features: they are "from_data", a weaker promise. Put numbers from general '
        "knowledge."
    )
    if draft.has_empty_cells:
        yield (
            'Empty cells: missing = "median" fills them, "drop_row" drops their rows; both are a '
            "weaker promise. Fill them in the source, with a value that you decide, to avoid it."
        )
    if draft.select("exclude"):
        yield (
            f"Excluded columns: {list_excluded(draft)}. Is something lost that could be derived "
            "from them? A feature with derive and from is computed when the source is read."
        )
    if not draft.method.is_bounded:
        yield (
            f"{draft.method.name} has no worst-case bound: the limits on amplification.record and "
            "ledger.record refuse every release of it, unless a person waives the method."
        )
    if not heading.set_by:
        yield (
            "The limits: they are suggestions. Put your own, with set_by; without it, a reviewer "
            "decides about every release."
        )
    yield "How often it is repeated: [schedule]."


def list_excluded(draft: Draft) -> str:
    """Return the excluded columns by the reason why they are."""
    reasons: dict[str, list[Drafted]] = {}
    for each in draft.select("exclude"):
        reasons.setdefault(each.why, []).append(each)
    return "; ".join(f"{format_names(group)} ({why})" for why, group in reasons.items())


def describe_record_id(draft: Draft) -> str:
    """Return the decision on the record id."""
    has_basis = draft.method.is_usual and draft.has_numbers
    if draft.record_id is None:
        weaker = ", and the basis is a weaker promise" if has_basis else ""
        return (
            f"No column names a record stably: every release draws fresh noise{weaker}. Add a "
            "stable id to the source if you can."
        )
    basis = ' and use basis = "private"' if has_basis else ""
    return (
        f"Is '{show_line(draft.record_id)}' the same for the same record in every delivery? "
        f"If not, remove record_id{basis}."
    )


def describe_label(label: Drafted | None) -> str:
    """Return the decision on the label."""
    if label is None:
        return "No label was found; without one, no metric measures how well classes are predicted."
    name, column = show_line(label.name), label.column
    text = f"'{name}' is the label: it is released unchanged. May it be, and is it the label?"
    if column.outside == "drop_row":
        text += " Rows of its rare classes are dropped, a weaker promise: list or merge these."
    if column.missing == "drop_row":
        text += " Rows without a class are dropped, a weaker promise."
    return text


def format_draft(out: Path, draft: Draft, decisions: Sequence[str]) -> str:
    """Return the columns of each role, the decisions, and the next command."""
    lines = [f"Drafted {shorten_path(out)}. It holds no number of the table."]
    for role in ROLES:
        lines += wrap_text(format_names(draft.select(role)), f"  {role:<10} ")
    lines.append("To decide:")
    for number, text in enumerate(decisions, start=1):
        lines += wrap_text(text, f"  {number}. ")
    lines.append(f"Then: ppdm check {shorten_path(out)}")
    return format_lines(lines)


def format_names(drafted: Sequence[Drafted]) -> str:
    """Return the first names, and how many there are more."""
    names = [show_line(each.name) for each in drafted[:MAX_NAMES]]
    more = len(drafted) - MAX_NAMES
    return ", ".join([*names, f"and {more} more"] if more > 0 else names) or "none"

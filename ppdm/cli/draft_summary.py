"""What `ppdm init` says: the roles it guessed, and what is left to decide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flows.config.draft.text import ROLES, toml_string
from ppdm.cli.console import WIDTH, near

if TYPE_CHECKING:
    from flows.config.draft.profile import Draft
    from flows.config.draft.roles import Drafted

MOST_NAMES = 8


def decisions(draft: Draft) -> list[str]:
    """What a person must decide, in the order of the file."""
    found = ["Who owns the release and who gets it: owner, audience."]
    if draft.record_id is not None:
        found.append(
            f"Is '{shown(draft.record_id)}' the same for the same record in every delivery? If "
            'not, remove record_id and use basis = "private".'
        )
    else:
        found.append(
            "No column names a record stably: every release draws fresh noise, and the basis is a "
            "weaker promise. Add a stable id to the source if you can."
        )
    found += about_label(draft.label)
    found.append(
        'Bounds of the features: they are "from_data", a weaker promise. Put numbers from general '
        "knowledge."
    )
    if any(each.column.missing == "median" for each in draft.of("feature")):
        found.append('Empty cells: missing = "median" fills them, "drop_row" drops their rows.')
    if draft.of("exclude"):
        found.append("Excluded columns: is something lost that could be derived as a number?")
    found.append("The limits: they are suggestions; put your own, with who set them and why.")
    found.append("How often it is repeated: [schedule].")
    return found


def about_label(label: Drafted | None) -> Iterator[str]:
    if label is None:
        yield "No label was found; without one nothing measures whether classes stay apart."
        return
    text = f"'{shown(label.name)}' is the label: it is released as it is. May it be, and is it one?"
    if label.column.outside == "drop_row":
        text += " Rows of its rare classes are dropped: list or merge these."
    if label.column.missing == "drop_row":
        text += " Rows without a class are dropped."
    yield text


def spoken(out: Path, draft: Draft, to_decide: Sequence[str]) -> str:
    lines = [f"Drafted {near(out)}. No number of the table is in it."]
    for role in ROLES:
        lines += wrapped(f"{role:<10}", ", ".join(names(draft.of(role))) or "none")
    lines.append("To decide:")
    for number, text in enumerate(to_decide, start=1):
        lines += wrapped(f"{number}.", text)
    lines.append(f"Then: ppdm check {near(out)}")
    return "\n".join(lines)


def names(drafted: Sequence[Drafted]) -> list[str]:
    more = len(drafted) - MOST_NAMES
    return [
        *(shown(each.name) for each in drafted[:MOST_NAMES]),
        *([f"and {more} more"] if more > 0 else []),
    ]


def wrapped(mark: str, text: str) -> list[str]:
    first = f"  {mark} "
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
    )


def shown(name: str) -> str:
    """A name on one line."""
    return name if name.isprintable() else toml_string(name)

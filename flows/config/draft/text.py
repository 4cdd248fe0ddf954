"""The text of a drafted release file.

The sections on method, attacker, audit and limits come from ``template.toml``; the limits that
need a label come from ``label_limits.toml``.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from warehouse.columns import Column, Source
from warehouse.sources import SOURCES

if TYPE_CHECKING:
    from flows.config.draft.profile import Draft
    from flows.config.draft.roles import Drafted

WIDTH = 100  # characters
TEMPLATE = Path(__file__).with_name("template.toml")
LABEL_LIMITS = Path(__file__).with_name("label_limits.toml")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
ROLES = {
    "identifier": "Identifies the record. Never released.",
    "label": "The class. It is released UNCHANGED, without noise.",
    "feature": "Values to perturb and release. Bounds are promises about which values are "
    'possible: put numbers from general knowledge in place of "from_data", which takes them from '
    "the private table (in two digits) and publishes them. That is a WEAKER PROMISE.",
    "exclude": "Not released.",
}
BASIS_COMMENTS = {
    "sample": '# "sample" fits the components on a fifth of the records, which are never released.',
    "private": "# WEAKER PROMISE: the components are fitted on the released records themselves;\n"
    '# what they reveal is not covered. "sample" sets records aside for that; it needs a\n'
    '# record_id and a larger table. "file" takes a basis from public data.',
}
SCHEDULE = """\
# When `ppdm serve` repeats the release: minute, hour, day, month, weekday.
# [schedule]
# cron = "0 3 * * 1"
# timezone = "Europe/Berlin"
"""


@dataclass(frozen=True)
class Heading:
    """What the first sections of the file hold."""

    dataset: str
    owner: str
    source: Source
    path: str  # of the source, as written in the file


def format_toml_string(text: str) -> str:
    """Return a quoted string; JSON escapes it as TOML does, except for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def format_toml_key(name: str) -> str:
    """Return a key, quoted if it has to be."""
    return name if BARE_KEY.fullmatch(name) else format_toml_string(name)


def format_release_file(draft: Draft, heading: Heading) -> str:
    """Return the complete text of the drafted release file."""
    parts = (
        format_opening(heading, draft),
        *(section for role in ROLES for section in [format_columns(draft, role)] if section),
        format_policy(draft),
        SCHEDULE,
    )
    return "\n".join(parts)


def format_opening(heading: Heading, draft: Draft) -> str:
    """Return the sections [dataset] and [source], and the start of [columns]."""
    source = heading.source
    if draft.record_id is not None:
        record_id = f"""\
# Identifies a record in every delivery: an unchanged record has the same noise in every release.
# Remove it if the same record can have another value in the next delivery.
record_id = {format_toml_string(draft.record_id)}
"""
    else:
        record_id = """\
# No column was found that identifies a record in every delivery, so every release draws new noise:
# record_id = "..."
"""
    options = "".join(
        f"{key} = {format_toml_string(value)}\n" for key, value in source.options.items()
    )
    return f"""\
# A draft by `ppdm init`, made from the columns of the table alone. `ppdm release` accepts it
# unchanged, but the decisions in it are yours. Relative paths start in the folder of this file.
format = 1

[dataset]
name = {format_toml_string(heading.dataset)}
owner = {format_toml_string(heading.owner)}  # the author of this file; may not approve the release
audience = "to be decided"  # who will receive it
{record_id}
[source]
kind = {format_toml_string(source.kind)}  # {" | ".join(SOURCES)}
path = {format_toml_string(heading.path)}
{options}
# Every column of the source has a role: identifier, label, feature or exclude.
[columns]"""


def format_columns(draft: Draft, role: str) -> str:
    """Return the columns of one role with comments, or "" if there are none."""
    drafted = draft.select(role)
    if not drafted:
        return ""
    declared = [each.column for each in drafted]
    lines = [ROLES[role]]
    if any(column.outside == "drop_row" for column in declared):
        lines.append("Rare classes are not listed; their rows are dropped (outside).")
    if any(column.missing == "drop_row" for column in declared):
        lines.append("Rows without a class are dropped (missing).")
    if any(column.missing == "median" for column in declared):
        lines.append('missing = "median" fills empty cells; "drop_row" drops their rows.')
    text = "".join(format_comment(line) for line in lines)
    for why, group in group_by_reason(drafted).items():
        reason = "" if role == "feature" else format_comment(f"{why[0].upper()}{why[1:]}.")
        text += reason + "".join(format_column(each.column) for each in group)
    return text


def group_by_reason(drafted: Sequence[Drafted]) -> dict[str, list[Drafted]]:
    """Return the columns by the reason for their role; features stay in one group."""
    groups: dict[str, list[Drafted]] = {}
    for each in drafted:
        why = "feature" if each.column.role == "feature" else each.why
        groups.setdefault(why, []).append(each)
    return groups


def format_comment(text: str) -> str:
    """Return a text as wrapped comment lines."""
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 4))


def format_column(column: Column) -> str:
    """Return one line, or a line for each key if that is too long."""
    given = {"role": column.role, "type": column.type, "low": column.low, "high": column.high}
    settings = {key: format_toml_string(str(value)) for key, value in given.items() if value}
    if column.categories:
        settings["categories"] = f"[{', '.join(map(format_toml_string, column.categories))}]"
    if column.outside == "drop_row":
        settings["outside"] = '"drop_row"'
    if column.missing != "reject":
        settings["missing"] = format_toml_string(column.missing)
    name = format_toml_key(column.name)
    line = f"{name} = {{ {', '.join(f'{key} = {value}' for key, value in settings.items())} }}"
    if len(line) < WIDTH:
        return f"{line}\n"
    if len(settings.get("categories", "")) > WIDTH / 2:
        listed = "".join(f"    {format_toml_string(category)},\n" for category in column.categories)
        settings["categories"] = f"[\n{listed}]"
    return "".join(f"{name}.{key} = {value}\n" for key, value in settings.items())


def format_policy(draft: Draft) -> str:
    """Return the sections on method, attacker, audit and limits."""
    text = fill_template(draft.basis, draft.components)
    return text + LABEL_LIMITS.read_text() if draft.label else text


def fill_template(basis: str, components: int) -> str:
    """Return the template with a basis and a number of components."""
    return Template(TEMPLATE.read_text()).substitute(
        components=components, basis=basis, basis_comment=BASIS_COMMENTS[basis]
    )


def read_method() -> str:
    """Return the name of the method that the template drafts."""
    text = fill_template(next(iter(BASIS_COMMENTS)), 1)
    return str(tomllib.loads(text)["sanitizer"]["method"])

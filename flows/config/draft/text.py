"""The text of a drafted release file."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.columns import Column, Source

if TYPE_CHECKING:
    from flows.config.draft.profile import Draft
    from flows.config.draft.roles import Drafted

WIDTH = 100  # characters
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
ROLES = {
    "identifier": "Who the record is. Never released.",
    "label": "The class. It is released AS IT IS, without noise.",
    "feature": "Values to perturb and release. Bounds are promises about which values are "
    'possible: put numbers from general knowledge in place of "from_data", which takes them from '
    "the private table (in two digits) and publishes them. That is a WEAKER PROMISE.",
    "exclude": "Left out.",
}


@dataclass(frozen=True)
class Heading:
    dataset: str
    owner: str
    source: Source
    path: str  # of the source, as the file tells it


def toml_string(text: str) -> str:
    """JSON's escapes are TOML's, but for the one control character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else toml_string(name)


def release_text(draft: Draft, heading: Heading) -> str:
    parts = (
        opening(heading, draft),
        *(section for role in ROLES for section in [column_section(draft, role)] if section),
        sanitizer(draft),
        AUDIT,
        limits(draft),
        SCHEDULE,
    )
    return "\n".join(parts)


def opening(heading: Heading, draft: Draft) -> str:
    source = heading.source
    if draft.record_id is not None:
        record_id = f"""\
# Names a record stably: an unchanged record keeps its noise in every release. Remove it if the
# same record can get another value in the next delivery.
record_id = {toml_string(draft.record_id)}
"""
    else:
        record_id = """\
# No column was found that names a record stably, so every release draws fresh noise:
# record_id = "..."
"""
    table = f"table = {toml_string(source.table)}\n" if source.table else ""
    return f"""\
# A draft by `ppdm init`, made from the look of the table alone. `ppdm release` takes it as it is,
# but the decisions in it are yours. Relative paths start in the folder of this file.
format = 1

[dataset]
name = {toml_string(heading.dataset)}
owner = {toml_string(heading.owner)}  # the author of this file; may not approve the release
audience = "to be decided"  # who will receive it
{record_id}
[source]
kind = {toml_string(source.kind)}  # csv | parquet | duckdb
path = {toml_string(heading.path)}
{table}
# Every column of the source has a role: identifier, label, feature or exclude.
[columns]"""


def column_section(draft: Draft, role: str) -> str:
    drafted = draft.of(role)
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
    text = "".join(comment(line) for line in lines)
    for why, group in by_reason(drafted).items():
        reason = "" if role == "feature" else comment(f"{why[0].upper()}{why[1:]}.")
        text += reason + "".join(column_text(each.column) for each in group)
    return text


def by_reason(drafted: Sequence[Drafted]) -> dict[str, list[Drafted]]:
    """Columns of one reason together, but features in their own order."""
    groups: dict[str, list[Drafted]] = {}
    for each in drafted:
        why = "feature" if each.column.role == "feature" else each.why
        groups.setdefault(why, []).append(each)
    return groups


def comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 4))


def column_text(column: Column) -> str:
    """One line, or a line for each key where that is too long."""
    given = {"role": column.role, "type": column.type, "low": column.low, "high": column.high}
    settings = {key: toml_string(str(value)) for key, value in given.items() if value}
    if column.categories:
        settings["categories"] = f"[{', '.join(map(toml_string, column.categories))}]"
    if column.outside == "drop_row":
        settings["outside"] = '"drop_row"'
    if column.missing != "reject":
        settings["missing"] = toml_string(column.missing)
    name = toml_key(column.name)
    line = f"{name} = {{ {', '.join(f'{key} = {value}' for key, value in settings.items())} }}"
    if len(line) < WIDTH:
        return f"{line}\n"
    if len(settings.get("categories", "")) > WIDTH / 2:
        listed = "".join(f"    {toml_string(category)},\n" for category in column.categories)
        settings["categories"] = f"[\n{listed}]"
    return "".join(f"{name}.{key} = {value}\n" for key, value in settings.items())


def sanitizer(draft: Draft) -> str:
    from flows.config.draft.profile import METHOD

    basis = (
        '# "sample" fits the components on a fifth of the records, which are never released.\n'
        if draft.basis == "sample"
        else "# WEAKER PROMISE: the components are fitted on the released records themselves, and\n"
        '# what they tell is not covered. "sample" sets records aside for that; it needs a\n'
        '# record_id and a larger table. "file" takes a basis from public data.\n'
    )
    return f"""\
# The method: {METHOD} keeps few principal components and adds noise to each.
# Others: ppdm methods
[sanitizer]
method = "{METHOD}"
components = {draft.components}
# The noise is as small as this gamma allows: by how much one released row may change anybody's
# odds. Above 99 it is no useful worst-case bound; the audit tells what attackers really get.
gamma = {{ record = 1000 }}
{basis}basis = "{draft.basis}"
"""


AUDIT = """\
# The outsider that the audit plays.
[attacker]
known_records = 40  # records known in full, and where they stand in the release
sample_share = 0.05  # a sample of other people of this kind
epsilon = 0.1  # a value guessed to within 10 % counts as breached

[audit]
required = ["transform_inverse", "shrinkage", "known_pairs", "record_linkage", "membership"]
time_limit = "10 min"  # for each attack
"""


def limits(draft: Draft) -> str:
    drawn = {
        "amplification.record": "value = 1100",
        "ledger.record": "value = 1e12",
        "record_linkage.rate": "value = 0.05",
        "known_pairs.breach_rate": "value = 0.1",
        "membership.true_positive_rate": "value = 0.15",
    }
    accuracy = ""
    if draft.label:
        drawn["best_accuracy"] = "value = 0"
        accuracy = (
            "# best_accuracy is how useful the release must be: by how much the best of several\n"
            "# classifiers must beat somebody who always answers the commonest class.\n"
        )
    lines = (
        f'"{name}" = {{ {value}, set_by = "draft", reason = "to be decided" }}\n'
        for name, value in drawn.items()
    )
    return f"""\
# Lines that people draw before anything is measured; a release that crosses one is refused, and
# one of which too little is known to tell waits until somebody else decides (ppdm decide).
# Limits on attacks are on the excess over somebody who ignores the release. Decide each one,
# and put down who did and why.
# ledger.record is on all releases together: this has room for four draws of one record. One that
# never changes is drawn once; without a record_id everybody is drawn anew in every release.
{accuracy}[limits]
{"".join(lines)}"""


SCHEDULE = """\
# When `ppdm serve` repeats the release: minute, hour, day, month, weekday.
# [schedule]
# cron = "0 3 * * 1"
# timezone = "Europe/Berlin"
"""

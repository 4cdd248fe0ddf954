"""The text of a drafted release file; ``draft.toml.j2`` holds its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.config.toml_values import format_toml_key, format_toml_value
from tasks.text_template import render_text
from warehouse.columns import OTHER, Column, Derivation, Source
from warehouse.sources import SOURCES

if TYPE_CHECKING:
    from flows.config.draft.profile import Draft
    from flows.config.draft.roles import Drafted

WIDTH = 100  # characters
ROLES = ("identifier", "label", "feature", "exclude")
TEMPLATE = Path(__file__).with_name("draft.toml.j2")


@dataclass(frozen=True)
class Heading:
    """What the first sections of the file hold."""

    dataset: str
    owner: str  # "": not decided
    audience: str
    set_by: str  # of the limits
    source: Source
    path: str  # of the source, as written in the file


def format_release_file(draft: Draft, heading: Heading) -> str:
    """Return the complete text of the drafted release file."""
    filters: dict[str, Callable[..., str]] = {
        "toml": format_toml_value,
        "format_column": format_column,
        "decided": format_decision,
    }
    groups = {role: group_by_reason(draft.select(role)) for role in ROLES}
    return render_text(
        TEMPLATE,
        filters,
        draft=draft,
        heading=heading,
        groups=groups,
        kinds=SOURCES,
    )


def format_decision(key: str, text: str) -> str:
    """Return the line of a decision, or a comment with the line to fill in."""
    return f"{key} = {format_toml_value(text)}" if text else f'# {key} = "..."'


def group_by_reason(drafted: Sequence[Drafted]) -> dict[str, list[Drafted]]:
    """Return the columns by the reason for their role, as a sentence; features have none."""
    groups: dict[str, list[Drafted]] = {}
    for each in drafted:
        why = "" if each.column.role == "feature" else f"{each.why[0].upper()}{each.why[1:]}."
        groups.setdefault(why, []).append(each)
    return groups


def list_derivation_keys(derivation: Derivation) -> dict[str, Any]:
    """Return the keys of a derived column."""
    sources = derivation.sources
    return {
        "derive": derivation.function,
        "from": sources[0] if len(sources) == 1 else list(sources),
        "edges": list(derivation.edges),
        "date": derivation.date,
    }


def format_column(column: Column) -> str:
    """Return one line, or a line for each key if that is too long."""
    derivation = column.derivation
    given: dict[str, Any] = {
        "role": column.role,
        **({"type": column.type} if derivation is None else list_derivation_keys(derivation)),
        "low": column.low,
        "high": column.high,
        "categories": list(column.categories),
        "outside": column.outside if column.outside in ("drop_row", OTHER) else None,
        "missing": column.missing if column.missing != "reject" else None,
    }
    settings = {key: value for key, value in given.items() if value}
    name = format_toml_key(column.name)
    line = f"{name} = {format_toml_value(settings)}"
    if len(line) < WIDTH:
        return line
    texts = {key: format_toml_value(value) for key, value in settings.items()}
    if len(texts.get("categories", "")) > WIDTH / 2:
        listed = "".join(f"    {format_toml_value(each)},\n" for each in column.categories)
        texts["categories"] = f"[\n{listed}]"
    return "\n".join(f"{name}.{key} = {text}" for key, text in texts.items())

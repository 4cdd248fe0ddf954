"""Write docs/reference: one page each for the registered methods, attacks and metrics.

    python -m studies.write_reference_pages        # from the root of the project, or: make docs

Everything on these pages comes from the registered classes, their attributes and docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from flows.config.toml_values import format_toml_value
from ppdm.cli.methods import (
    Entry,
    build_attack_entry,
    build_metric_entry,
    build_sanitizer_entry,
    format_example,
    format_kind,
)
from ppdm_core.attacks import ATTACKS
from ppdm_core.metrics import METRICS
from ppdm_core.sanitizers import SANITIZERS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTICE = "Written by `make docs` from the code of each {}. `ppdm methods NAME` shows the same."
DIRECTIONS = {"up": "higher", "down": "lower"}


def write_methods() -> Iterator[str]:
    """Yield the lines of the page of all sanitizers."""
    entries = [build_sanitizer_entry(name) for name in SANITIZERS]
    yield from write_opening("Methods", "sanitizer")
    yield "[Choosing a method](../choosing_a_method.md) compares them.\n"
    yield from write_table(
        ("method", "takes", "what it does"),
        ((link(each["name"]), ", ".join(each["takes"]), each["what"][0]) for each in entries),
    )
    for entry in entries:
        yield from write_section(entry, ("guarantee", "broken_by", "public", "references"))
        yield from write_table(
            ("parameter", "default", "meaning"),
            (
                (f"`{each['name']}`", format_default(each), each["meaning"])
                for each in entry["parameters"]
            ),
        )
        yield from ("```toml", *format_example(entry["example"]), "```", "")


def write_attacks() -> Iterator[str]:
    """Yield the lines of the page of all attacks."""
    entries = [build_attack_entry(name) for name in ATTACKS]
    yield from write_opening("Attacks", "attack")
    yield "[The attacks](../attacks.md) shows what they achieve.\n"
    yield from write_table(
        ("attack", "goal", "story"),
        ((link(each["name"]), format_kind(each), each["story"]) for each in entries),
    )
    for entry in entries:
        entry["must_notice"] = list(ATTACKS[entry["name"]].must_notice)
        entry["breaks"] = [link(name, "methods.md") for name in entry["breaks"]]
        entry["measured_by"] = [link(name, "metrics.md") for name in entry["measured_by"]]
        keys = ("story", "needs", "breaks", "measured_by", "must_notice", "references")
        yield from write_section(entry, keys)


def write_metrics() -> Iterator[str]:
    """Yield the lines of the page of all metrics."""
    entries = [build_metric_entry(name) for name in METRICS]
    yield from write_opening("Metrics", "metric")
    yield "Compare privacy scores with their baseline: a value below it does not protect more.\n"
    yield from write_table(
        ("metric", "section", "better", "meaning"),
        (
            (link(each["name"]), each["of"], DIRECTIONS[each["better"]], each["measures"])
            for each in entries
        ),
    )
    for entry in entries:
        entry["kind and range"] = format_kind(entry)
        entry["must_notice"] = list(METRICS[entry["name"]].must_notice)
        yield from write_section(
            entry, ("kind and range", "measured_on", "must_notice", "references")
        )


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "methods.md": write_methods,
    "attacks.md": write_attacks,
    "metrics.md": write_metrics,
}


def write_opening(title: str, kind: str) -> Iterator[str]:
    """Yield the title of a page, and where its content comes from."""
    yield f"# {title}\n"
    yield NOTICE.format(kind)


def write_section(entry: Entry, keys: Sequence[str]) -> Iterator[str]:
    """Yield the section of one entry: its text, then an item for each key that is not empty."""
    yield f"## {entry['name']}\n"
    for paragraph in entry["what"]:
        yield f"{capitalize(paragraph)}\n"
    for key in keys:
        value: Any = entry[key]
        if value:
            text = value if isinstance(value, str) else ", ".join(value)
            yield f"* **{capitalize(key.replace('_', ' '))}**: {capitalize(text)}"
    yield ""


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def format_default(parameter: Entry) -> str:
    """Return the default of a parameter as TOML."""
    if parameter["required"]:
        return "must be given"
    return (
        "not set"
        if parameter["default"] is None
        else f"`{format_toml_value(parameter['default'])}`"
    )


def link(name: str, page: str = "") -> str:
    """Return a link to the section of an entry."""
    return f"[`{name}`]({page}#{name})"


def capitalize(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def write_pages(folder: Path = FOLDER) -> None:
    """Write every page into a folder."""
    folder.mkdir(exist_ok=True)
    for name, write_lines in PAGES.items():
        (folder / name).write_text("\n".join(write_lines()).rstrip() + "\n")


if __name__ == "__main__":
    write_pages()

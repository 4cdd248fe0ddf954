"""The options of the kinds of sources and sinks, which are further keys of their sections."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.settings.errors import suggest_name
from warehouse.buckets import is_url
from warehouse.sources import Option


class Kind(Protocol):
    """A kind of source or sink."""

    @property
    def options(self) -> Mapping[str, Option]: ...


def add_options(schema: dict[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Add the options of every kind to a form."""
    for kind in kinds.values():
        for key, option in kind.options.items():
            schema["properties"][key] = {"type": "string", "description": option.description}


def check_options(
    kind: str, given: Mapping[str, Any], kinds: Mapping[str, Kind], what: str, keys: tuple[str, ...]
) -> None:
    """Raise BadInput for options that a kind does not have, lacks, or that are no text.

    ``what`` is "source" or "sink", and ``keys`` are the keys of every section of it.
    """
    errors = ErrorList()
    for key, value in given.items():
        with errors.collect():
            _check_option(kind, key, value, kinds, what, keys)
    for key, option in kinds[kind].options.items():
        if option.is_required and key not in given:
            why = f"A {kind} {what} needs a {key}."
            errors.add(BadInput(why, remedy=f"Add '{key}' to {SECTIONS[what]}."))
    errors.raise_all()


SECTIONS = {"source": "[source]", "sink": "[[sinks]]"}


def _check_option(
    kind: str, key: str, value: Any, kinds: Mapping[str, Kind], what: str, keys: tuple[str, ...]
) -> None:
    section, known = SECTIONS[what], [each for each in kinds if key in kinds[each].options]
    if not known:
        names = [*keys, *kinds[kind].options]
        raise BadInput(f"Unknown key '{key}' in {section}.", remedy=suggest_name(key, names))
    if kind not in known:
        raise BadInput(
            f"The '{key}' key of {section} is for {' and '.join(known)} {what}s only.",
            remedy=f"Remove '{key}'.",
        )
    option = kinds[kind].options[key]
    longest = option.max_characters
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        form = "one character" if longest == 1 else f"a text of 1 to {longest} characters"
        raise BadInput(
            f"The '{key}' key of {section} must be {form}.",
            remedy=f"Its meaning: {option.description}",
        )


def resolve_options(
    folder: str | Path, given: Mapping[str, str], options: Mapping[str, Option]
) -> dict[str, str]:
    """Return the options with absolute paths."""
    return {
        key: resolve_path(folder, value) if options[key].is_path else value
        for key, value in given.items()
    }


def resolve_path(folder: str | Path, path: str) -> str:
    """Return a path as an absolute path; a URL is one already."""
    return path if is_url(path) else os.path.abspath(os.path.join(folder, path))

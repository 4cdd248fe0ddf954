"""Columns by pattern: one entry of [columns] for all columns of the source with such names.

The patterns are expanded when the release file is read, so that the digest of the release covers
the columns themselves, and a column that is new in the source changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flows.config.source_section import SourceSpec
from ppdm_core.model.errors import BadInput, ErrorList
from warehouse.sources import SOURCES

WILDCARDS = "*?["


def expand_patterns(content: Mapping[str, Any], folder: Path, errors: ErrorList) -> dict[str, Any]:
    """Return the content of a release file with columns in place of patterns; collect errors.

    The source is read only if a name has a wildcard. A source section that is not valid is left
    to the checks of the file.
    """
    columns = content.get("columns")
    if not isinstance(columns, dict) or not any(map(has_wildcard, columns)):
        return dict(content)
    try:
        spec = SourceSpec.model_validate(content.get("source"))
    except ValidationError:
        return dict(content)
    source = spec.build(folder)
    with errors.collect():
        names = SOURCES[source.kind].read_names(source)
        return {**content, "columns": expand_columns(columns, names, source.name, errors)}
    return {**content, "columns": {key: columns[key] for key in columns if not has_wildcard(key)}}


def has_wildcard(name: str) -> bool:
    """Return whether a name may be a pattern."""
    return any(each in name for each in WILDCARDS)


def expand_columns(
    columns: Mapping[str, Any], names: Sequence[str], source: str, errors: ErrorList
) -> dict[str, Any]:
    """Return the columns; those of a pattern are in its place, in the order of the source.

    A name of the source is no pattern, and its own entry takes precedence over patterns. A pattern
    with an error is left out.
    """
    patterns = [key for key in columns if has_wildcard(key) and key not in names]
    found: dict[str, str] = {}  # column -> pattern
    for pattern in patterns:
        with errors.collect():
            _check_pattern(pattern, columns[pattern])
            alike = [name for name in names if fnmatchcase(name, pattern)]
            matches = [name for name in alike if name not in columns]
            _check_matches(pattern, matches, bool(alike), source)
            for name in matches:
                _check_only(name, pattern, found)
                found[name] = pattern
    expanded: dict[str, Any] = {}
    for key, spec in columns.items():
        if key in patterns:
            expanded |= {name: spec for name in names if found.get(name) == key}
        else:
            expanded[key] = spec
    return expanded


def _check_matches(pattern: str, matches: Sequence[str], has_alike: bool, source: str) -> None:
    if not matches:
        others = " that has no entry of its own" if has_alike else ""
        raise BadInput(
            f"The pattern '{pattern}' matches no column of {source}{others}.",
            remedy="Correct the pattern in [columns], or remove it.",
        )


def _check_only(name: str, pattern: str, found: Mapping[str, str]) -> None:
    if name in found:
        raise BadInput(
            f"The patterns '{found[name]}' and '{pattern}' both match column '{name}'.",
            column=name,
            remedy="Declare the column itself in [columns], or correct a pattern.",
        )


def _check_pattern(pattern: str, spec: Any) -> None:
    if isinstance(spec, dict) and "derive" in spec:
        raise BadInput(
            f"The pattern '{pattern}' declares a derived column, which needs a name.",
            remedy="Declare each derived column by its own name.",
        )

"""The [source] section of a release file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.settings.errors import report_as_value_error, suggest_name
from ppdm_core.settings.sections import Section
from warehouse.buckets import is_url
from warehouse.columns import Source
from warehouse.sources import SOURCES

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(SOURCES)]  # the form lists the choices


def _add_options(schema: dict[str, Any]) -> None:
    """Add the options of every kind to the form."""
    for reader in SOURCES.values():
        for key, option in reader.options.items():
            schema["properties"][key] = {"type": "string", "description": option.description}


def resolve_path(folder: str | Path, path: str) -> str:
    """Return a path as an absolute path; a URL is one already."""
    if is_url(path):
        return path
    return os.path.abspath(os.path.join(folder, path))


class SourceSpec(Section):
    """The place and format of the private table, and the options of its kind as further keys."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_options)
    kind: Kind = Field(description="Format of the source.")
    path: str = Field(
        default="",
        description="File, folder, pattern with wildcards, or s3:// URL; relative paths start at "
        "the release file.",
    )

    @property
    def options(self) -> dict[str, str]:
        """The options that are set."""
        return {key: value for key, value in (self.model_extra or {}).items() if value is not None}

    def build(self, folder: str | Path) -> Source:
        """Return the source; relative paths start at a folder."""
        reader = SOURCES[self.kind]
        options = {
            key: resolve_path(folder, value) if reader.options[key].is_path else value
            for key, value in self.options.items()
        }
        return Source(self.kind, self.path and resolve_path(folder, self.path), options)

    @model_validator(mode="after")
    @report_as_value_error
    def _check_keys_of_kind(self) -> SourceSpec:
        errors, reader = ErrorList(), SOURCES[self.kind]
        for key, value in self.options.items():
            with errors.collect():
                self._check_option(key, value)
        if reader.endings and not self.path:
            errors.add(BadInput("The 'path' key of [source] is missing.", remedy="Add 'path'."))
        for key, option in reader.options.items():
            if option.is_required and key not in self.options:
                why = f"A {self.kind} source needs a {key}."
                errors.add(BadInput(why, remedy=f"Add '{key}' to [source]."))
        if not reader.endings and self.path:
            why = f"A {self.kind} source has no 'path'."
            errors.add(BadInput(why, remedy="Remove 'path'."))
        errors.raise_all()
        reader.check_options(self.path, self.options)
        return self

    def _check_option(self, key: str, value: Any) -> None:
        kinds = [kind for kind, reader in SOURCES.items() if key in reader.options]
        if not kinds:
            known = ["kind", "path", *SOURCES[self.kind].options]
            raise BadInput(f"Unknown key '{key}' in [source].", remedy=suggest_name(key, known))
        if self.kind not in kinds:
            raise BadInput(
                f"The '{key}' key of [source] is for {' and '.join(kinds)} sources only.",
                remedy=f"Remove '{key}'.",
            )
        option = SOURCES[self.kind].options[key]
        longest = option.max_characters
        if not isinstance(value, str) or not 1 <= len(value) <= longest:
            what = "one character" if longest == 1 else f"a text of 1 to {longest} characters"
            raise BadInput(
                f"The '{key}' key of [source] must be {what}.",
                remedy=f"Its meaning: {option.description}",
            )

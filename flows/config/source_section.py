"""The [source] section of a release file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from flows.config.kind_options import (
    add_options,
    check_options,
    resolve_options,
    resolve_path,
)
from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.settings.errors import report_as_value_error
from ppdm_core.settings.sections import Section
from warehouse.columns import Source
from warehouse.sources import SOURCES

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(SOURCES)]  # the form lists the choices


def _add_options(schema: dict[str, Any]) -> None:
    """Add the options of every kind to the form."""
    add_options(schema, SOURCES)


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
        options = resolve_options(folder, self.options, SOURCES[self.kind].options)
        return Source(self.kind, self.path and resolve_path(folder, self.path), options)

    @model_validator(mode="after")
    @report_as_value_error
    def _check_keys_of_kind(self) -> SourceSpec:
        errors, reader = ErrorList(), SOURCES[self.kind]
        with errors.collect():
            check_options(self.kind, self.options, SOURCES, "source", ("kind", "path"))
        if reader.endings and not self.path:
            errors.add(BadInput("The 'path' key of [source] is missing.", remedy="Add 'path'."))
        if not reader.endings and self.path:
            why = f"A {self.kind} source has no 'path'."
            errors.add(BadInput(why, remedy="Remove 'path'."))
        errors.raise_all()
        reader.check_options(self.path, self.options)
        return self

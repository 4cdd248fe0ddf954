"""The [[sinks]] sections of a release file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from flows.config.kind_options import add_options, check_options, resolve_options
from ppdm_core.model.errors import BadInput
from ppdm_core.settings.errors import report_as_value_error
from ppdm_core.settings.sections import Section
from warehouse.sinks import SINKS, SinkSettings

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(SINKS)]  # the form lists the choices


def _add_options(schema: dict[str, Any]) -> None:
    """Add the options of every kind to the form."""
    add_options(schema, SINKS)


class SinkSpec(Section):
    """A further place or format of the release, with the options of its kind as further keys.

    The folder of a version always holds the release as Parquet.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_options)
    kind: Kind = Field(description="Kind of the sink.")

    @property
    def options(self) -> dict[str, str]:
        """The options that are set."""
        return {key: value for key, value in (self.model_extra or {}).items() if value is not None}

    def build(self, folder: str | Path) -> SinkSettings:
        """Return the sink; relative paths start at a folder."""
        options = resolve_options(folder, self.options, SINKS[self.kind].options)
        return SinkSettings(self.kind, options)

    @model_validator(mode="after")
    @report_as_value_error
    def _check_keys_of_kind(self) -> SinkSpec:
        check_options(self.kind, self.options, SINKS, "sink", ("kind",))
        SINKS[self.kind].check_options(self.options)
        return self


def check_sinks(sinks: Sequence[SinkSpec]) -> None:
    """Raise BadInput if two sinks are the same place."""
    places = [(each.kind, each.options.get("url"), each.options.get("schema")) for each in sinks]
    for place in places:
        if places.count(place) > 1:
            raise BadInput(f"Two {place[0]} sinks are the same place.", remedy="Remove one.")

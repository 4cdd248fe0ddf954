"""The declared columns of a source, as the release file states them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

OTHER: Final = "other"  # the category of all cells that are not listed, with outside = "other"
RESERVED = "__ppdm_"  # prefix of our own columns; no source column may start with it


@dataclass(frozen=True)
class Derivation:
    """How a column is computed from columns of the source."""

    function: str  # a key of warehouse.derivations.FUNCTIONS
    sources: tuple[str, ...]
    edges: tuple[float, ...] = ()
    date: str = ""  # YYYY-MM-DD


@dataclass(frozen=True)
class Column:
    """A column of the source, or derived from it, with its role and its rules."""

    name: str
    role: Literal["identifier", "label", "feature", "exclude"]
    type: Literal["numeric", "categorical"] | None = None
    low: float | Literal["from_data"] | None = None
    high: float | Literal["from_data"] | None = None
    categories: tuple[str, ...] = ()
    outside: Literal["clamp", "reject", "drop_row", "other"] = "clamp"
    missing: Literal["reject", "drop_row", "median", "keep"] = "reject"  # keep: categorical only
    derivation: Derivation | None = None  # of features only

    @property
    def is_from_data(self) -> bool:
        """Whether a bound is taken from the private data."""
        return "from_data" in (self.low, self.high)

    @property
    def is_imputed(self) -> bool:
        """Whether empty cells are filled with a value of other records."""
        return self.missing == "median"

    @property
    def drops_rows(self) -> bool:
        """Whether rows are dropped because of their value in this column."""
        return self.missing == "drop_row" or (self.outside == "drop_row" and bool(self.categories))


@dataclass(frozen=True)
class Source:
    """Where the private table is."""

    kind: str  # a key of warehouse.sources.SOURCES
    path: str  # absolute, of a file or folder, a pattern, or a URL; "" if the kind reads no file
    options: Mapping[str, str] = field(default_factory=dict)  # see Reader.options

    @property
    def name(self) -> str:
        """The name of the file without its folder; that of the table if there is no file."""
        return os.path.basename(self.path.rstrip("/")) or self.options.get("table") or self.kind

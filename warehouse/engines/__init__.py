"""Engines, by the value of 'kind' in [engine]."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from warehouse.engines.settings import EngineSettings, translate_bad_input

if TYPE_CHECKING:
    from warehouse.engines._engine import Engine as Engine

# Names, because release files are read without numpy, which the classes import.
ENGINES: dict[str, str] = {
    "local": "warehouse.engines.local:Local",
    "dask": "warehouse.engines.dask:Dask",
}


def load_engine(kind: str) -> type[Engine]:
    """Return the class of an engine."""
    found: type[Engine] = pkgutil.resolve_name(ENGINES[kind])
    return found


__all__ = ["ENGINES", "EngineSettings", "load_engine", "translate_bad_input"]

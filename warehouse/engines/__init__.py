"""Engines, by the value of 'kind' in [engine]."""

from __future__ import annotations

from warehouse.engines._engine import Engine, EngineSettings
from warehouse.engines.dask import Dask
from warehouse.engines.local import Local

ENGINES: dict[str, type[Engine]] = {
    "local": Local,
    "dask": Dask,
}

__all__ = ["ENGINES", "Engine", "EngineSettings"]

"""A planted bug: messages are not encrypted. A worker of dask imports this as a preload."""

from __future__ import annotations

from warehouse.engines import dask


def keep(key: bytes, data: bytes) -> bytes:
    """Return the data as it is, in place of sealing or unsealing it."""
    return data


def plant() -> None:
    dask.seal = dask.unseal = keep


plant()

"""One builder of release contexts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ppdm_core.model.policy import Policy
from tasks.context import ReleaseContext
from warehouse.columns import Column, Source
from warehouse.home import Home


def make_context(folder: Path, **changes: Any) -> ReleaseContext:
    """Return the settings of a release of `t.csv` in the folder, and create its home.

    The table has the columns id, x and y. The changes replace fields of the context.
    """
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 1.0}
    fields: dict[str, Any] = {
        "folder": str(folder),
        "file_digest": "f",
        "home": str(folder / "home"),
        "dataset": "table",
        "owner": "o",
        "audience": "a",
        "source": Source("csv", str(folder / "t.csv")),
        "columns": (Column("id", "identifier"), Column("x", **numeric), Column("y", **numeric)),
        "method": "additive_noise",
        "parameters": {"b": 0.5},
        "policy": Policy(required=(), limits={}, shadow_draws=1),
        "record_id": "id",
    }
    context = ReleaseContext(**{**fields, **changes})
    Home(Path(context.home)).create()
    return context

"""Ledger entries as `ppdm ledger --json` gives them."""

from __future__ import annotations

import math
from typing import Any


def make_entries() -> list[dict[str, Any]]:
    """Return the entries of two releases that each ask for 1,000; the second reaches the limit."""
    asked = math.log(1000)
    return [
        {
            "release_id": f"a_rather_long_name-000{n}",
            "happened": f"2026-03-0{n}T03:00:00",
            "method": "pca_laplace",
            "kind": "charged",
            "records": 178,
            "ln_asked": asked,
            "ln_spent": asked * (n - 1),
            "ln_total": asked * n,
            "terms": {"limits": {"ledger.record": 1e6}},
        }
        for n in (1, 2)
    ]

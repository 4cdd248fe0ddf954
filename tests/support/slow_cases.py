"""Parameters of a test of which only some belong to the normal suite."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mark_slow(cases: Iterable[str], normal: Collection[str]) -> list[Any]:
    """Return the cases as parameters; those that are not in ``normal`` are slow."""
    return [
        case if case in normal else pytest.param(case, marks=pytest.mark.slow) for case in cases
    ]

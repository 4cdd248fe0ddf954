"""Parameters of a test of which only some belong to the normal suite."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest


def mark_slow(cases: Iterable[str], normal: Collection[str]) -> list[Any]:
    """Return the cases as parameters; those that are not in ``normal`` are slow."""
    return [
        case if case in normal else pytest.param(case, marks=pytest.mark.slow) for case in cases
    ]


def mark_exhaustive(cases: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """Return the cases of a slow test as parameters; those not in ``slow`` are exhaustive.

    A case of several parameters is a tuple.
    """
    marked = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if case in slow else pytest.mark.exhaustive
        marked.append(pytest.param(*values, marks=marks))
    return marked


def take_in_turn(rows: Iterable[Any], columns: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return each row with one of the columns: the first with the first, and so on in turn."""
    return [(row, columns[i % len(columns)]) for i, row in enumerate(rows)]

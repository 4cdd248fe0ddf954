"""The keys of a derived column in a release file, and their checks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from ppdm_core.model.errors import BadInput
from ppdm_core.settings.errors import suggest_name
from warehouse.derivations import FUNCTIONS, Function

if TYPE_CHECKING:
    from flows.config.columns import ColumnSpec

MIN_EDGES = 3
OWN_KEYS = {"from": "sources", "edges": "edges", "date": "date"}  # with the field of each


def _parse_date(value: Any) -> Any:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, str):
        try:
            return datetime.datetime.strptime(value, "%Y-%m-%d").date().isoformat()
        except ValueError:
            raise ValueError('must be a date such as "2026-01-31"') from None
    return value


IsoDate = Annotated[str | None, BeforeValidator(_parse_date)]


def check_derivation(name: str, spec: ColumnSpec, columns: Mapping[str, ColumnSpec]) -> None:
    """Raise BadInput if a column is derived wrongly."""
    given = {key for key, field in OWN_KEYS.items() if getattr(spec, field) is not None}
    if spec.derive is None:
        if given:
            key = min(given)
            raise _build_error(
                name, f"declares '{key}' and no 'derive'.", f"Add 'derive', or remove '{key}'."
            )
        return
    function = FUNCTIONS.get(spec.derive)
    if function is None:
        raise _build_error(
            name,
            f"has the unknown derivation '{spec.derive}'.",
            suggest_name(spec.derive, FUNCTIONS),
        )
    if spec.role != "feature":
        raise _build_error(
            name, f"is derived and has the role {spec.role}.", 'Declare role = "feature".'
        )
    _check_keys(name, spec, function, given)
    _check_edges(name, spec)
    for source in spec.list_sources():
        _check_source(name, source, columns)


def _build_error(name: str, what: str, remedy: str) -> BadInput:
    return BadInput(f"Column '{name}' {what}", column=name, remedy=remedy)


def _check_keys(name: str, spec: ColumnSpec, function: Function, given: set[str]) -> None:
    needed = {"from", *function.options}
    for key in sorted(given - needed):
        raise _build_error(name, f"declares '{key}', which {spec.derive} has not.", "Remove it.")
    for key in sorted(needed - given):
        raise _build_error(name, f"is derived and lacks '{key}'.", f"Add '{key}'.")
    count = len(spec.list_sources())
    if count != function.sources:
        shape = 'from = "a"' if function.sources == 1 else 'from = ["a", "b"]'
        raise _build_error(
            name,
            f"is derived from {count} column{'' if count == 1 else 's'}, and {spec.derive} takes "
            f"{function.sources}.",
            f"Declare {shape}.",
        )
    if len(set(spec.list_sources())) < count:
        raise _build_error(name, "is derived from the same column twice.", "Name two columns.")
    if spec.type not in (None, function.gives):
        raise _build_error(
            name,
            f"is {spec.type}, and {spec.derive} gives a {function.gives} one.",
            "Remove 'type'.",
        )
    if spec.categories is not None and function.gives == "categorical":
        raise _build_error(
            name, "is derived and declares categories.", "Remove 'categories': they are the bins."
        )


def _check_edges(name: str, spec: ColumnSpec) -> None:
    edges = spec.edges
    if edges is None:
        return
    if len(edges) < MIN_EDGES:
        raise _build_error(
            name, f"has fewer than {MIN_EDGES} edges, which give two bins.", "Add edges."
        )
    if any(a >= b for a, b in pairwise(edges)):
        raise _build_error(name, "has edges that do not ascend.", "Sort them; each must differ.")


def _check_source(name: str, source: str, columns: Mapping[str, ColumnSpec]) -> None:
    """Check a source; what identifies a record is never released, nor what follows from it."""
    if source not in columns:
        others = [each for each, spec in columns.items() if spec.derive is None]
        raise _build_error(
            name,
            f"is derived from '{source}', which is not a declared column.",
            suggest_name(source, others),
        )
    spec = columns[source]
    if spec.derive is not None:
        raise _build_error(
            name, f"is derived from '{source}', which is derived itself.", "Name a source column."
        )
    if spec.role in ("identifier", "label"):
        raise _build_error(
            name,
            f"is derived from '{source}', which has the role {spec.role}.",
            'Name columns with the role "feature" or "exclude".',
        )

"""Earlier releases of the records that are released now, as a subscriber may have kept them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ppdm_core.play import Past
from ppdm_core.scaling import Scaling
from ppdm_core.types import Floats, Ints, Public, Version
from tasks.facts import public_from_dict
from tasks.ingest import validated_table
from tasks.plan import Plan
from warehouse.door import candidate_table
from warehouse.past import VERSION, published_runs, read_again, read_drawn
from warehouse.sql import ROW
from warehouse.store import Run, read_fact

Facts = Mapping[str, Any]


def read_past(db: Any, plan: Plan, run: Run, facts: Facts, kept: Ints) -> Past | None:
    """None where nobody can say which rows belong together; without versions at first."""
    columns = facts["public"]["columns"]
    if plan.record_id is None or not facts["row_aligned"] or not columns:
        return None
    people = validated_table(run)
    versions: list[Version] = []
    again = np.full((len(kept), len(columns)), np.nan)
    for then, runs in alike(db, plan.dataset, facts):
        found = read_drawn(db, runs, then["public"]["columns"], people)
        versions += versions_of(found, then, facts, kept)
        if mechanism(then) == mechanism(facts):
            rows = read_again(db, runs, columns, people, candidate_table(run))
            again[np.searchsorted(kept, rows[ROW])] = in_units(rows, facts, facts)
    return Past(tuple(versions), again)


def alike(db: Any, dataset: str, facts: Facts) -> list[tuple[Facts, list[Run]]]:
    """Published releases of the same columns, those of one mechanism together."""
    found: dict[str, tuple[Facts, list[Run]]] = {}
    for run in published_runs(db, dataset):
        then = read_fact(db, run.release_id, "sanitized")
        if then is not None and features(then) == features(facts):
            found.setdefault(mechanism(then), (then, []))[1].append(run)
    return list(found.values())


def features(facts: Facts) -> list[str]:
    return [column["name"] for column in facts["schema"]["numeric"]]


def mechanism(facts: Facts) -> str:
    return json.dumps([facts["public"], facts["scaling"]], sort_keys=True)


def versions_of(found: Mapping[str, Any], then: Facts, now: Facts, kept: Ints) -> list[Version]:
    """The latest draw of every record, then the one before that, and so on."""
    Y = in_units(found, then, now)
    is_kept = np.isin(found[ROW], kept)
    place, number = np.searchsorted(kept, found[ROW][is_kept]), found[VERSION][is_kept]
    stack = np.full((1 + number.max(initial=-1), len(kept), Y.shape[1]), np.nan)
    stack[number, place] = Y[is_kept]
    return [Version(each, rescaled(then, now)) for each in stack]


def in_units(found: Mapping[str, Any], then: Facts, now: Facts) -> Floats:
    """Released columns as numbers; those in the units of the source in the scale of now."""
    Y = np.column_stack([found[name] for name in then["public"]["columns"]])
    if not then["same_columns"]:
        return Y
    scaling = Scaling.from_dict(now["scaling"])
    return np.asarray((Y - scaling.offset) / scaling.unit)


def rescaled(then: Facts, now: Facts) -> Public:
    """What was public then, for records in the scale of now."""
    public = public_from_dict(then["public"])
    old, new = (Scaling.from_dict(facts["scaling"]) for facts in (then, now))
    if np.array_equal(old.offset, new.offset) and np.array_equal(old.unit, new.unit):
        return public
    if public.centre is None or public.loadings is None:
        return public
    return replace(
        public,
        centre=(public.centre * old.unit + old.offset - new.offset) / new.unit,
        loadings=public.loadings * (new.unit / old.unit)[:, None],
    )

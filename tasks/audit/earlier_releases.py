"""Earlier releases of the records that are released now, as a subscriber may have kept them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.simulation import EarlierReleases
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import EarlierRows
from ppdm_core.model.release import Public
from ppdm_core.numerics.linear_map import has_map, has_same_map, invert, project
from ppdm_core.numerics.scaling import Scaling
from tasks.context import Plan
from tasks.ingest.task import validated_table
from tasks.stage_facts import public_from_dict
from warehouse.database import Run, read_fact
from warehouse.publishing.publish import candidate_table
from warehouse.publishing.published_rows import LAST, SEEN, count_rows, published_runs, read_drawn
from warehouse.sql import ROW, quoted

Facts = Mapping[str, Any]
SAME = 1e-6  # of the scale of the noise: what arithmetic may have changed in the same draw


def read_past(db: Any, plan: Plan, run: Run, facts: Facts, kept: Ints) -> EarlierReleases | None:
    """None where nobody can say which rows belong together; without versions at first."""
    columns = facts["public"]["columns"]
    if plan.record_id is None or not facts["row_aligned"] or not columns:
        return None
    runs, lost = published_runs(db, plan.dataset)
    names = ", ".join(map(quoted, (ROW, *columns)))
    candidate = db.execute(f"select {names} from {candidate_table(run)} order by {ROW}")
    Y_now, now = brought(candidate.fetchnumpy(), facts, facts)
    again, seen = np.full(Y_now.shape, np.nan), np.full(len(Y_now), "", dtype=object)
    versions, still = [], 0
    for then, alike in mechanisms(db, runs):
        found = read_drawn(db, alike, then["public"]["columns"], validated_table(run))
        rows = np.searchsorted(kept, found[ROW]).clip(max=len(kept) - 1)
        is_kept = kept[rows] == found[ROW]
        Y, public = brought(found, then, facts)
        version = EarlierRows(rows[is_kept], Y[is_kept], public)
        same = is_same_draw(version, Y_now, now)
        again[version.rows[same]] = Y_now[version.rows[same]]
        seen[version.rows[same]] += found[SEEN][is_kept][same] + ";"
        still += int(np.sum(found[LAST][is_kept][same] == runs[-1].number))
        versions.append(version)
    gone = count_rows(db, runs[-1]) - still if runs else 0
    return EarlierReleases(
        tuple(versions), again, np.unique(seen, return_inverse=True)[1], gone, lost
    )


def mechanisms(db: Any, runs: list[Run]) -> list[tuple[Facts, list[Run]]]:
    """Published releases, those that were made in one way together."""
    found: dict[str, tuple[Facts, list[Run]]] = {}
    for run in runs:
        then = read_fact(db, run.release_id, "sanitized")
        if then is not None and then["public"]["columns"]:
            text = json.dumps([then["public"], then["scaling"], features(then)], sort_keys=True)
            found.setdefault(text, (then, []))[1].append(run)
    return list(found.values())


def features(facts: Facts) -> list[str]:
    return [column["name"] for column in facts["schema"]["numeric"]]


def brought(found: Mapping[str, Any], then: Facts, now: Facts) -> tuple[Floats, Public]:
    """Released rows, and what was public of them, for records in the columns and scale of now."""
    Y, public = table_of(found, then), public_from_dict(then["public"])
    if features(then) == features(now):
        return scaled(Y, now) if then["same_columns"] else Y, rescaled(public, then, now)
    X = np.full((len(Y), len(features(now))), np.nan)
    if not then["same_columns"] and not has_map(public):
        return X, replace(public, columns=(), space="rotated")  # which nobody can turn back
    if not then["same_columns"]:
        Y = Scaling.from_dict(then["scaling"]).undo(invert(public, Y))
    for j, name in enumerate(features(now)):
        if name in features(then):
            X[:, j] = Y[:, features(then).index(name)]
    return scaled(X, now), Public(public.method, "original", tuple(features(now)))


def table_of(found: Mapping[str, Any], facts: Facts) -> Floats:
    return np.column_stack([found[name] for name in facts["public"]["columns"]])


def scaled(X: Floats, now: Facts) -> Floats:
    """From the units of the source to the scale of now."""
    scaling = Scaling.from_dict(now["scaling"])
    return np.asarray((X - scaling.offset) / scaling.unit)


def rescaled(public: Public, then: Facts, now: Facts) -> Public:
    """The map of then, for records in the scale of now."""
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


def is_same_draw(version: EarlierRows, Y: Floats, public: Public) -> NDArray[np.bool_]:
    """Which of the earlier rows leave again as they are."""
    if not has_same_map(version.public, public):
        return np.zeros(len(version.rows), dtype=np.bool_)
    slack = SAME if public.scales is None else SAME * public.scales
    gap = components(version.public, version.Y) - components(public, Y)[version.rows]
    return np.asarray((np.abs(gap) <= slack).all(axis=1))


def components(public: Public, Y: Floats) -> Floats:
    return project(public, Y) if has_map(public) and public.space == "original" else Y

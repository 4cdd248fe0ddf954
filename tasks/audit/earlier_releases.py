"""Earlier releases of the records that are released now, as a subscriber may have stored them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import EarlierReleases
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import EarlierRows
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.linear_map import has_map, has_same_map, invert, project
from ppdm_core.numerics.scaling import Scaling
from tasks.context import ReleaseContext
from warehouse.database import Run
from warehouse.json_codec import to_json
from warehouse.publishing.published_rows import (
    LAST,
    SEEN,
    list_comparable_runs,
    read_distinct_draws,
)
from warehouse.sanitized_tables import read_candidate, select_source_rows
from warehouse.sql import ROW, count_rows
from warehouse.stage_facts import SanitizedFacts, read_facts
from warehouse.tables import candidate_table, published_rows_table
from warehouse.transaction import Transaction

MAX_ROUNDING_ERROR = 1e-6  # relative to the scale of the noise, between equal draws


def read_earlier_releases(
    db: Transaction,
    context: ReleaseContext,
    run: Run,
    facts: SanitizedFacts,
    kept: Ints,
    total: int | None = None,
) -> EarlierReleases | None:
    """Return the earlier releases of the kept records, or None if rows cannot be matched.

    For the first release of a dataset the result holds no versions. ``total``: the number of all
    released records, if only a part of them is kept for the audit.
    """
    if context.record_id is None or not facts.row_aligned or not facts.public.columns:
        return None
    runs, unmatched = list_comparable_runs(db, context.dataset)
    records, share = candidate_table(run), 1.0
    if total is not None:
        records, share = select_source_rows(db, records, kept), len(kept) / total
    candidate = read_candidate(db, run, facts.public.columns, records)
    Y_now, public_now = convert_to_current(candidate, facts, facts)
    unchanged = np.full(Y_now.shape, np.nan)
    seen = np.full(len(Y_now), "", dtype=object)
    versions, still_released = [], 0
    for earlier, its_runs in group_by_mechanism(db, runs):
        found = read_distinct_draws(db, its_runs, earlier.public.columns, records)
        rows = np.searchsorted(kept, found[ROW]).clip(max=len(kept) - 1)
        is_kept = kept[rows] == found[ROW]
        Y, public = convert_to_current(found, earlier, facts)
        version = EarlierRows(rows[is_kept], Y[is_kept], public)
        is_same = find_same_draws(version, Y_now, public_now)
        unchanged[version.rows[is_same]] = Y_now[version.rows[is_same]]
        seen[version.rows[is_same]] += found[SEEN][is_kept][is_same] + ";"
        still_released += int(np.sum(found[LAST][is_kept][is_same] == runs[-1].number))
        versions.append(version)
    published = count_rows(db, published_rows_table(runs[-1])) if runs else 0
    removed = max(0, published - round(still_released / share))
    return EarlierReleases(
        tuple(versions), unchanged, np.unique(seen, return_inverse=True)[1], removed, unmatched
    )


def group_by_mechanism(db: Transaction, runs: list[Run]) -> list[tuple[SanitizedFacts, list[Run]]]:
    """Return the published runs in groups that were made with the same public parameters."""
    found: dict[str, tuple[SanitizedFacts, list[Run]]] = {}
    for run in runs:
        facts = read_facts(db, run.release_id, SanitizedFacts)
        if facts.public.columns:
            mechanism = to_json([facts.public, facts.scaling, facts.features])
            text = json.dumps(mechanism, sort_keys=True)
            found.setdefault(text, (facts, []))[1].append(run)
    return list(found.values())


def convert_to_current(
    found: Mapping[str, Any], earlier: SanitizedFacts, now: SanitizedFacts
) -> tuple[Floats, PublicParameters]:
    """Return earlier rows and their public parameters in the columns and scale of this release."""
    public = earlier.public
    Y = np.column_stack([found[name] for name in public.columns])
    if earlier.features == now.features:
        rescaled = rescale_map(public, earlier.scaling, now.scaling)
        return scale(Y, now.scaling) if earlier.same_columns else Y, rescaled
    X = np.full((len(Y), len(now.features)), np.nan)
    if not earlier.same_columns and not has_map(public):
        return X, replace(public, columns=(), space="rotated")  # it cannot be inverted
    if not earlier.same_columns:
        Y = earlier.scaling.undo(invert(public, Y))
    for j, name in enumerate(now.features):
        if name in earlier.features:
            X[:, j] = Y[:, earlier.features.index(name)]
    return scale(X, now.scaling), PublicParameters(public.method, "original", now.features)


def scale(X: Floats, scaling: Scaling) -> Floats:
    """Return values in the units of the source as scaled values."""
    return np.asarray((X - scaling.offset) / scaling.unit)


def rescale_map(public: PublicParameters, old: Scaling, new: Scaling) -> PublicParameters:
    """Return public parameters whose map applies to records in the new scale."""
    if np.array_equal(old.offset, new.offset) and np.array_equal(old.unit, new.unit):
        return public
    if public.centre is None or public.loadings is None:
        return public
    return replace(
        public,
        centre=(public.centre * old.unit + old.offset - new.offset) / new.unit,
        loadings=public.loadings * (new.unit / old.unit)[:, None],
    )


def find_same_draws(version: EarlierRows, Y: Floats, public: PublicParameters) -> NDArray[np.bool_]:
    """Return which of the earlier rows are released again as they are."""
    if not has_same_map(version.public, public):
        return np.zeros(len(version.rows), dtype=np.bool_)
    slack = MAX_ROUNDING_ERROR if public.scales is None else MAX_ROUNDING_ERROR * public.scales
    gap = to_components(version.public, version.Y) - to_components(public, Y)[version.rows]
    return np.asarray((np.abs(gap) <= slack).all(axis=1))


def to_components(public: PublicParameters, Y: Floats) -> Floats:
    """Return released rows as components where a public map has them."""
    return project(public, Y) if has_map(public) and public.space == "original" else Y

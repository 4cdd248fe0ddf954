"""The inputs of the attack process: the original records and the draws, read from the warehouse."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.scaling import Scaling
from tasks.audit.attack_worker import AttackJob
from tasks.audit.earlier_releases import read_earlier_releases
from tasks.context import ReleaseContext
from warehouse.database import Run, Store
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.sanitized_tables import read_kept_records, read_original, read_released_table
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts, read_facts
from warehouse.tables import half_table, shadow_table
from warehouse.transaction import Transaction


def export_inputs(context: ReleaseContext, store: Store, run: Run) -> AttackJob:
    """Write all inputs as files into the private work folder."""
    folder = store.home.work(run.release_id)
    store.home.clear_work(run.release_id)
    folder.mkdir(parents=True)
    policy = context.policy
    with store.transaction(run.release_id) as db:
        facts = read_facts(db, run.release_id, SanitizedFacts)
        validated = read_facts(db, run.release_id, ValidatedFacts)
        kept, is_in = read_kept_records(db, run, len(facts.halves))
        original = build_original(db, run, validated.schema, facts.scaling, policy.groups)
        write(folder / "truth", original)
        for k in range(policy.shadow_draws):
            draw = build_draw(db, facts.public, shadow_table(run, k), kept)
            if facts.row_aligned:
                draw = replace(draw, source=None)
            write(folder / f"shadow_{k}", add_leaked_map(draw, facts.leaks[k : k + 1]))
        for k, public in enumerate(facts.halves):
            draw = build_draw(db, public, half_table(run, k), kept)
            write(folder / f"half_{k}", replace(draw, members=np.flatnonzero(is_in[:, k])))
        earlier = read_earlier_releases(db, context, run, facts, kept)
        if earlier is not None:
            write(folder / "past", earlier)
    noise = dataset_noise(store, context.dataset)
    seed = noise.subkey("audit", validated.data, policy.attack_settings_key, run.code_version)
    halves = len(facts.halves)
    return AttackJob(str(folder), policy.shadow_draws, halves, policy, seed, earlier is not None)


def write(path: Path, inputs: OriginalTable | ReleaseDraw | EarlierReleases) -> None:
    """Write one input as a pickle, which only the attack process reads."""
    with path.open("wb") as file:
        pickle.dump(inputs, file)


def build_original(
    db: Transaction, run: Run, schema: Schema, scaling: Scaling, groups: Sequence[str]
) -> OriginalTable:
    """Return the scaled records that could be released, with the groups of the policy."""
    X, C, label = read_original(db, run, schema)
    original = OriginalTable(
        X=(X - scaling.offset) / scaling.unit,
        label=label,
        schema=scaling.scale_schema(schema),
        C=C,
    )
    return replace(original, groups=find_groups(original, groups))


def find_groups(original: OriginalTable, names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Return the members of each category of the named columns."""
    found = {}
    schema = original.schema
    columns: list[tuple[Categorical, Codes]] = list(
        zip(schema.categorical, original.codes.T, strict=True)
    )
    columns += [(schema.label, original.label)] if schema.label else []
    for column, codes in columns:
        if column.name in names:
            for code, category in enumerate(column.categories):
                found[f"{column.name} = {category}"] = codes == code
    return found


def build_draw(db: Transaction, public: PublicParameters, table: str, kept: Ints) -> ReleaseDraw:
    """Return a draw; its records are numbered by their place among the kept ones."""
    rows, Y, C = read_released_table(db, table, public)
    return ReleaseDraw(Y, public, np.searchsorted(kept, rows), C)


def add_leaked_map(draw: ReleaseDraw, leaks: Sequence[tuple[Floats, Floats]]) -> ReleaseDraw:
    """Return the draw with the map that an attacker who has the key would know, if there is one."""
    for centre, loadings in leaks:
        return replace(draw, leaked_map=replace(draw.public, centre=centre, loadings=loadings))
    return draw

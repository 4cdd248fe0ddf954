"""What the attacking process gets: the truth and the draws, out of the warehouse."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.simulation import Draw, Past, Truth
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Public
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.scaling import Scaling
from tasks.audit.attack_worker import Job
from tasks.audit.earlier_releases import read_past
from tasks.context import Plan
from tasks.ingest.task import validated_table
from tasks.keys import dataset_noise
from tasks.sanitize.task import half_name, half_table, kept_table, shadow_table
from tasks.stage_facts import public_from_dict, schema_from_dict
from warehouse.database import Run, Store, read_fact
from warehouse.publishing.publish import ORDER
from warehouse.sql import ROW, literal, quoted


def export(plan: Plan, store: Store, run: Run) -> Job:
    """Everything as files in the private work folder."""
    folder = store.home.work(run.release_id)
    store.home.clear_work(run.release_id)
    folder.mkdir(parents=True)
    with store.transaction(run.release_id) as db:
        facts = read_fact(db, run.release_id, "sanitized")
        valid = read_fact(db, run.release_id, "validated")
        assert facts is not None and valid is not None
        scaling, schema = Scaling.from_dict(facts["scaling"]), schema_from_dict(valid["schema"])
        halves = range(len(facts["halves"]))
        kept, is_in = numbered(db, [half_name(k) for k in halves], kept_table(run))
        write(folder / "truth", read_truth(db, run, schema, scaling, plan.policy.groups))
        public = public_from_dict(facts["public"])
        for k in range(plan.policy.shadow_draws):
            draw = read_draw(db, public, shadow_table(run, k), kept)
            if facts["row_aligned"]:
                draw = replace(draw, source=None)
            write(folder / f"shadow_{k}", with_leak(draw, facts["leaks"][k : k + 1]))
        for k in halves:
            draw = read_draw(db, public_from_dict(facts["halves"][k]), half_table(run, k), kept)
            write(folder / f"half_{k}", replace(draw, members=np.flatnonzero(is_in[:, k])))
        past = read_past(db, plan, run, facts, kept)
        if past is not None:
            write(folder / "past", past)
    noise = dataset_noise(store, plan.dataset)
    seed = noise.subkey("audit", valid["data"], plan.policy.play, run.code_version)
    draws = plan.policy.shadow_draws
    return Job(str(folder), draws, len(halves), plan.policy, seed, past is not None)


def write(path: Path, evidence: Truth | Draw | Past) -> None:
    with path.open("wb") as file:
        pickle.dump(evidence, file)


def read_truth(db: Any, run: Run, schema: Schema, scaling: Scaling, groups: Sequence[str]) -> Truth:
    table = f"{validated_table(run)} where {ROW} in (select {ROW} from {kept_table(run)})"
    _, X = numbered(db, schema.names, table)
    _, C = numbered(db, [column.name for column in schema.categorical], table)
    _, label = numbered(db, ["__ppdm_label"], table)
    truth = Truth(
        X=(X - scaling.offset) / scaling.unit,
        label=label[:, 0].astype(np.int32),
        schema=scaling.schema(schema),
        C=C.astype(np.int32),
    )
    return replace(truth, groups=groups_of(truth, groups))


def groups_of(truth: Truth, names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    found = {}
    schema = truth.schema
    columns: list[tuple[Categorical, Codes]] = list(
        zip(schema.categorical, truth.codes.T, strict=True)
    )
    columns += [(schema.label, truth.label)] if schema.label else []
    for column, codes in columns:
        if column.name in names:
            for code, category in enumerate(column.categories):
                found[f"{column.name} = {category}"] = codes == code
    return found


def read_draw(db: Any, public: Public, table: str, kept: Ints) -> Draw:
    order = f"{ROW}, {ORDER}"
    rows, Y = numbered(db, public.columns, table, order)
    answers = [code_of(response.column) for response in public.responses]
    query = f"select {', '.join([ROW, *answers])} from {table} order by {order}"
    found = db.execute(query).fetchnumpy()
    C = np.column_stack([found[r.column.name] for r in public.responses] or [np.zeros((len(Y), 0))])
    return Draw(Y, public, np.searchsorted(kept, rows), C.astype(np.int32))


def code_of(column: Categorical) -> str:
    """Words back to their places among the categories, -1 for none."""
    words = ", ".join(map(literal, column.categories))
    name = quoted(column.name)
    return f"coalesce(list_position([{words}], {name}), 0) - 1 as {name}"


def with_leak(draw: Draw, leak: list[list[Any]]) -> Draw:
    if not leak:
        return draw
    centre, loadings = (np.array(part) for part in leak[0])
    return replace(draw, leak=replace(draw.public, centre=centre, loadings=loadings))


def numbered(db: Any, names: Sequence[str], table: str, order: str = ROW) -> tuple[Ints, Floats]:
    """Places in the source, and the named columns beside them, (n, len(names))."""
    query = f"select {', '.join(map(quoted, (ROW, *names)))} from {table} order by {order}"
    columns = db.execute(query).fetchnumpy()
    found = np.empty((len(columns[ROW]), len(names)))
    for i, name in enumerate(names):
        found[:, i] = columns[name]
    return columns[ROW], found

"""The candidate and its shadow draws, in one step over Parquet parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Public, Released
from ppdm_core.model.rows import BLOCK, Block, Rows, pick, row_numbers
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling, fit_scaling
from ppdm_core.sanitizers import make_sanitizer
from tasks.context import Plan
from tasks.ingest.task import rejecting, validated_table
from tasks.judge.ledger_charge import drawn
from tasks.keys import dataset_noise
from tasks.progress import log_progress
from tasks.redaction import shielded
from tasks.sanitize.release_writer import original_units, reader_of
from tasks.sanitize.stored_fit import fit_identity, keep_fit, published_facts, stored_fit
from tasks.stage_facts import guarantee_to_dict, public_to_dict, schema_from_dict
from warehouse.checkpoints import checkpoint
from warehouse.columns import Column
from warehouse.database import Run, Store, keep_fact, read_fact
from warehouse.ledger.entries import write_draws
from warehouse.parquet_parts import PartRows, to_block, write_parts
from warehouse.publishing.publish import candidate_table, write_candidate
from warehouse.sql import ROW, quoted
from warehouse.stages import Stage, is_past

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@task(name="make draws", cache_policy=NO_CACHE)
@shielded
def make_draws(plan: Plan, release_id: str) -> None:
    log_progress("perturbing: the candidate and its shadow draws")
    store, run = plan.run(release_id)
    if is_past(run.stage, Stage.SANITIZED):
        return
    store.home.clear_work(release_id)
    with rejecting(store, run, plan):
        Draws(plan, store, run).make()
    store.home.clear_work(release_id)


FEWEST_OF_A_HALF = 10  # people; with fewer, nothing can be told of those outside


@dataclass(frozen=True, eq=False)
class Half:
    """Some of the records, and a release of them alone."""

    rows: Rows
    released: Released


class Draws:
    def __init__(self, plan: Plan, store: Store, run: Run) -> None:
        self.plan, self.store, self.run = plan, store, run
        self.work = store.home.work(run.release_id)
        self.noise = dataset_noise(store, plan.dataset)
        self.sanitizer = make_sanitizer(plan.method, plan.parameters)

    def make(self) -> None:
        rows = self.export()
        with self.store.transaction(self.run.release_id) as db:
            earlier = published_facts(db, self.plan.dataset)
        reserved = max((facts["set_aside_share"] for facts in earlier), default=0.0)
        kept, aside = set_aside(rows, self.noise, self.sanitizer.set_aside, reserved)
        given = self.basis_from_file()
        identity = fit_identity(self.sanitizer, rows.schema, given)
        self.check_refit(identity, earlier)
        fitted = self.fitted(identity, aside or kept, given)
        scaling = Scaling.from_dict(fitted["scaling"])
        X = scaling.apply(kept)
        candidate = self.sanitizer.sanitize(X, self.noise, fitted)
        check_names_left(self.plan.columns, candidate.public)
        checkpoint("candidate drawn")
        shadows = [
            self.sanitizer.sanitize(self.placed(X), self.shadow_noise(k), fitted)
            for k in range(self.plan.policy.shadow_draws)
        ]
        halves = self.halves(X, fitted, is_fit_on_them=aside is None and given is None)
        checkpoint("shadows drawn")
        with self.store.advance(self.run, Stage.SANITIZED) as change:
            fit_digest = keep_fit(change.db, self.run, identity, fitted)
            write_kept(change.db, self.run, X, halves)
            draws_digest = self.write_draws(change.db, X, candidate, fitted)
            self.write_tables(change.db, candidate, shadows, halves, scaling)
            label = (self.plan.label.name,) if self.plan.label else ()
            columns = candidate.public.names + label
            path = self.work / "candidate.parquet"
            digest = write_candidate(change.db, self.run, columns, path, self.plan.sink)
            facts = {
                "data_digest": digest,
                "method": self.plan.method,
                "parameters": self.plan.parameters,
                "public": public_to_dict(candidate.public),
                "schema": asdict(X.schema),
                "guarantee": guarantee_to_dict(self.sanitizer.guarantee(X.schema, fitted)),
                "atom": candidate.atom,
                "counts": dict(candidate.counts),
                "scaling": fitted["scaling"],
                "released": candidate.rows.n,
                "set_aside": rows.n - kept.n,
                "set_aside_share": max(self.sanitizer.set_aside, reserved),
                "fit": identity if self.sanitizer.learns else None,
                "fitted": fit_digest,
                "draws": draws_digest,
                "same_columns": self.sanitizer.keeps_columns,
                "row_aligned": self.sanitizer.row_aligned,
                "halves": [public_to_dict(half.released.public) for half in halves],
                "leaks": self.leaks(X.schema, fitted),
            }
            keep_fact(change.db, self.run, "sanitized", facts)
            change.detail.update(rows=candidate.rows.n, shadows=len(shadows))

    def export(self) -> PartRows:
        """The validated table as Parquet parts: long passes must not hold the warehouse."""
        with self.store.transaction(self.run.release_id) as db:
            facts = read_fact(db, self.run.release_id, "validated")
            assert facts is not None
            schema = schema_from_dict(facts["schema"])
            features = [*schema.names, *(column.name for column in schema.categorical)]
            names = ", ".join([*map(quoted, features), "__ppdm_label", ROW, "__ppdm_key"])
            query = f"select {names} from {validated_table(self.run)} order by {ROW}"
            reader = db.sql(query).to_arrow_reader(BLOCK)
            blocks = (to_block(with_fixed_keys(batch), schema) for batch in reader)
            return write_parts(blocks, schema, self.work / "validated")

    def placed(self, X: Rows) -> Rows:
        """Shadows of records without ids are keyed by place alone, so that a rerun, which is
        another release with other keys, is still judged on the same draws."""
        if self.plan.record_id:
            return X
        return X.map(lambda block: replace(block, key=row_numbers_from(block)), X.schema)

    @cached_property
    def data(self) -> str:
        """Digest of the records: the same ones are judged on the same draws."""
        with self.store.transaction(self.run.release_id) as db:
            facts = read_fact(db, self.run.release_id, "validated")
        assert facts is not None
        return str(facts["data"])

    def shadow_noise(self, k: int) -> Noise:
        scope = (self.data, self.plan.policy.play, self.run.code_version)
        return self.noise.derive("shadow", *scope, str(k))

    def halves(self, X: Rows, fitted: dict[str, Any], *, is_fit_on_them: bool) -> list[Half]:
        """Draws of a random half of the records, for attacks that need people outside a release.

        What is learned from released records is learned from the half again. Where the method
        cannot do with half of the records there are none, and those attacks do not apply.
        """
        found = []
        for k in range(self.plan.policy.splits):
            noise = self.shadow_noise(self.plan.policy.shadow_draws + k)

            def step(block: Block, noise: Noise = noise) -> Block:
                return pick(block, noise.ranks(block.key, "half") < 2**63)

            half = self.placed(X).map(step, X.schema)
            if min(half.n, X.n - half.n) < FEWEST_OF_A_HALF:
                return []
            try:
                learned = fitted
                if is_fit_on_them and self.sanitizer.learns:
                    learned = {**self.sanitizer.fit(half), "scaling": fitted["scaling"]}
                found.append(Half(half, self.sanitizer.sanitize(half, noise, learned)))
            except BadInput:
                return []
        return found

    def leaks(self, schema: Schema, fitted: dict[str, Any]) -> list[Any]:
        """The maps behind the shadow draws: what somebody with the key would know."""
        noises = map(self.shadow_noise, range(self.plan.policy.shadow_draws))
        maps = [self.sanitizer.leaked(schema, noise, fitted) for noise in noises]
        return [[part.tolist() for part in each] for each in maps if each is not None]

    def check_refit(self, identity: str, earlier: list[dict[str, Any]]) -> None:
        others = [facts for facts in earlier if facts["fit"] not in (None, identity)]
        if self.sanitizer.learns and others and not self.sanitizer.refit_waiver:
            raise BadInput(
                f"Method '{self.plan.method}' would learn from records of '{self.plan.dataset}' a "
                "second time; two published fits around one changed record give that record away.",
                remedy="Keep the earlier parameters, or waive it by name: refit_waiver = "
                '"who and why" in [sanitizer].',
            )

    def fitted(self, identity: str, rows: Rows, given: dict[str, Any] | None) -> dict[str, Any]:
        """What an earlier run learned, or a new fit where none did."""
        with self.store.transaction(self.run.release_id) as db:
            known = stored_fit(db, self.plan.dataset, identity)
        if known is not None:
            return known
        scaling = fit_scaling(rows, self.sanitizer.scale)
        learned = given or self.sanitizer.fit(scaling.apply(rows))
        return {**learned, "scaling": scaling.as_dict()}

    def basis_from_file(self) -> dict[str, Any] | None:
        name = getattr(self.sanitizer, "basis_file", None)
        if name is None:
            return None
        from tasks.sanitize.basis_file import read_basis

        features = [c.name for c in self.plan.columns if (c.role, c.type) == ("feature", "numeric")]
        return read_basis(Path(self.plan.folder) / name, features)

    def write_draws(
        self, db: duckdb.DuckDBPyConnection, X: Rows, candidate: Released, fitted: dict[str, Any]
    ) -> str:
        """For the ledger, which charges them with the verdict."""
        without_ids = None if self.plan.record_id else self.run
        return write_draws(
            db, self.run, drawn(X, candidate, self.sanitizer, self.noise, fitted, without_ids)
        )

    def write_tables(
        self,
        db: duckdb.DuckDBPyConnection,
        candidate: Released,
        shadows: list[Released],
        halves: list[Half],
        scaling: Scaling,
    ) -> None:
        keeps = self.sanitizer.keeps_columns
        undo = original_units(scaling, candidate.public) if keeps else None
        self.write_table(db, candidate_table(self.run), candidate, undo)
        for k, shadow in enumerate(shadows):
            self.write_table(db, shadow_table(self.run, k), shadow, None)
        for k, half in enumerate(halves):
            self.write_table(db, half_table(self.run, k), half.released, None)

    def write_table(
        self,
        db: duckdb.DuckDBPyConnection,
        table: str,
        released: Released,
        undo: Callable[[Floats], Floats] | None,
    ) -> None:
        db.register("incoming", reader_of(released, self.noise, self.plan.label, undo))
        db.execute(f"create table {table} as from incoming")
        db.unregister("incoming")


def check_names_left(columns: Sequence[Column], public: Public) -> None:
    """No column but a numeric feature may be taken for one of the numbers that the method makes."""
    for column in columns:
        is_used_up = (column.role, column.type) == ("feature", "numeric")
        if not is_used_up and column.name.lower() in map(str.lower, public.columns):
            raise BadInput(
                f"Column '{column.name}' has the name of a column that the method makes.",
                column=column.name,
                remedy="Rename it in the source and in [columns].",
            )


def write_kept(db: duckdb.DuckDBPyConnection, run: Run, X: Rows, halves: Sequence[Half]) -> None:
    """Which records could be released, and in which halves: a method may draw some never."""
    import pyarrow as pa

    kept = records_of(X)
    is_in = {half_name(k): np.isin(kept, records_of(half.rows)) for k, half in enumerate(halves)}
    db.register("incoming", pa.table({ROW: kept, **is_in}))
    db.execute(f"create table {kept_table(run)} as from incoming")
    db.unregister("incoming")


def records_of(rows: Rows) -> Ints:
    return np.concatenate([block.record for block in rows.blocks()])


def half_name(k: int) -> str:
    return f"half_{k}"


def kept_table(run: Run) -> str:
    return f'sanitized."{run.table}_kept"'


def shadow_table(run: Run, k: int) -> str:
    return f'sanitized."{run.table}_shadow_{k}"'


def half_table(run: Run, k: int) -> str:
    return f'sanitized."{run.table}_half_{k}"'


def set_aside(
    rows: PartRows, noise: Noise, share: float, reserved: float
) -> tuple[PartRows, PartRows | None]:
    """Splits off the records that the fit uses up: the same ones in every release.

    Records that an earlier release set aside (``reserved``) stay in no release of any method.
    """
    if not share and not reserved:
        return rows, None

    def part(low: float, high: float) -> PartRows:
        def step(block: Block) -> Block:
            place = noise.ranks(block.key, "set aside") / 2.0**64
            return pick(block, (low <= place) & (place < high))

        return rows.map(step, rows.schema)

    kept = part(max(share, reserved), 2.0)
    taken = part(0.0, share) if share else None
    if kept.n < 2 or (taken is not None and taken.n < 2):
        fitting = taken.n if taken is not None else 0
        raise BadInput(
            f"Setting records aside leaves {fitting} to fit on and {kept.n} to release.",
            remedy="Release more records, or change 'basis_share'.",
        )
    return kept, taken


def with_fixed_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    return batch.set_column(
        batch.num_columns - 1, "key", batch.column(batch.num_columns - 1).cast(pa.binary(16))
    )


def row_numbers_from(block: Block) -> Any:
    return row_numbers(block.start + block.n)[block.start :]

"""The step that draws the candidate and its shadow draws, over Parquet parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.audit.draws import Draws, draw_releases
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import PublicParameters, Released
from ppdm_core.model.rows import Block, Rows, select_rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling, fit_scaling
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from tasks.context import ReleaseContext
from tasks.ingest.task import reject_bad_input
from tasks.judge.ledger_charge import list_draws
from tasks.progress import log_progress
from tasks.redaction import redact_errors
from tasks.sanitize.release_writer import make_unscaler, stream_released_rows
from warehouse.checkpoints import checkpoint
from warehouse.columns import Column
from warehouse.database import Run, Store
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.ledger.entries import store_draws
from warehouse.parquet_parts import PartRows, write_parts
from warehouse.sanitized_tables import (
    create_table,
    read_validated_blocks,
    write_candidate,
    write_kept_records,
)
from warehouse.stage_facts import (
    SanitizedFacts,
    ValidatedFacts,
    read_facts,
    read_published_facts,
    store_facts,
)
from warehouse.stages import Stage, is_past
from warehouse.stored_fits import find_fit, store_fit
from warehouse.tables import candidate_table, half_table, shadow_table
from warehouse.transaction import Transaction


@task(name="draw releases", cache_policy=NO_CACHE)
@redact_errors
def draw_candidate(context: ReleaseContext, release_id: str) -> None:
    """Draw the candidate, its shadow draws and draws of random halves, and store them."""
    log_progress("perturbing: the candidate and its shadow draws")
    store, run = context.open_run(release_id)
    if is_past(run.stage, Stage.SANITIZED):
        return
    store.home.clear_work(release_id)
    with reject_bad_input(store, run, context):
        SanitizeStep(context, store, run).run_all()
    store.home.clear_work(release_id)


class SanitizeStep:
    """The sanitize step of one run."""

    def __init__(self, context: ReleaseContext, store: Store, run: Run) -> None:
        self.context, self.store, self.run = context, store, run
        self.work = store.home.work(run.release_id)
        self.noise = dataset_noise(store, context.dataset)
        self.sanitizer = make_sanitizer(context.method, context.parameters)

    def run_all(self) -> None:
        """Set records aside, fit, draw, and store the draws with their facts."""
        validated, rows, earlier = self.read_inputs()
        reserved = max((facts.set_aside_share for facts in earlier), default=0.0)
        kept, aside = set_aside(rows, self.noise, self.sanitizer.set_aside, reserved)
        given = self.read_given_basis()
        identity = identify_fit(self.sanitizer, rows.schema, given)
        self.check_refit(identity, earlier)
        fitted = self.find_or_fit(identity, aside or kept, given)
        scaling = Scaling.from_dict(fitted["scaling"])
        X = scaling.apply(kept)
        draws = draw_releases(
            X,
            self.sanitizer,
            self.noise,
            fitted,
            self.context.policy,
            scope=self.shadow_scope(validated.data),
            refit_halves=aside is None and given is None,
            has_ids=self.context.record_id is not None,
            on_step=checkpoint,
        )
        candidate = draws.candidate
        check_column_names(self.context.columns, candidate.public)
        with self.store.advance(self.run, Stage.SANITIZED) as change:
            fit_digest = store_fit(change.db, self.run, identity, fitted)
            halves = [list_records(half.rows) for half in draws.halves]
            write_kept_records(change.db, self.run, list_records(X), halves)
            draws_digest = self.store_ledger_draws(change.db, X, candidate, fitted)
            self.store_tables(change.db, draws, scaling)
            label = (self.context.label.name,) if self.context.label else ()
            columns = candidate.public.names + label
            path = self.work / "candidate.parquet"
            sink = self.context.sink
            facts = SanitizedFacts(
                data_digest=write_candidate(change.db, self.run, columns, path, sink),
                method=self.context.method,
                parameters=self.context.parameters,
                public=candidate.public,
                schema=X.schema,
                guarantee=self.sanitizer.guarantee(X.schema, fitted),
                atom=candidate.atom,
                counts=candidate.counts,
                scaling=scaling,
                released=candidate.rows.n,
                set_aside=rows.n - kept.n,
                set_aside_share=max(self.sanitizer.set_aside, reserved),
                fit=identity if self.sanitizer.learns else None,
                fitted=fit_digest,
                draws=draws_digest,
                same_columns=self.sanitizer.keeps_columns,
                row_aligned=self.sanitizer.row_aligned,
                halves=tuple(half.released.public for half in draws.halves),
                leaks=draws.leaked_maps,
            )
            store_facts(change.db, self.run, facts)
            change.detail.update(rows=candidate.rows.n, shadows=len(draws.shadows))

    def shadow_scope(self, data: str) -> tuple[str, ...]:
        """Return what the keys of shadow draws follow from, except the dataset's own key.

        ``data`` is the digest of the records: the same ones are judged on the same draws.
        """
        return data, self.context.policy.attack_settings_key, self.run.code_version

    def read_inputs(self) -> tuple[ValidatedFacts, PartRows, list[SanitizedFacts]]:
        """Return the validated facts and records, and the facts of published versions.

        The records are copied to Parquet parts: long passes must not hold the warehouse.
        """
        with self.store.transaction(self.run.release_id) as db:
            facts = read_facts(db, self.run.release_id, ValidatedFacts)
            blocks = read_validated_blocks(db, self.run, facts.schema)
            rows = write_parts(blocks, facts.schema, self.work / "validated")
            return facts, rows, read_published_facts(db, self.context.dataset, SanitizedFacts)

    def check_refit(self, identity: str, earlier: list[SanitizedFacts]) -> None:
        """Check that the method learns from the records of a dataset only once."""
        others = [facts for facts in earlier if facts.fit not in (None, identity)]
        if self.sanitizer.learns and others and not self.sanitizer.refit_waiver:
            raise BadInput(
                f"Method '{self.context.method}' would learn from records of "
                f"'{self.context.dataset}' a second time; two published fits around one changed "
                "record reveal that record.",
                remedy="Keep the earlier parameters, or waive it by name: refit_waiver = "
                '"who and why" in [sanitizer].',
            )

    def find_or_fit(
        self, identity: str, rows: Rows, given: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Return what an earlier run learned, or a new fit."""
        with self.store.transaction(self.run.release_id) as db:
            known = find_fit(db, self.context.dataset, identity)
        if known is not None:
            return known
        scaling = fit_scaling(rows, self.sanitizer.scale)
        learned = given or self.sanitizer.fit(scaling.apply(rows))
        return {**learned, "scaling": scaling.as_dict()}

    def read_given_basis(self) -> dict[str, Any] | None:
        """Return the basis of a file that the release file names, or None."""
        name = getattr(self.sanitizer, "basis_file", None)
        if name is None:
            return None
        from tasks.sanitize.basis_file import read_basis

        features = [
            column.name
            for column in self.context.columns
            if (column.role, column.type) == ("feature", "numeric")
        ]
        return read_basis(Path(self.context.folder) / name, features)

    def store_ledger_draws(
        self, db: Transaction, X: Rows, candidate: Released, fitted: dict[str, Any]
    ) -> str:
        """Store what is drawn of which record, for the ledger; return the digest."""
        without_ids = None if self.context.record_id else self.run
        draws = list_draws(X, candidate, self.sanitizer, self.noise, fitted, without_ids)
        return store_draws(db, self.run, draws)

    def store_tables(self, db: Transaction, draws: Draws, scaling: Scaling) -> None:
        """Store the candidate in original units where it has them, and all other draws."""
        public = draws.candidate.public
        undo = make_unscaler(scaling, public) if self.sanitizer.keeps_columns else None
        self.store_table(db, candidate_table(self.run), draws.candidate, undo)
        for k, shadow in enumerate(draws.shadows):
            self.store_table(db, shadow_table(self.run, k), shadow, None)
        for k, half in enumerate(draws.halves):
            self.store_table(db, half_table(self.run, k), half.released, None)

    def store_table(
        self,
        db: Transaction,
        table: str,
        released: Released,
        undo_scaling: Callable[[Floats], Floats] | None,
    ) -> None:
        rows = stream_released_rows(released, self.noise, self.context.label, undo_scaling)
        create_table(db, table, rows)


def check_column_names(columns: Sequence[Column], public: PublicParameters) -> None:
    """Check that no column except a numeric feature has the name of a column that is released."""
    for column in columns:
        is_replaced = (column.role, column.type) == ("feature", "numeric")
        if not is_replaced and column.name.lower() in map(str.lower, public.columns):
            raise BadInput(
                f"Column '{column.name}' has the name of a column that the method makes.",
                column=column.name,
                remedy="Rename it in the source and in [columns].",
            )


def list_records(rows: Rows) -> Ints:
    """Return the source row of every record."""
    return np.concatenate([block.record for block in rows.blocks()])


def set_aside(
    rows: PartRows, noise: Noise, share: float, reserved: float
) -> tuple[PartRows, PartRows | None]:
    """Split off the records that the fit uses: the same ones in every release.

    Records that an earlier release set aside (``reserved``) are in no release of any method.
    """
    if not share and not reserved:
        return rows, None

    def select_part(low: float, high: float) -> PartRows:
        def select(block: Block) -> Block:
            place = noise.ranks(block.key, "set aside") / 2.0**64
            return select_rows(block, (low <= place) & (place < high))

        return rows.map(select, rows.schema)

    kept = select_part(max(share, reserved), 2.0)
    aside = select_part(0.0, share) if share else None
    if kept.n < 2 or (aside is not None and aside.n < 2):
        fitting = aside.n if aside is not None else 0
        raise BadInput(
            f"Setting records aside leaves {fitting} to fit on and {kept.n} to release.",
            remedy="Release more records, or change 'basis_share'.",
        )
    return kept, aside


def identify_fit(sanitizer: Sanitizer, schema: Schema, given: dict[str, Any] | None) -> str:
    """Return a digest of everything that a fit depends on, except the records."""
    columns = [(column.name, column.low, column.high) for column in schema.numeric]
    text = json.dumps([sanitizer.name, sanitizer.fit_parameters(), columns, given], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()

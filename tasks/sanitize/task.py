"""The step that draws the candidate, over Parquet parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import PublicParameters, Released
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling, fit_scaling
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from tasks.context import ReleaseContext
from tasks.ingest.task import reject_bad_input
from tasks.judge.ledger_charge import list_draws
from tasks.progress import log_progress
from tasks.redaction import redact_errors
from tasks.sanitize.records import export_records, split_records
from tasks.sanitize.release_writer import make_unscaler, stream_released_rows
from tasks.sanitize.row_order import digest_content
from warehouse.checkpoints import checkpoint
from warehouse.columns import Column
from warehouse.database import Run, Store
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.ledger.entries import store_draws
from warehouse.parquet_parts import PartRows
from warehouse.sanitized_tables import create_table, digest_candidate, write_candidate
from warehouse.stage_facts import (
    SanitizedFacts,
    ValidatedFacts,
    read_facts,
    read_published_facts,
    store_facts,
)
from warehouse.stages import Stage, is_past
from warehouse.stored_fits import Fit, read_fits, store_fit
from warehouse.tables import candidate_table
from warehouse.transaction import Transaction


@task(name="draw releases", cache_policy=NO_CACHE)
@redact_errors
def draw_candidate(context: ReleaseContext, release_id: str) -> None:
    """Draw the candidate and store it, with the file that would be published."""
    log_progress("perturbing: the candidate")
    store = context.open_store()
    work = store.home.work(release_id)
    store.home.clear_work(release_id)
    with reject_bad_input(context, release_id):
        with context.open_run(release_id) as (db, run):
            if is_past(run.stage, Stage.SANITIZED):
                return
            inputs = read_inputs(db, context, run, work)
        SanitizeStep(context, store, run, inputs).run_all()
    store.home.clear_work(release_id)


@dataclass(frozen=True, eq=False)
class SanitizeInputs:
    """What the step reads from the warehouse."""

    rows: PartRows  # the validated records
    noise: Noise
    published: list[SanitizedFacts]  # of the earlier versions
    fits: dict[str, Fit]  # what earlier runs learned, by identity


def read_inputs(db: Transaction, context: ReleaseContext, run: Run, work: Path) -> SanitizeInputs:
    """Read everything that the step needs, in one transaction."""
    schema = read_facts(db, run.release_id, ValidatedFacts).schema
    return SanitizeInputs(
        rows=export_records(db, run, schema, work),
        noise=dataset_noise(db, context.dataset),
        published=read_published_facts(db, context.dataset, SanitizedFacts),
        fits=read_fits(db, context.dataset),
    )


class SanitizeStep:
    """The sanitize step of one run."""

    def __init__(
        self, context: ReleaseContext, store: Store, run: Run, inputs: SanitizeInputs
    ) -> None:
        self.context, self.store, self.run, self.inputs = context, store, run, inputs
        self.sanitizer = make_sanitizer(context.method, context.parameters)

    def run_all(self) -> None:
        """Set records aside, fit, draw, and store the candidate with its facts."""
        rows, noise = self.inputs.rows, self.inputs.noise
        reserved = max((facts.set_aside_share for facts in self.inputs.published), default=0.0)
        records = split_records(rows, noise, self.sanitizer.set_aside, reserved)
        given = self.read_given_basis()
        identity = identify_fit(self.sanitizer, rows.schema, given)
        self.check_refit(identity)
        fitted = self.find_or_fit(identity, records.aside or records.released, given)
        scaling = Scaling.from_dict(fitted["scaling"])
        X = scaling.apply(records.released)
        candidate = self.sanitizer.sanitize(X, noise, fitted)
        checkpoint("candidate drawn")
        check_column_names(self.context.columns, candidate.public)
        with self.store.advance(self.run, Stage.SANITIZED) as change:
            fit_digest = store_fit(change.db, self.run, identity, fitted)
            draws_digest = self.store_ledger_draws(change.db, X, candidate, fitted)
            content = digest_content(change.db, self.run, X, noise)
            data_digest = self.store_candidate(change.db, candidate, scaling, content)
            facts = SanitizedFacts(
                data_digest=data_digest,
                table_digest=digest_candidate(change.db, self.run),
                method=self.context.method,
                parameters=self.context.parameters,
                public=candidate.public,
                schema=X.schema,
                guarantee=self.sanitizer.guarantee(X.schema, fitted),
                atom=candidate.atom,
                counts=candidate.counts,
                scaling=scaling,
                released=candidate.rows.n,
                set_aside=rows.n - X.n,
                set_aside_share=max(self.sanitizer.set_aside, reserved),
                fit=identity if self.sanitizer.learns else None,
                fitted=fit_digest,
                draws=draws_digest,
                same_columns=self.sanitizer.keeps_columns,
                row_aligned=self.sanitizer.row_aligned,
            )
            store_facts(change.db, self.run, facts)
            change.detail["rows"] = candidate.rows.n

    def check_refit(self, identity: str) -> None:
        """Check that the method learns from the records of a dataset only once."""
        others = [each for each in self.inputs.published if each.fit not in (None, identity)]
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
        if identity in self.inputs.fits:
            return self.inputs.fits[identity].learned
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
        draws = list_draws(X, candidate, self.sanitizer, self.inputs.noise, fitted, without_ids)
        return store_draws(db, self.run, draws)

    def store_candidate(
        self, db: Transaction, candidate: Released, scaling: Scaling, content: bytes
    ) -> str:
        """Store the candidate as a table and as the file to publish; return the file's digest.

        Both are in original units if the method keeps the columns.
        """
        public, label = candidate.public, self.context.label
        undo = make_unscaler(scaling, public) if self.sanitizer.keeps_columns else None
        rows = stream_released_rows(candidate, self.inputs.noise, label, undo, content)
        create_table(db, candidate_table(self.run), rows)
        columns = public.names + ((label.name,) if label else ())
        path = self.store.home.candidate(self.run.release_id)
        return write_candidate(db, self.run, columns, path, self.context.sink)


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


def identify_fit(sanitizer: Sanitizer, schema: Schema, given: dict[str, Any] | None) -> str:
    """Return a digest of everything that a fit depends on, except the records."""
    columns = [(column.name, column.low, column.high) for column in schema.numeric]
    text = json.dumps([sanitizer.name, sanitizer.fit_parameters(), columns, given], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()

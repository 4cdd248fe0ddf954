"""The step that draws the candidate, over Parquet parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Guarantee, PublicParameters, Released
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.scaling import Scaling
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from ppdm_core.sanitizers._basis import DRAWN
from tasks.context import ReleaseContext
from tasks.engine import open_engine, open_work
from tasks.ingest.task import reject_bad_input
from tasks.judge.ledger_charge import list_basis_draws, list_draws
from tasks.progress import Step, start_step
from tasks.redaction import redact_errors
from tasks.sanitize.fitting import SplitRecords, split_records
from tasks.sanitize.inputs import SanitizeInputs, read_inputs
from tasks.sanitize.release_writer import make_unscaler, stream_released_rows
from tasks.sanitize.row_order import digest_content
from warehouse.checkpoints import checkpoint
from warehouse.columns import Column
from warehouse.database import Run, Store
from warehouse.derived_columns import count_shared_sources
from warehouse.ledger.entries import store_draws
from warehouse.sanitized_tables import create_table, digest_candidate, write_candidate
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts, read_facts, store_facts
from warehouse.staged_rows import StagedRows, stage_rows
from warehouse.stages import Stage, is_past
from warehouse.stored_fits import store_fit
from warehouse.tables import candidate_table
from warehouse.transaction import Transaction
from warehouse.tunes import Records, count_tried_settings

if TYPE_CHECKING:
    import pyarrow as pa


@task(name="draw candidate", cache_policy=NO_CACHE)
@redact_errors
def draw_candidate(context: ReleaseContext, release_id: str) -> None:
    """Draw the candidate and store it, with the file that would be published."""
    start_step(Step.PERTURB)
    store = context.open_store()
    with context.open_run(release_id) as (_, run):
        if is_past(run.stage, Stage.SANITIZED):
            return
    with (
        reject_bad_input(context, release_id),
        open_engine(context) as engine,
        open_work(context, release_id, engine) as work,
    ):
        with context.open_run(release_id) as (db, run):
            sanitizer = make_sanitizer(context.method, context.parameters)
            inputs = read_inputs(db, context, run, sanitizer, work, engine)
        SanitizeStep(context, store, run, sanitizer, inputs).run_all()


class SanitizeStep:
    """The sanitize step of one run."""

    def __init__(
        self,
        context: ReleaseContext,
        store: Store,
        run: Run,
        sanitizer: Sanitizer,
        inputs: SanitizeInputs,
    ) -> None:
        self.context, self.store, self.run = context, store, run
        self.sanitizer, self.inputs = sanitizer, inputs

    def run_all(self) -> None:
        """Set records aside, fit, draw, and store the candidate with its facts."""
        inputs = self.inputs
        split = split_records(self.context, self.sanitizer, inputs)
        fitted = split.fit.learned
        scaling = Scaling.from_dict(fitted["scaling"])
        X = scaling.apply(split.released)
        candidate = self.sanitizer.sanitize(X, inputs.noise, fitted)
        checkpoint("candidate drawn")
        check_column_names(self.context.columns, candidate.public)
        work = self.store.home.work(self.run.release_id)
        with ExitStack() as staged:
            draws = staged.enter_context(
                stage_rows(self.list_ledger_draws(X, candidate, split), work / "draws.parquet")
            )
            content = digest_content(draws.read(), X, inputs.noise)
            released = self.list_released(candidate, scaling, content)
            rows = staged.enter_context(stage_rows(released, work / "candidate.parquet"))
            self.store_candidate(split, X, candidate, scaling, draws, rows)

    def store_candidate(
        self,
        split: SplitRecords,
        X: Rows,
        candidate: Released,
        scaling: Scaling,
        draws: StagedRows,
        rows: StagedRows,
    ) -> None:
        """Write the file to publish, then store fit, draws, candidate and facts at once."""
        inputs = self.inputs
        data_digest = self.write_file(candidate.public, rows)
        with self.store.advance(self.run, Stage.SANITIZED) as change:
            if split.fit.digest not in {fit.digest for fit in inputs.fits}:
                store_fit(change.db, self.run, split.fit)
            draws_digest = store_draws(change.db, self.run, draws.read())
            create_table(change.db, candidate_table(self.run), rows.read())
            facts = SanitizedFacts(
                data_digest=data_digest,
                table_digest=digest_candidate(change.db, self.run),
                method=self.context.method,
                parameters=self.context.parameters,
                public=candidate.public,
                schema=X.schema,
                guarantee=self.compute_guarantee(change.db, X.schema, split),
                atom=candidate.atom,
                counts=candidate.counts,
                scaling=scaling,
                released=candidate.rows.n,
                set_aside=inputs.rows.n - X.n,
                set_aside_fits=split.reserved_by,
                drawn_set_aside=split.drawn.n if split.drawn else 0,
                fit=split.fit.identity if self.sanitizer.learns else None,
                fitted=split.fit.digest,
                draws=draws_digest,
                same_columns=self.sanitizer.keeps_columns,
                row_aligned=self.sanitizer.row_aligned,
            )
            store_facts(change.db, self.run, facts)
            change.detail["rows"] = candidate.rows.n

    def compute_guarantee(self, db: Transaction, schema: Schema, split: SplitRecords) -> Guarantee:
        """Return the guarantee, weaker if columns share a source or a tune came before."""
        fitted = {**split.fit.learned, DRAWN: split.drawn is not None}
        guarantee = self.sanitizer.guarantee(schema, fitted)
        guarantee = guarantee.widen_attribute(count_shared_sources(self.context.columns))
        data = read_facts(db, self.run.release_id, ValidatedFacts).data
        records = Records(data, self.run.source_digest)
        return guarantee.condition_on_choice(count_tried_settings(db, self.run.dataset, records))

    def list_ledger_draws(
        self, X: Rows, candidate: Released, split: SplitRecords
    ) -> pa.RecordBatchReader:
        """Return what is drawn of which record, for the ledger."""
        without_ids = None if self.context.record_id else self.run.release_id
        noise, fit = self.inputs.noise, split.fit
        basis = list_basis_draws(split.drawn, noise, fit.digest) if split.drawn else ()
        return list_draws(X, candidate, self.sanitizer, noise, fit.learned, without_ids, basis)

    def list_released(
        self, candidate: Released, scaling: Scaling, content: bytes
    ) -> pa.RecordBatchReader:
        """Return the released rows, in original units if the method keeps the columns."""
        keeps_columns = self.sanitizer.keeps_columns
        undo = make_unscaler(scaling, candidate.public) if keeps_columns else None
        return stream_released_rows(candidate, self.inputs.noise, self.context.label, undo, content)

    def write_file(self, public: PublicParameters, rows: StagedRows) -> str:
        """Write the file to publish; return its digest."""
        label = self.context.label
        columns = public.names + ((label.name,) if label else ())
        home, release_id = self.store.home, self.run.release_id
        path, work = home.candidate(release_id), home.work(release_id)
        return write_candidate(rows.read(), rows.n, columns, path, work)


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

"""The records of the next release, and what its method learns from them."""

from __future__ import annotations

from dataclasses import dataclass

from ppdm_core.model.release import Guarantee
from ppdm_core.model.rows import Rows
from ppdm_core.numerics.scaling import Scaling
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers._basis import DRAWN
from tasks.context import ReleaseContext
from tasks.home_state import HomeState
from tasks.ingest.source_check import TABLE, CheckedSource
from tasks.ingest.stored_bounds import mark_bounds_from_data
from tasks.sanitize.fitting import SplitRecords, split_records
from tasks.sanitize.inputs import SanitizeInputs
from warehouse.home import translate_disk_errors
from warehouse.parquet_parts import write_parts
from warehouse.sanitized_tables import read_validated_blocks
from warehouse.scratch import free_memory
from warehouse.validated_table import write_validated

VALIDATED = "main.validated"


@dataclass(frozen=True, eq=False)
class NextRelease:
    """What is known of a release before anything is drawn."""

    sanitizer: Sanitizer
    data: str  # digest of the validated records
    n: int  # validated records
    split: SplitRecords

    @property
    def scaling(self) -> Scaling:
        return Scaling.from_dict(self.split.fit.learned["scaling"])

    @property
    def X(self) -> Rows:
        """The scaled records that are released."""
        return self.scaling.apply(self.split.released)

    @property
    def guarantee(self) -> Guarantee:
        learned = {**self.split.fit.learned, DRAWN: self.split.drawn is not None}
        return self.sanitizer.guarantee(self.X.schema, learned)


@dataclass(frozen=True, eq=False)
class ValidatedRecords:
    """The validated records, in memory or in parts on disk."""

    rows: Rows
    data: str  # digest

    def make_inputs(self, sanitizer: Sanitizer, state: HomeState) -> SanitizeInputs:
        """Return what the sanitize step would read from the warehouse."""
        return SanitizeInputs(
            rows=self.rows,
            noise=state.noise,
            published=list(state.published),
            fits=list(state.fits),
            drawn=state.drawn if sanitizer.set_aside else None,
        )


def prepare_release(
    source: CheckedSource, context: ReleaseContext, state: HomeState
) -> NextRelease:
    """Validate a source and fit the method as the release will do; valid while it is open."""
    return fit_release(context, validate_records(source, context, state), state)


def fit_release(
    context: ReleaseContext, validated: ValidatedRecords, state: HomeState
) -> NextRelease:
    """Set records aside and fit the method as the release will do."""
    sanitizer = context.make_sanitizer()
    split = split_records(context, sanitizer, validated.make_inputs(sanitizer, state))
    return NextRelease(sanitizer, validated.data, validated.rows.n, split)


def validate_records(
    source: CheckedSource, context: ReleaseContext, state: HomeState
) -> ValidatedRecords:
    """Validate a source, and write the records to parts in its folder."""
    scope = ("id",) if context.record_id else ("place", str(state.number))
    validated = write_validated(
        source.db,
        TABLE,
        VALIDATED,
        state.columns,
        source.figures,
        context.record_id,
        lambda ids: state.noise.make_record_keys(ids, *scope),
    )
    free_memory(source.db)
    schema = mark_bounds_from_data(validated.schema, context.columns)
    blocks = read_validated_blocks(source.db, VALIDATED, schema)
    with translate_disk_errors(source.folder):
        rows = write_parts(blocks, schema, source.folder / "validated")
    free_memory(source.db)
    return ValidatedRecords(rows, validated.digest)

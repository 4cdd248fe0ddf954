"""The records of the next release in memory, and what its method learns from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from ppdm_core.model.release import Guarantee
from ppdm_core.model.rows import ArrayRows, Rows, gather_blocks
from ppdm_core.numerics.scaling import Scaling
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers._basis import DRAWN
from tasks.context import ReleaseContext
from tasks.home_state import HomeState
from tasks.ingest.stored_bounds import mark_bounds_from_data
from tasks.sanitize.fitting import SplitRecords, split_records
from tasks.sanitize.inputs import SanitizeInputs
from warehouse.sanitized_tables import read_validated_blocks
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
    """The validated records in memory."""

    rows: ArrayRows
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
    db: duckdb.DuckDBPyConnection,
    table: str,
    context: ReleaseContext,
    figures: Mapping[str, Any],
    state: HomeState,
) -> NextRelease:
    """Validate a table in a scratch database, and fit the method as the release will do."""
    validated = validate_records(db, table, context, figures, state)
    return fit_release(context, validated, state)


def fit_release(
    context: ReleaseContext, validated: ValidatedRecords, state: HomeState
) -> NextRelease:
    """Set records aside and fit the method as the release will do."""
    sanitizer = context.make_sanitizer()
    split = split_records(context, sanitizer, validated.make_inputs(sanitizer, state))
    return NextRelease(sanitizer, validated.data, validated.rows.n, split)


def validate_records(
    db: duckdb.DuckDBPyConnection,
    table: str,
    context: ReleaseContext,
    figures: Mapping[str, Any],
    state: HomeState,
) -> ValidatedRecords:
    """Validate a table in a scratch database, and load the records."""
    scope = ("id",) if context.record_id else ("place", str(state.number))
    validated = write_validated(
        db,
        table,
        VALIDATED,
        state.columns,
        figures,
        context.record_id,
        lambda ids: state.noise.make_record_keys(ids, *scope),
    )
    schema = mark_bounds_from_data(validated.schema, context.columns)
    whole = gather_blocks(read_validated_blocks(db, VALIDATED, schema), validated.n)
    rows = ArrayRows(schema, whole.X, whole.label, whole.key, whole.C, whole.record)
    return ValidatedRecords(rows, validated.digest)

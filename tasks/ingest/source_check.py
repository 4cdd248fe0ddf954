"""The checks of a source that need no release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.policy import Policy
from tasks.context import ReleaseContext
from tasks.ingest import expectations
from tasks.ingest.judge_process import validate_apart
from tasks.progress import Step, start_step
from warehouse.cell_changes import count_changes
from warehouse.changed_columns import count_changed_cells
from warehouse.column_survey import list_survey_figures
from warehouse.columns import Column
from warehouse.derived_columns import add_derived_columns
from warehouse.home import Home
from warehouse.label_summary import LabelSummary, summarize_label
from warehouse.raw_profile import REPEATED, ROWS, ROWS_LEFT, check_columns, profile
from warehouse.runs import export_last_raw
from warehouse.scratch import open_scratch_database, open_scratch_folder
from warehouse.sources import SOURCES
from warehouse.sql import column_types
from warehouse.validated_table import build_declared_schema

if TYPE_CHECKING:
    import duckdb

TABLE, EARLIER_FILE = "main.source", "earlier.parquet"
MIN_CHANGED_SHARE = 0.95  # of the records that were there before
MIN_COMMON_RECORDS = 20  # fewer may all change by chance


@dataclass(frozen=True, eq=False)
class CheckedSource:
    """A source in a temporary database that kept all checks, and what is said of it."""

    db: duckdb.DuckDBPyConnection
    folder: Path  # temporary and private, for tables that are made of it
    figures: Mapping[str, Any]  # counts, with bounds and medians, which are cells
    facts: dict[str, Any]  # counts and names only


def check_source(context: ReleaseContext) -> dict[str, Any]:
    """Read the source, validate it, and return counts; nothing is stored."""
    with open_checked_source(context, context.columns) as source:
        return source.facts


@contextmanager
def open_checked_source(
    context: ReleaseContext, columns: tuple[Column, ...]
) -> Iterator[CheckedSource]:
    """Open the source after all checks; ``columns`` may have other bounds."""
    from ppdm_core.audit.certifiable import compute_smallest_limits

    name = context.source.name
    start_step(Step.READ)
    with open_scratch_folder() as folder, open_scratch_database(folder) as db:
        SOURCES[context.source.kind].load(db, context.source, TABLE)
        add_derived_columns(db, TABLE, context.columns, name)
        check_columns(list(column_types(db, TABLE)), context.columns, name)
        cells = list_survey_figures(columns)
        figures = profile(
            db, TABLE, context.columns, context.record_id, context.expectations, more=cells
        )
        counts = {key: value for key, value in figures.items() if key not in cells}
        changed = find_frequently_changed_columns(db, context, folder)
        label = summarize_label(db, TABLE, context.columns)
        start_step(Step.VALIDATE)
        summary = expectations.check_profile(
            counts, context.columns, record_id=context.record_id, file=name, validate=validate_apart
        )
        passed = expectations.judge_expectations(counts, context.expectations, validate_apart)
        expectations.check_expectations(context.expectations, passed, file=name)
        facts = {
            "rows": int(counts[ROWS]),
            "checks": summary["checks"] + len(passed),
            "method": context.method,
            "smallest_limits": compute_smallest_limits(context.policy, int(counts[ROWS_LEFT])),
            "frequently_changed_columns": changed,
            "weaker_promises": list_weaker_promises(context),
            "label": None if label is None else asdict(label),
            "label_warnings": [] if label is None else list_label_warnings(label, context.policy),
            "repeated_rows": int(counts[REPEATED]),
            "changes": asdict(count_changes(figures, columns)),
        }
        yield CheckedSource(db, folder, figures, facts)


def list_weaker_promises(context: ReleaseContext) -> list[str]:
    """Return what the bound of the method will not cover, in sentences for the card."""
    sanitizer = context.make_sanitizer()
    return sanitizer.list_weaker_promises(build_declared_schema(context.columns))


def list_label_warnings(label: LabelSummary, policy: Policy) -> list[str]:
    """Return sentences on a label that reveals much by itself, or that nothing judges."""
    from ppdm_core.audit.label_risk import LABEL_RATE, MIN_CLASS_RECORDS
    from ppdm_core.gates.label import MAX_RATE

    name, rate, limit = f"The label '{label.name}'", label.rate, policy.limits.get(LABEL_RATE)
    found = []
    if label.classes == label.records:
        found.append(
            f"{name} has a class for every record, as an identifier has: no release can have it."
        )
    elif rate >= MAX_RATE:
        found.append(
            f"{name} alone finds the rows of {rate:.0%} of the persons: no release can have it."
        )
    elif limit is not None and rate - (0 if limit.absolute else 1 / label.records) > limit.value:
        found.append(
            f"{name} alone finds the rows of {rate:.2%} of the persons, which breaks the limit on "
            f"{LABEL_RATE} in every release."
        )
    if limit is None:
        found.append(f"No limit is on {LABEL_RATE}: no release with a label passes without one.")
    if label.smallest < MIN_CLASS_RECORDS:
        found.append(
            f"{name} has classes of fewer than {MIN_CLASS_RECORDS} records (the smallest has "
            f"{label.smallest}). It is judged as a released column: what it gives counts against "
            "the limits on attacks. Merge small classes, or drop their rows."
        )
    for column in label.revealed:
        found.append(
            f"{name} reveals column '{column}', which is not released: within a class it hardly "
            "varies, so recipients learn it, too."
        )
    return found


def find_frequently_changed_columns(
    db: duckdb.DuckDBPyConnection, context: ReleaseContext, folder: Path
) -> dict[str, float]:
    """Return the columns that changed in nearly every record since the last run, and the share.

    An unchanged record keeps its row; one such column makes every release redraw all records.
    """
    if context.record_id is None or not Home(Path(context.home)).database.exists():
        return {}
    with context.open_store().transaction(f"{context.dataset} check") as warehouse:
        before = folder / EARLIER_FILE
        if not export_last_raw(warehouse, context.dataset, before):
            return {}
    common, changed = count_changed_cells(db, TABLE, before, context.columns, context.record_id)
    if common < MIN_COMMON_RECORDS:
        return {}
    shares = {name: count / common for name, count in changed.items()}
    return {name: share for name, share in shares.items() if share >= MIN_CHANGED_SHARE}

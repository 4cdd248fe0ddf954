"""What the sanitize step reads from the warehouse."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ppdm_core.model.rows import Rows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import Sanitizer
from tasks.context import ReleaseContext
from tasks.sanitize.records import export_records
from warehouse.database import Run
from warehouse.engines import Engine
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.ledger.drawn_records import DrawnRecords, read_drawn_records
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts, read_facts, read_published_facts
from warehouse.stored_fits import Fit, read_fits
from warehouse.transaction import Transaction


@dataclass(frozen=True, eq=False)
class SanitizeInputs:
    """The records of a release, and what earlier releases learned and drew."""

    rows: Rows  # the validated records
    noise: Noise
    published: list[SanitizedFacts]  # of the earlier versions
    fits: list[Fit]  # of all earlier runs, the oldest first
    drawn: DrawnRecords | None  # by any earlier release; None: the method sets no records aside


def read_inputs(
    db: Transaction,
    context: ReleaseContext,
    run: Run,
    sanitizer: Sanitizer,
    work: Path,
    engine: Engine | None = None,
) -> SanitizeInputs:
    """Read everything that the step needs, in one transaction."""
    validated = read_facts(db, run.release_id, ValidatedFacts)
    return SanitizeInputs(
        rows=export_records(db, run, validated, work, engine),
        noise=dataset_noise(db, context.dataset),
        published=read_published_facts(db, context.dataset, SanitizedFacts),
        fits=read_fits(db, context.dataset),
        drawn=read_drawn_records(db, context.dataset) if sanitizer.set_aside else None,
    )

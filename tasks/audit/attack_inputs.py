"""The inputs of the attack process: the records, the shadow draws and the earlier releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.audit.audited_part import choose_part
from ppdm_core.audit.draws import EarlierReleases, HalfRelease, ShadowDraws, draw_shadows
from ppdm_core.model.arrays import Ints
from ppdm_core.model.release import Released
from ppdm_core.model.rows import Rows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import make_sanitizer
from tasks.audit.earlier_releases import read_earlier_releases
from tasks.audit.release_job import ReleaseJob
from tasks.context import ReleaseContext
from tasks.sanitize.records import export_records, select_named
from warehouse.database import Run
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.parquet_parts import PartRows, write_parts
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts, read_facts
from warehouse.stored_fits import Fit, join_set_aside, read_fits, select_fits
from warehouse.transaction import Transaction
from warehouse.tunes import Records, count_tried_settings

if TYPE_CHECKING:
    from warehouse.engines import Engine


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """What the audit reads from the warehouse."""

    sanitized: SanitizedFacts
    data_digest: str  # of the validated records
    records: Rows  # that could be released
    work: Path  # folder of files that the attack process reads
    noise: Noise
    fit: Fit
    part: Ints | None  # numbers of the records that are audited; None: all
    earlier: EarlierReleases | None
    tried: int = 0  # settings that tunes tried on these records


def read_inputs(
    db: Transaction,
    context: ReleaseContext,
    run: Run,
    work: Path,
    engine: Engine | None = None,
) -> AuditInputs:
    """Read everything that the audit needs, in one transaction."""
    sanitized = read_facts(db, run.release_id, SanitizedFacts)
    validated = read_facts(db, run.release_id, ValidatedFacts)
    noise = dataset_noise(db, context.dataset)
    rows = export_records(db, run, validated, work, engine)
    fits = read_fits(db, context.dataset)
    set_aside = join_set_aside(select_fits(fits, sanitized.set_aside_fits))
    records = select_named(rows, noise, set_aside, others=True)
    (fit,) = select_fits(fits, [sanitized.fitted])
    scope = validated.data, context.policy.attack_settings_key, run.code_version
    part = choose_part(records, Noise(noise.subkey("audit", *scope)))
    kept = np.concatenate([b.record for b in records.blocks()]) if part is None else part
    total = None if part is None else records.n
    return AuditInputs(
        sanitized=sanitized,
        data_digest=validated.data,
        records=records,
        work=work,
        noise=noise,
        fit=fit,
        part=part,
        earlier=read_earlier_releases(db, context, run, sanitized, kept, total),
        tried=count_tried_settings(db, context.dataset, Records(validated.data, run.source_digest)),
    )


def make_job(context: ReleaseContext, run: Run, inputs: AuditInputs) -> ReleaseJob:
    """Draw the shadow draws and the halves into Parquet parts, and return the attack job.

    The keys of the draws follow from the dataset's key, the digest of the records, the settings of
    the attacks and the code: the same records are judged on the same draws.
    """
    scope = inputs.data_digest, context.policy.attack_settings_key, run.code_version
    sanitizer = make_sanitizer(context.method, context.parameters)
    is_fit_given = context.shared_fit is not None or getattr(sanitizer, "basis_file", None)
    drawn = draw_shadows(
        inputs.sanitized.scaling.apply(inputs.records),
        sanitizer,
        inputs.noise,
        inputs.fit.learned,
        context.policy,
        scope=scope,
        refit_halves=not sanitizer.set_aside and not is_fit_given,
        has_ids=context.record_id is not None,
    )
    return ReleaseJob(
        policy=context.policy.judge_choice(inputs.tried),
        seed=inputs.noise.subkey("audit", *scope),
        records=inputs.records,
        scaling=inputs.sanitized.scaling,
        shadows=store_draws(drawn, inputs.work),
        row_aligned=inputs.sanitized.row_aligned,
        part=inputs.part,
        earlier=inputs.earlier,
    )


def store_draws(drawn: ShadowDraws, work: Path) -> ShadowDraws:
    """Return the draws with all their rows in Parquet parts, as the attack process reads them."""

    def store_rows(rows: Rows, name: str) -> PartRows:
        if isinstance(rows, PartRows):
            return rows
        return write_parts(rows.blocks(), rows.schema, work / name)

    def store(released: Released, name: str) -> Released:
        return replace(released, rows=store_rows(released.rows, name))

    return ShadowDraws(
        shadows=tuple(store(each, f"shadow_{k}") for k, each in enumerate(drawn.shadows)),
        halves=tuple(
            HalfRelease(
                store_rows(half.rows, f"half_{k}"), store(half.released, f"half_release_{k}")
            )
            for k, half in enumerate(drawn.halves)
        ),
        leaked_maps=drawn.leaked_maps,
    )

"""An attack job on records in memory, for forecasts and tunes: nothing of it is stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ppdm_core.audit.audited_part import choose_part
from ppdm_core.audit.draws import EarlierReleases, draw_shadows
from ppdm_core.model.policy import Policy
from ppdm_core.model.rows import Rows
from ppdm_core.numerics.noise import Noise
from tasks.audit.release_job import ReleaseJob
from tasks.context import ReleaseContext
from tasks.sanitize.next_release import NextRelease


def make_sample_job(
    context: ReleaseContext,
    release: NextRelease,
    records: Rows,
    noise: Noise,
    policy: Policy,
    scope: Sequence[str],
) -> ReleaseJob:
    """Draw releases of some records as the audit does, with the draws of a policy."""
    sanitizer = release.sanitizer
    is_basis_given = getattr(sanitizer, "basis_file", None) is not None
    drawn = draw_shadows(
        release.scaling.apply(records),
        sanitizer,
        noise,
        release.split.fit.learned,
        policy,
        scope=scope,
        refit_halves=not sanitizer.set_aside and not is_basis_given,
        has_ids=context.record_id is not None,
    )
    seed = noise.subkey("audit", *scope)
    part = choose_part(records, Noise(seed))
    n = records.n if part is None else len(part)
    columns = len(drawn.shadows[0].public.columns)
    has_history = context.record_id is not None and sanitizer.row_aligned and columns > 0
    return ReleaseJob(
        policy=policy,
        seed=seed,
        records=records,
        scaling=release.scaling,
        shadows=drawn,
        row_aligned=sanitizer.row_aligned,
        part=part,
        earlier=make_first_history(n, columns) if has_history else None,
    )


def make_first_history(n: int, columns: int) -> EarlierReleases:
    """Return the history of a first release."""
    return EarlierReleases((), np.full((n, columns), np.nan), np.zeros(n, dtype=np.int64))

"""The job of the attack process in a release: where the records and the draws are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import (
    EarlierReleases,
    OriginalTable,
    PartnerRows,
    ShadowDraws,
    collect_inputs,
)
from ppdm_core.model.arrays import Codes, Ints
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics.scaling import Scaling
from tasks.audit.attack_worker import AttackJob

if TYPE_CHECKING:
    from ppdm_core.audit.auditor import Auditor


@dataclass(frozen=True, eq=False)
class ReleaseJob(AttackJob):
    """The records and draws of one release, as Parquet parts that the attack process reads."""

    records: Rows  # that could be released, not scaled
    scaling: Scaling
    shadows: ShadowDraws
    row_aligned: bool
    part: Ints | None = None  # numbers of the records that are audited; None: all
    earlier: EarlierReleases | None = None  # of the audited records
    partners: PartnerRows | None = None  # rows of other sites in the same pool

    @property
    def shape(self) -> tuple[int, int]:
        return self.records.n, len(self.records.schema.numeric)

    @property
    def draws(self) -> int:
        return len(self.shadows.shadows) + len(self.shadows.halves)

    def make_auditor(self, kind: type[Auditor] | None = None) -> Auditor:
        from ppdm_core.audit.auditor import Auditor

        rows = self.scaling.apply(self.records)
        inputs = collect_inputs(rows, self.shadows, row_aligned=self.row_aligned, part=self.part)
        groups = find_groups(inputs.original, self.policy.groups)
        original = replace(inputs.original, groups=groups)
        draws, halves = (
            [replace(draw, partners=self.partners) for draw in each]
            for each in (inputs.draws, inputs.halves)
        )
        make = kind or Auditor
        return make(original, draws, self.policy, self.seed, halves, self.earlier)


def find_groups(original: OriginalTable, names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Return the members of each category of the named columns."""
    found = {}
    schema = original.schema
    columns: list[tuple[Categorical, Codes]] = list(
        zip(schema.categorical, original.codes.T, strict=True)
    )
    columns += [(schema.label, original.label)] if schema.label else []
    for column, codes in columns:
        if column.name in names:
            for code, category in enumerate(column.categories):
                found[f"{column.name} = {category}"] = codes == code
    return found

"""The audit of one setting: only what a limit judges, and the original table measured once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from typing import Any

from ppdm_core.attacks import Attack
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.simulation import AttackTrial
from ppdm_core.metrics import ReleaseComparison
from ppdm_core.model.attacker import AttackerView

PARTIAL = "partial"  # the scenario of an attacker who knows half of the columns
MAX_ORIGINALS = 2  # tables whose measurements are kept: methods may scale the records differently

# What was measured of the original table, by digest of records and seed. Settings of one round have
# the same records and generators, so that it is the same for all of them.
ORIGINALS: dict[str, dict[str, Any]] = {}


class TrialAuditor(Auditor):
    """An audit that leaves out the costly scenario that no limit judges.

    Scores are those of ``Auditor``.
    """

    def build_view(self, attack: Attack, trial: AttackTrial) -> AttackerView:
        view = super().build_view(attack, trial)
        is_judged = any(PARTIAL in name.split(".") for name in self.policy.limits)
        if is_judged or "partial_columns" in attack.needs:
            return view
        return replace(view, partial_columns=None)

    @cached_property
    def comparisons(self) -> list[ReleaseComparison]:
        found = super().comparisons
        key = self.compute_digest()
        known = ORIGINALS.pop(key, {})
        found[0].original.share_cache(known)
        ORIGINALS[key] = known  # the last one used is the last to go
        while len(ORIGINALS) > MAX_ORIGINALS:
            del ORIGINALS[next(iter(ORIGINALS))]
        return found

    def compute_digest(self) -> str:
        """Return the identity of the original table and of the generators that measure it."""
        digest = hashlib.blake2b(self.seed, digest_size=16)
        for each in (self.truth.X, self.truth.label, self.truth.codes):
            digest.update(str(each.shape).encode())
            digest.update(each.tobytes())
        return digest.hexdigest()

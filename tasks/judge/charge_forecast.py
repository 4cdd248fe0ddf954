"""What the next release will charge to the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from ppdm_core.gates.ledger import judge_balance
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.verdict import Finding
from tasks.context import ReleaseContext
from tasks.home_state import HomeState
from tasks.judge.ledger_charge import build_scope, list_basis_draws, list_draws
from tasks.sanitize.next_release import NextRelease
from warehouse.ledger.balance import compute_balance_with, write_draws
from warehouse.scratch import open_empty_warehouse, open_scratch_folder

ANY_RELEASE = "next"  # without ids, any name that no release has gives new draws


@dataclass(frozen=True)
class ChargeForecast:
    """What the ledger will say of the next release, whatever its verdict is."""

    balance: LedgerBalance
    findings: tuple[Finding, ...]

    @property
    def is_refused(self) -> bool:
        """Whether the ledger itself refuses the release, which is then not charged."""
        return any(finding.outcome == "FAIL" for finding in self.findings)

    @property
    def is_charged(self) -> bool:
        return self.balance.records > 0 and not self.is_refused


def forecast_charge(
    context: ReleaseContext, release: NextRelease, state: HomeState
) -> ChargeForecast:
    """Name the draws of the next release and compare them with those in the ledger."""
    split, sanitizer, noise = release.split, release.sanitizer, state.noise
    learned, X = split.fit.learned, release.X
    candidate = None if sanitizer.row_aligned else sanitizer.sanitize(X, noise, learned)
    basis = list_basis_draws(split.drawn, noise, split.fit.digest) if split.drawn else ()
    has_ids = context.record_id is not None
    name = None if has_ids else ANY_RELEASE
    draws = list_draws(X, candidate, sanitizer, noise, learned, name, basis)
    expected = X.n + (split.drawn.n if split.drawn else 0)
    scope = build_scope(context, release.guarantee)
    with open_scratch_folder() as folder:
        stored = write_draws(draws, folder)
        with (
            context.open_store().transaction(f"{context.dataset} check")
            if state.has_key
            else open_empty_warehouse(folder)
        ) as db:
            balance = compute_balance_with(db, stored, scope, expected, has_ids=has_ids)
    found = judge_balance(balance, context.policy, sanitizer.advise())
    return ChargeForecast(balance, tuple(found))

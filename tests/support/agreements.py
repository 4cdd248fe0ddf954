"""Parties in one process that agree on a common fit of records in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import tasks.centre.fit as centre_fit
from ppdm_core.model.errors import BadInput, PpdmError
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tasks.centre.task import end_session
from tasks.sites import fit as site_fit
from tasks.sites.exchange import Exchange, StillWaiting
from tasks.sites.terms import ROUNDS
from tests.support.parties import TERMS, Parties
from warehouse.messages.roll import CENTRE

SCHEMA = Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(5)))
PCA = PcaLaplace(components=2, b=0.3, basis="sample")
DCT = DctFuzzy(b=0.001, p=0.03)


class Agreement:
    """Parties in one process that agree on a fit of records in memory.

    Each runs as far as the messages of the others let it, from its first step each time.
    """

    def __init__(
        self,
        parties: Parties,
        sanitizer: Sanitizer,
        sizes: dict[str, int] | None = None,
        waived: bool = False,
    ) -> None:
        self.parties = parties
        self.sanitizer = replace(sanitizer, refit_waiver="the DPO") if waived else sanitizer
        sizes = sizes or {name: 40 + 10 * k for k, name in enumerate(parties.sites)}
        self.rows = {name: make_rows(sizes[name], k) for k, name in enumerate(parties.sites)}

    def open(self, name: str) -> Exchange:
        exchange = Exchange(self.parties.enter(name), TERMS, 0.0)
        exchange.begin()
        return exchange

    def run_centre(self) -> None:
        exchange = self.open(CENTRE)
        try:
            for each in ROUNDS[self.sanitizer.common_fit]:
                centre_fit.LEADS[each](exchange, self.sanitizer, SCHEMA)
        except BadInput:
            end_session(exchange, "refused")
            raise

    def run_site(self, name: str) -> Any:
        exchange, found = self.open(name), None
        for each in ROUNDS[self.sanitizer.common_fit]:
            agree = site_fit.AGREEMENTS[each]
            found = agree(exchange, self.sanitizer, lambda: self.rows[name])
        return found

    def run_all(self, rounds: int = 8) -> dict[str, Any]:
        """Return what each party ended with: a fit, None or an error."""
        ended: dict[str, Any] = {}
        runs: dict[str, Callable[[], Any]] = {CENTRE: self.run_centre}
        runs |= {name: lambda name=name: self.run_site(name) for name in self.parties.sites}
        for _ in range(rounds):
            for name in runs.keys() - ended.keys():
                try:
                    ended[name] = runs[name]()
                except StillWaiting:
                    continue
                except PpdmError as error:
                    ended[name] = error
        return ended


def make_rows(n: int, seed: int) -> ArrayRows:
    rng = np.random.default_rng(seed)
    X = 0.5 + 0.1 * rng.standard_normal((n, 1)) + 0.05 * rng.standard_normal((n, 5))
    return ArrayRows(SCHEMA, np.clip(X, 0.0, 1.0))


def gather(rows: dict[str, ArrayRows]) -> ArrayRows:
    return ArrayRows(SCHEMA, np.concatenate([each.whole.X for each in rows.values()]))

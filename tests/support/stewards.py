"""A steward who releases one table repeatedly, by the steps without Prefect.

No attack runs and nothing is published, so that each verdict is a FAIL. The ledger charges each
release nevertheless.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.score import AuditReport
from tasks.context import ReleaseContext
from tasks.dataset_lock import hold_dataset
from tasks.ingest.task import begin_release, load_raw
from tasks.judge.task import judge
from tasks.sanitize.task import draw_candidate
from tasks.settings_check import check_settings
from tests.support.contexts import make_context, open_run, read_noise, write_unchecked
from warehouse.columns import Column, Source
from warehouse.database import Store
from warehouse.home import Home
from warehouse.ledger.entries import find_entry
from warehouse.stage_facts import AuditedFacts, store_facts
from warehouse.stages import Stage, is_past

NUMERIC: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 1.0}
COLUMNS = (Column("id", "identifier"), Column("x", **NUMERIC), Column("y", **NUMERIC))
NO_REPORT = AuditedFacts(AuditReport(()))
NOISE = {"b": 0.5}

Row = tuple[Any, ...]


def limits(product: float | None = None, draws: float | None = None, **more: Any) -> dict[str, Any]:
    found = {"ledger.record": product, "ledger.draws": draws}
    return {
        name: Limit(value, "DPO", "for the test", **(more if name == "ledger.record" else {}))
        for name, value in found.items()
        if value is not None
    }


@dataclass
class Steward:
    """A table with a history."""

    folder: Path
    rows: dict[str, Row]
    columns: tuple[Column, ...] = COLUMNS
    method: str = "additive_noise"
    parameters: Mapping[str, Any] = field(default_factory=lambda: dict(NOISE))
    record_id: str | None = "id"
    audience: str = "partners"
    file: str = "t.csv"
    policy: Policy = field(default_factory=lambda: Policy((), {}, shadow_draws=1, splits=0))

    def build_context(self) -> ReleaseContext:
        lines = [",".join(map(str, (name, *row))) for name, row in self.rows.items()]
        names = ",".join(column.name for column in self.columns if column.derivation is None)
        path = self.folder / self.file
        path.write_text("\n".join([names, *lines]) + "\n")
        return make_context(
            self.folder,
            file_digest=repr((self.method, self.parameters, self.audience, self.policy.digest)),
            dataset="people",
            owner="registry",
            audience=self.audience,
            source=Source("csv", str(path)),
            columns=self.columns,
            method=self.method,
            parameters=dict(self.parameters),
            policy=self.policy,
            record_id=self.record_id,
        )

    @property
    def store(self) -> Store:
        return Store(Home(self.folder / "home"))

    def release(self, **changes: Any) -> dict[str, Any]:
        """Make a release, and return its ledger entry with the findings of the gate."""
        for name, value in changes.items():
            setattr(self, name, value)
        context = self.build_context()
        check_settings(context)
        with hold_dataset(context):
            release_id = begin_release.fn(context)
            load_raw.fn(context, release_id)
            store, run = open_run(context, release_id)
            if not is_past(run.stage, Stage.VALIDATED):
                write_unchecked(context, release_id)
            draw_candidate.fn(context, release_id)
            if not is_past(open_run(context, release_id)[1].stage, Stage.AUDITED):
                with store.advance(run, Stage.AUDITED) as change:
                    store_facts(change.db, run, NO_REPORT)
            judge.fn(context, release_id)
        with store.transaction() as db:
            entry = find_entry(db, release_id)
            ((found,),) = db.execute(
                "select findings from audit.verdict where release_id = ?", [release_id]
            ).fetchall()
        assert entry is not None
        findings = {each["check"]: each for each in json.loads(found)}
        return {**entry, "findings": findings}

    def accounts(self, ids: Iterable[str] = ()) -> dict[str, float]:
        """Return what each record has spent, by its id: only a test may link the two."""
        ids = list(ids or self.rows)
        noise = read_noise(self.store, "people")
        keys = noise.make_record_keys([name.encode() for name in ids], "id")
        names = noise.ranks(np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16), "ledger")
        with self.store.transaction() as db:
            rows = db.execute("select record, ln_gamma from ledger.charge").fetchall()
        spent: Counter[int] = Counter()
        for record, ln_gamma in rows:
            spent[record] += ln_gamma
        assert set(spent) <= set(names.tolist())
        return dict(zip(ids, (spent[name] for name in names.tolist()), strict=True))


def numbers(n: int = 12, seed: int = 1) -> dict[str, Row]:
    values = np.random.default_rng(seed).random((n, 2)).round(6).tolist()
    return {f"p{i}": tuple(row) for i, row in enumerate(values)}

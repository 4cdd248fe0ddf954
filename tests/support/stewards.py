"""A steward who releases one table again and again, by the plain steps: no attack is played and
nothing leaves, so that every verdict is a FAIL. The ledger charges it all the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.policy import Limit, Policy
from tasks.context import Plan, check_plan
from tasks.dataset_lock import taking_turns
from tasks.ingest.task import begin, load_raw, write_records
from tasks.judge.task import judge
from tasks.keys import dataset_noise
from tasks.sanitize.task import make_draws
from warehouse.columns import Column, Source
from warehouse.database import Store, keep_fact
from warehouse.home import Home
from warehouse.ledger.entries import entry_of
from warehouse.stages import Stage, is_past

NUMERIC: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 1.0}
COLUMNS = (Column("id", "identifier"), Column("x", **NUMERIC), Column("y", **NUMERIC))
NO_REPORT = {"scores": [], "skipped": {}, "failed": {}}
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

    def plan(self) -> Plan:
        home = Home(self.folder / "home")
        home.create()
        lines = [",".join(map(str, (name, *row))) for name, row in self.rows.items()]
        names = ",".join(column.name for column in self.columns)
        path = self.folder / self.file
        path.write_text("\n".join([names, *lines]) + "\n")
        return Plan(
            folder=str(self.folder),
            file_digest=repr((self.method, self.parameters, self.audience, self.policy.digest)),
            home=str(home.root),
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
        """The entry of the ledger, and what the gate found of it."""
        for name, value in changes.items():
            setattr(self, name, value)
        plan = self.plan()
        check_plan(plan)
        with taking_turns(plan):
            release_id = begin.fn(plan)
            load_raw.fn(plan, release_id)
            store, run = plan.run(release_id)
            if not is_past(run.stage, Stage.VALIDATED):
                write_records(plan, store, run)
            make_draws.fn(plan, release_id)
            if not is_past(plan.run(release_id)[1].stage, Stage.AUDITED):
                with store.advance(run, Stage.AUDITED) as change:
                    keep_fact(change.db, run, "report", NO_REPORT)
            judge.fn(plan, release_id)
        with store.transaction() as db:
            entry = entry_of(db, release_id)
            ((found,),) = db.execute(
                "select findings from audit.verdict where release_id = ?", [release_id]
            ).fetchall()
        assert entry is not None
        findings = {each["check"]: each for each in json.loads(found)}
        return {**entry, "findings": findings}

    def accounts(self, ids: Iterable[str] = ()) -> dict[str, float]:
        """What each record has spent, by its id: the test may know what nobody else does."""
        ids = list(ids or self.rows)
        noise = dataset_noise(self.store, "people")
        keys = noise.record_keys([name.encode() for name in ids], "id")
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

"""The audit tests itself: its attacks on planted leaks, its policy on bad releases of the table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ppdm_core.audit.self_test.known_answers import KnownAnswers
from ppdm_core.audit.self_test.must_catch import DOOR_SCAN, relied_on
from ppdm_core.audit.self_test.policy_check import Cover
from ppdm_core.gates.self_test import COVERAGE, unproven
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import AuditReport
from ppdm_core.model.self_test import Coverage, Proof, SelfTestResult
from tasks.audit.attack_process import Worker
from tasks.audit.attack_worker import Job
from tasks.audit.leak_scan_check import refused_at_the_door, scan_proofs
from tasks.progress import log_progress
from warehouse.database import Change, Run, Store, read_fact
from warehouse.integrity.seals import moment, sealed_rows

if TYPE_CHECKING:
    import duckdb

    from ppdm_core.audit.runner import Auditor

TABLE = "audit.self_test"
TIME_LIMIT = 120.0  # seconds for the planted leaks of one attack, which take a few
Proofs = dict[str, tuple[Proof, ...]]  # by attack

# In this process, by home, version and attack: no home seals what another one found.
PROVEN: dict[tuple[str, str, str], tuple[Proof, ...]] = {}


class SelfTesting:
    """The self-test beside one release: first the attacks, after them the policy."""

    def __init__(self, store: Store, run: Run, policy: Policy) -> None:
        self.run, self.policy, self.names = run, policy, relied_on(policy)
        self.home, self.version = str(store.home.root.resolve()), version_of(run.code_version)
        with store.transaction(run.release_id) as db:
            self.stored = stored_proofs(db, self.version)
            facts = read_fact(db, run.release_id, "sanitized")
        assert facts is not None
        self.facts = facts
        self.result = SelfTestResult(run.code_version, policy.digest)

    def prove(self, worker: Worker) -> None:
        """That each attack works: as found before with the same code, or found now."""
        found = {
            name: self.stored.get(name) or PROVEN.get((self.home, self.version, name))
            for name in self.names
        }
        known: Proofs = {name: proofs for name, proofs in found.items() if proofs}
        new, failed = proofs_of(worker, [name for name in self.names if name not in known])
        proofs = tuple(proof for each in (known | new).values() for proof in each)
        self.result = replace(self.result, proofs=proofs, failed=failed)

    def cover(self, worker: Worker, job: Job, report: AuditReport) -> AuditReport:
        """The report with all that the self-test found.

        Nothing is tried on the table with an attack that fails.
        """
        broken = [name for name in self.names if name in {*report.failed, *self.result.failed}]
        if broken:
            why: object = f"{broken[0]} failed"
        else:
            log_progress("self-test: would this policy refuse a bad release of this table?")
            _, why = worker.ask(Cover(), self.policy.time_limit)
        if isinstance(why, Coverage):
            coverage = refused_at_the_door(why, job, self.facts)
            self.result = replace(self.result, coverage=coverage)
        else:
            self.result = replace(self.result, failed={**self.result.failed, COVERAGE: str(why)})
        return replace(report, self_test=self.result)

    def keep(self, change: Change) -> None:
        """What holds need not be found again with the same code."""
        for name in self.names:
            if name in self.stored or unproven(self.result, name) is not None:
                continue
            proofs = tuple(proof for proof in self.result.proofs if proof.attack == name)
            PROVEN[self.home, self.version, name] = proofs
            row = {
                "release_id": self.run.release_id,
                "version": self.version,
                "attack": name,
                "proofs": json.dumps([asdict(proof) for proof in proofs]),
                "happened": moment(change.db),
            }
            change.keep(TABLE, row)


def version_of(code_version: str) -> str:
    """The same code may count otherwise with other libraries below it."""
    import numpy
    import scipy

    return f"{code_version}, numpy {numpy.__version__}, scipy {scipy.__version__}"


def stored_proofs(db: duckdb.DuckDBPyConnection, version: str) -> Proofs:
    """What earlier releases of this home found; a row that somebody edited is refused."""
    rows = sealed_rows(db, TABLE, "version = ?", [version])
    return {
        row["attack"]: tuple(Proof(**proof) for proof in json.loads(row["proofs"])) for row in rows
    }


def proofs_of(worker: Worker, names: Sequence[str]) -> tuple[Proofs, Mapping[str, str]]:
    """What these notice of the leaks that are planted for them, and which of them failed."""
    found: Proofs = {}
    failed: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        words = name.replace("_", " ")
        log_progress(f"self-test {number}/{len(names)}: does {words} notice planted leaks?")
        kind, answer = answer_of(worker, name)
        if kind == "scores":
            found[name] = answer
        else:
            failed[name] = answer
    return found, failed


def answer_of(worker: Worker, name: str) -> tuple[str, Any]:
    if name == DOOR_SCAN:  # which attacks nothing
        return "scores", scan_proofs()
    return worker.ask(KnownAnswers(name), TIME_LIMIT)


@dataclass(frozen=True, eq=False)
class NoTable(Job):
    """For planted leaks alone."""

    def auditor(self) -> Auditor | None:  # type: ignore[override]
        return None


def try_attacks(names: Sequence[str]) -> tuple[Proofs, Mapping[str, str]]:
    """The planted leaks of these, without any release."""
    job = NoTable("", 0, 0, Policy(required=(), limits={}), b"")
    with Worker(job) as worker:
        return proofs_of(worker, names)

"""The self-test of an audit: its attacks on planted leaks, its policy on bad releases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ppdm_core.audit.runner import Attempt
from ppdm_core.audit.self_test.known_answers import KnownAnswersQuestion
from ppdm_core.audit.self_test.matrix import LEAK_SCAN, list_relied_on
from ppdm_core.gates.self_test import POLICY_CHECK, explain_unproven
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import AuditReport
from ppdm_core.model.self_test import LeakTest, SelfTestResult
from tasks.audit.attack_process import AttackProcess
from tasks.audit.attack_worker import AttackJob, Question
from tasks.audit.leak_scan_check import check_leak_scan
from tasks.progress import Step, log_progress, start_step
from warehouse.database import Change, Run
from warehouse.integrity.seals import monotonic_now, read_sealed_rows
from warehouse.tables import SELF_TESTS

if TYPE_CHECKING:
    from warehouse.transaction import Transaction

TIME_LIMIT = 120.0  # seconds for the planted leaks of one attack, which take a few
LeakTests = dict[str, tuple[LeakTest, ...]]  # by attack

# Found by this process, by home, version and attack: a home never seals what another one found.
FOUND_TESTS: dict[tuple[str, str, str], tuple[LeakTest, ...]] = {}


class SelfTestRun:
    """The self-test of one release: first the attacks, then the policy."""

    def __init__(self, db: Transaction, run: Run, policy: Policy) -> None:
        self.run, self.policy, self.names = run, policy, list_relied_on(policy)
        self.home, self.version = str(db.home.root.resolve()), name_version(run.code_version)
        self.stored = read_leak_tests(db, self.version)
        self.result = SelfTestResult(run.code_version, policy.digest)

    def check_attacks(self, process: AttackProcess) -> None:
        """Test each attack on its planted leaks, unless the same code was tested before."""
        found = {
            name: self.stored.get(name) or FOUND_TESTS.get((self.home, self.version, name))
            for name in self.names
        }
        known: LeakTests = {name: tests for name, tests in found.items() if tests}
        new, failed = run_leak_tests(process, [name for name in self.names if name not in known])
        tests = tuple(test for each in (known | new).values() for test in each)
        self.result = replace(self.result, leak_tests=tests, failed=failed)

    def check_policy(
        self, process: AttackProcess, question: Question, report: AuditReport
    ) -> AuditReport:
        """Return the report with the result of the self-test.

        The policy is not tried on the table if an attack failed.
        """
        broken = [name for name in self.names if name in {*report.failed, *self.result.failed}]
        if broken:
            reply: Attempt[Any] = Attempt(error=f"{broken[0]} failed")
        else:
            start_step(Step.POLICY_TEST)
            reply = process.ask(question, self.policy.time_limit)
        if reply.value is not None:
            self.result = replace(self.result, policy_check=reply.value)
        else:
            why = reply.error or (reply.skip.sentence if reply.skip else "")
            failed = {**self.result.failed, POLICY_CHECK: why}
            self.result = replace(self.result, failed=failed)
        return replace(report, self_test=self.result)

    def store_tests(self, change: Change) -> None:
        """Store successful tests, so that the same code need not be tested again."""
        for name in self.names:
            if name in self.stored or explain_unproven(self.result, name) is not None:
                continue
            tests = tuple(test for test in self.result.leak_tests if test.attack == name)
            FOUND_TESTS[self.home, self.version, name] = tests
            row = {
                "release_id": self.run.release_id,
                "version": self.version,
                "attack": name,
                "proofs": json.dumps([asdict(test) for test in tests]),
                "happened": monotonic_now(change.db),
            }
            change.insert_sealed(SELF_TESTS, row)


def name_version(code_version: str) -> str:
    """Return the code version with those of the libraries that may change a count."""
    import numpy
    import scipy

    return f"{code_version}, numpy {numpy.__version__}, scipy {scipy.__version__}"


def read_leak_tests(db: Transaction, version: str) -> LeakTests:
    """Return what earlier releases of this home found; an edited row is refused."""
    rows = read_sealed_rows(db, SELF_TESTS, "version = ?", [version])
    return {
        row["attack"]: tuple(LeakTest(**test) for test in json.loads(row["proofs"])) for row in rows
    }


def run_leak_tests(
    process: AttackProcess, names: Sequence[str]
) -> tuple[LeakTests, Mapping[str, str]]:
    """Return what these notice of the leaks planted for them, and which of them failed."""
    found: LeakTests = {}
    failed: dict[str, str] = {}
    if names:
        start_step(Step.SELF_TEST)
    for done, name in enumerate(names):
        plain_name = name.replace("_", " ")
        log_progress(f"self-test {done + 1} of {len(names)}: {plain_name}", done / len(names))
        reply = run_one_test(process, name)
        if reply.value is not None:
            found[name] = reply.value
        else:
            failed[name] = reply.error or (reply.skip.sentence if reply.skip else "")
    return found, failed


def run_one_test(process: AttackProcess, name: str) -> Attempt[tuple[LeakTest, ...]]:
    """Test one attack, or the leak scan, which needs no attack process."""
    if name == LEAK_SCAN:
        return Attempt(check_leak_scan())
    return process.ask(KnownAnswersQuestion(name), TIME_LIMIT)


@dataclass(frozen=True, eq=False)
class NoTableJob(AttackJob):
    """A job for planted leaks only."""

    shape = (0, 0)
    draws = 0

    def make_auditor(self) -> None:
        return None


def check_attacks(names: Sequence[str]) -> tuple[LeakTests, Mapping[str, str]]:
    """Test attacks on their planted leaks, without any release."""
    job = NoTableJob(Policy(required=(), limits={}), b"")
    with AttackProcess(job) as process:
        return run_leak_tests(process, names)

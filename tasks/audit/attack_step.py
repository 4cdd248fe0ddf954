"""Whole attacks on the workers of an engine, each in a child process of its worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ppdm_core.audit.runner import AuditResult
from tasks.audit.attack_process import AttackProcess
from tasks.audit.attack_worker import AttackJob
from tasks.audit.cost_estimate import limit_time
from warehouse.engines.cancellation import end_if_cancelled

if TYPE_CHECKING:
    from warehouse.engines import Engine


@dataclass(frozen=True, eq=False)
class AttackStep:
    """Runs an audit by name in a child process of its own, which ends with the audit.

    The process is killed at the time limit, and when nobody waits for the result any more. None is
    used twice: it could hold the draws of another release.
    """

    job: AttackJob

    def __call__(self, part: tuple[str, float]) -> AuditResult:
        name, limit = part
        with AttackProcess(self.job) as process, end_if_cancelled(process.kill):
            result: AuditResult = process.ask(name, limit)
            return result


@contextmanager
def run_on_workers(
    job: AttackJob, names: Sequence[str], engine: Engine
) -> Iterator[Iterator[AuditResult] | None]:
    """Yield the results of audits in their order, or None if the engine runs no attacks.

    Several run at once, from the first one that is asked for. Those that still run at the end of
    the block, because of an error in it, are cancelled.
    """
    if not engine.runs_attacks:
        yield None
        return
    limits = [(name, limit_time(name, job.shape, job.policy)) for name in names]
    with closing(engine.run(AttackStep(job), limits)) as results:
        yield results

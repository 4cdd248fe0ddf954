from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from tasks.audit import attack_process as attacking
from tasks.audit.attack_inputs import write
from tasks.audit.attack_process import SPARE, AttackProcess, start_spare_process
from tasks.audit.attack_worker import AttackJob


@pytest.fixture
def job(tmp_path: Path) -> AttackJob:
    Y = np.random.default_rng(1).random((12, 1))
    schema = Schema((Numeric("x", 0.0, 1.0),))
    public = PublicParameters(method="none", space="original", columns=("x",), centre=np.zeros(1))
    policy = Policy(required=(), limits={}, attacker=Attacker(), shadow_draws=1, time_limit=60.0)
    write(tmp_path / "truth", OriginalTable(Y, np.zeros(12, dtype=np.int32), schema))
    write(tmp_path / "shadow_0", ReleaseDraw(Y, public))
    return AttackJob(str(tmp_path), 1, 0, policy, bytes(32))


def test_the_first_question_goes_to_the_spare_process(job: AttackJob) -> None:
    with start_spare_process():
        (spare,) = SPARE
        with AttackProcess(job) as worker:
            kind, _ = worker.ask("distance_loss", 60.0)
            assert worker.process is spare and not SPARE
            assert kind in ("scores", "skipped")
        assert spare.poll() is not None


def test_a_spare_process_that_nobody_asked_is_ended() -> None:
    with start_spare_process():
        (spare,) = SPARE
        assert spare.poll() is None
    assert spare.poll() is not None and not SPARE


def test_a_dead_spare_process_is_replaced() -> None:
    with start_spare_process():
        (spare,) = SPARE
        spare.kill()
        spare.wait()
        taken = attacking.take()
        assert taken is not spare and taken.poll() is None
        attacking.end(taken)


def test_an_error_does_not_leave_it_behind() -> None:
    def fail() -> None:
        with start_spare_process():
            spares.extend(SPARE)
            raise RuntimeError

    spares: list[attacking.Process] = []
    with pytest.raises(RuntimeError):
        fail()
    assert spares[0].poll() is not None and not SPARE

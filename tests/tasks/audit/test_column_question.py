"""The question which columns drive the risk: its time budget, and what is stored of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppdm_core.audit.column_risk import measure_columns
from ppdm_core.audit.draws import ShadowDraws
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters, Released
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.scaling import Scaling
from tasks.audit.attack_process import AttackProcess
from tasks.audit.column_question import ColumnQuestion, ask_columns, read_reply
from tasks.audit.release_job import ReleaseJob
from tests.support.audit_cases import D, make_auditor, make_policy
from tests.support.views import make_columns
from warehouse.json_codec import from_json, to_json
from warehouse.parquet_parts import write_parts
from warehouse.stage_facts import ColumnFacts

N = 100


def make_noisy_auditor() -> Any:
    return make_auditor(np.random.default_rng(3).random((N, D)))


@pytest.fixture
def job(tmp_path: Path) -> ReleaseJob:
    """A release that is a copy of its records."""
    schema = make_columns(D)
    X = np.random.default_rng(1).random((N, D))
    rows = write_parts(ArrayRows(schema, X).blocks(), schema, tmp_path / "rows")
    public = PublicParameters("copy", "original", schema.names)
    shadows = ShadowDraws((Released(rows, public, atom=0.0),), (), ())
    policy = make_policy(required=(), effort="standard")
    scaling = Scaling("none", np.zeros(D), np.ones(D))
    return ReleaseJob(policy, bytes(32), rows, scaling, shadows, row_aligned=True)


def test_column_question_no_time_left_out_with_the_time_needed() -> None:
    with pytest.raises(NotApplicable, match=r"take about 1 s, more than 20% of the audit's time"):
        ColumnQuestion(0.0).answer(make_noisy_auditor())


@pytest.mark.parametrize("seconds", [None, 600.0])
def test_column_question_enough_time_all_columns(seconds: float | None) -> None:
    found = ColumnQuestion(seconds).answer(make_noisy_auditor())
    assert found == measure_columns(make_noisy_auditor()) and len(found.columns) == D


@pytest.mark.extended
def test_ask_columns_copy_found_without_any_column(job: ReleaseJob) -> None:
    with AttackProcess(job) as process:
        facts = ask_columns(process, 600.0)
    assert facts.risks is not None and facts.why == ""
    assert [line.rate for line in facts.risks.columns] == [1.0] * D
    assert from_json(ColumnFacts, to_json(facts)) == facts


def test_ask_columns_quick_audit_does_not_ask(job: ReleaseJob) -> None:
    quick = replace(job, policy=replace(job.policy, effort="quick"))
    with AttackProcess(quick) as process:
        facts = ask_columns(process, 600.0)
        assert process.process is None
    assert facts == ColumnFacts(None, "The effort of the audit is quick.")


def test_read_reply_killed_process_says_so(job: ReleaseJob) -> None:
    with AttackProcess(job) as process:
        facts = read_reply(process, ColumnQuestion(), 0.0)
    assert facts == ColumnFacts(None, "It failed (TimeLimit).")

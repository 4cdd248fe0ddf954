from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasks.audit.self_test
from ppdm.cli.self_test import run_self_test
from ppdm_core.gates.self_test import SelfTest, explain_unproven
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.policy import Attacker, Limit, Policy
from ppdm_core.model.self_test import LeakTest, SelfTestResult
from tasks.audit import leak_scan_check
from tasks.audit.self_test import FOUND_TESTS, SelfTestRun, check_attacks
from tasks.audit.task import attack_shadows
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.sanitize.task import draw_candidate
from tests.contract.gate_inputs import make_good_input
from tests.support import mutants
from tests.support.contexts import make_context, open_run
from warehouse.columns import Column
from warehouse.home import Home
from warehouse.stage_facts import AuditedFacts, read_facts
from warehouse.stages import Stage

NAME = "transform_inverse"
POLICY = Policy(
    required=(NAME,),
    limits={f"{NAME}.breach_rate": Limit(0.3, "DPO", "a line")},
    attacker=Attacker(),
    shadow_draws=1,
    splits=0,
    effort="quick",
)


def write(path: Path, seed: int) -> None:
    values = np.random.default_rng(seed).uniform(2.0, 9.0, (80, 3)).tolist()
    lines = [f"p{i},{','.join(map(repr, row))}" for i, row in enumerate(values)]
    path.write_text("id,x,y,z\n" + "\n".join(lines) + "\n")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseContext:
    monkeypatch.setattr(
        "tasks.notify.prefect_artifacts.ProgressBar.show", lambda bar, share: None
    )  # needs a server
    write(tmp_path / "t.csv", 1)
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 10.0}
    return make_context(
        tmp_path,
        columns=(Column("id", "identifier"), *(Column(name, **numeric) for name in "xyz")),
        parameters={"b": 0.3},
        policy=POLICY,
    )


def release_and_self_test(context: ReleaseContext) -> SelfTestResult:
    """Audit a release of the current table, and return its self-test."""
    release_id = begin_release.fn(context)
    for step in (load_raw, validate, draw_candidate, attack_shadows):
        step.fn(context, release_id)
    store, run = open_run(context, release_id)
    with store.transaction() as db:
        result = read_facts(db, release_id, AuditedFacts).report.self_test
    assert result is not None
    assert result.code_version == run.code_version
    return result


def list_outcomes(result: SelfTestResult, policy: Policy) -> list[str]:
    report = replace(make_good_input().report, self_test=result)
    evidence = replace(
        make_good_input(), report=report, policy=policy, code_version=result.code_version
    )
    return [finding.outcome for finding in SelfTest().check(evidence)]


@pytest.fixture
def tested_attacks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which the names of the tested attacks are added, in order."""
    names: list[str] = []
    run_leak_tests = tasks.audit.self_test.run_leak_tests

    def noted(worker: Any, missing: Sequence[str]) -> Any:
        names.extend(missing)
        return run_leak_tests(worker, missing)

    monkeypatch.setattr(tasks.audit.self_test, "run_leak_tests", noted)
    FOUND_TESTS.clear()
    return names


def read_stored_tests(context: ReleaseContext) -> list[tuple[str, str]]:
    with context.open_store().transaction() as db:
        query = "select version, attack from audit.self_test order by version, attack"
        return db.execute(query).fetchall()


@pytest.mark.slow
def test_leak_tests_same_code_reused_other_code_repeated(
    context: ReleaseContext,
    tmp_path: Path,
    tested_attacks: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = release_and_self_test(context)
    assert tested_attacks == [NAME, "leak_scan"]
    assert list_outcomes(first, POLICY) == ["PASS", "PASS"]
    assert first.policy_check is not None
    assert {each.name: each.refused_by for each in first.policy_check.bad} == {
        "identity": (NAME,),
        "slight noise": (NAME,),
        "nearly identical": (NAME,),
        "verbatim rows": ("leak_scan",),
    }
    assert [attack for _, attack in read_stored_tests(context)] == ["leak_scan", NAME]
    FOUND_TESTS.clear()  # as in another process
    write(tmp_path / "t.csv", 2)
    second = release_and_self_test(context)
    assert tested_attacks == [NAME, "leak_scan"]
    assert second.leak_tests == first.leak_tests
    assert len(read_stored_tests(context)) == 2
    monkeypatch.setattr("tasks.ingest.task.compute_code_version", lambda: "other code")
    write(tmp_path / "t.csv", 3)
    FOUND_TESTS.clear()
    third = release_and_self_test(context)
    assert tested_attacks == 2 * [NAME, "leak_scan"]
    assert third.code_version == "other code"
    assert len({version for version, _ in read_stored_tests(context)}) == 2
    with context.open_store().transaction() as db:
        db.execute("update audit.self_test set proofs = replace(proofs::varchar, '20', '19')")
    write(tmp_path / "t.csv", 4)
    with pytest.raises(Refused, match="was changed after it was written"):
        release_and_self_test(context)


def test_leak_tests_other_home_or_code_repeated(
    context: ReleaseContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested_attacks: list[str] = []
    attack = (LeakTest(NAME, "identity", 20, 20), LeakTest(NAME, "noise", 0, 20))
    proofs = {NAME: attack, "leak_scan": leak_scan_check.check_leak_scan()}

    def noted(worker: Any, missing: Sequence[str]) -> Any:
        tested_attacks.extend(missing)
        return {name: proofs[name] for name in missing}, {}

    monkeypatch.setattr(tasks.audit.self_test, "run_leak_tests", noted)
    FOUND_TESTS.clear()
    worker: Any = None
    for name in ("one", "other"):
        Home(tmp_path / name).create()
        there = replace(context, home=str(tmp_path / name))
        store, run = open_run(there, begin_release.fn(there))
        with store.transaction() as db:
            self_test = SelfTestRun(db, run, POLICY)
        self_test.check_attacks(worker)
        with store.advance(run, Stage.RAW) as change:
            self_test.store_tests(change)
        assert len(read_stored_tests(there)) == 2
    assert tested_attacks == 2 * [NAME, "leak_scan"]
    for version in (run.code_version, "other code"):
        FOUND_TESTS.clear()  # as in another process
        with store.transaction() as db:
            SelfTestRun(db, replace(run, code_version=version), POLICY).check_attacks(worker)
    assert tested_attacks == 3 * [NAME, "leak_scan"]  # the same code is not tested again


def test_policy_check_loose_limit_fails(context: ReleaseContext) -> None:
    limits = {f"{NAME}.breach_rate": Limit(1.0, "DPO", "whatever happens")}
    loose = replace(POLICY, limits=limits)
    result = release_and_self_test(replace(context, policy=loose))
    assert list_outcomes(result, loose) == ["PASS", "FAIL"]
    assert result.policy_check is not None
    assert list(result.policy_check.powerless) == [NAME]


def install_mutant(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copyfile(mutants.__file__, folder / "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PPDM_TESTS_MUTANT", f"{kind} {NAME}")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("raising", "ArithmeticError"),
        pytest.param("dying", "WorkerDied", marks=pytest.mark.slow),
        pytest.param("hanging", "TimeLimit", marks=pytest.mark.slow),
        pytest.param("nan", "Defect", marks=pytest.mark.slow),
        pytest.param("removed", "KeyError", marks=pytest.mark.slow),
    ],
)
def test_check_attacks_broken_attack_reported_as_failed(
    kind: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_mutant(tmp_path, kind, monkeypatch)
    monkeypatch.setattr(tasks.audit.self_test, "TIME_LIMIT", 5.0 if kind == "hanging" else 60.0)
    found, failed = check_attacks([NAME])
    assert (found, failed) == ({}, {NAME: why})
    result = SelfTestResult("c", "p", failed=failed)
    assert explain_unproven(result, NAME) == f"{NAME} failed on a planted leak ({why})."


@pytest.mark.extended
def test_self_test_command_working_attack_prints_counts() -> None:
    answer = run_self_test([NAME])
    assert answer.exit_code == 0
    assert answer.payload["proofs"] == [
        {"attack": NAME, "plant": "identity", "noticed": 20, "repetitions": 20},
        {"attack": NAME, "plant": "noise", "noticed": 0, "repetitions": 20},
    ]
    assert json.dumps(answer.payload)
    assert "identity  20 of 20" in answer.text


def test_self_test_command_weak_attack_exits_three(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = {NAME: (LeakTest(NAME, "identity", 3, 20), LeakTest(NAME, "noise", 0, 20))}
    monkeypatch.setattr(tasks.audit.self_test, "check_attacks", lambda names: (poor, {}))
    answer = run_self_test([NAME])
    assert answer.exit_code == 3
    assert "noticed the planted leak 'identity' 3 times in 20" in answer.text
    with pytest.raises(BadInput, match="No leak is planted for 'transform_invers'") as caught:
        run_self_test(["transform_invers"])
    assert NAME in str(caught.value)


def test_check_leak_scan_blind_or_strict_scan_unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leak_scan_check.check_leak_scan() == (
        LeakTest("leak_scan", "verbatim rows", 20, 20),
        LeakTest("leak_scan", "noise", 0, 20),
    )
    monkeypatch.setattr(leak_scan_check, "find_content_leaks", lambda read, expected: iter(()))
    blind = leak_scan_check.check_leak_scan()
    assert explain_unproven(SelfTestResult("c", "p", blind), "leak_scan") is not None
    monkeypatch.setattr(
        leak_scan_check, "find_content_leaks", lambda read, expected: iter(("no.",))
    )
    strict = leak_scan_check.check_leak_scan()
    why = explain_unproven(SelfTestResult("c", "p", strict), "leak_scan")
    assert why is not None
    assert "took noise for a leak" in why

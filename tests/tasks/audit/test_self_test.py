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
from ppdm_core.model.self_test import Proof, SelfTestResult
from tasks.audit import leak_scan_check as door_test
from tasks.audit.self_test import FOUND_TESTS, SelfTestRun, test_attacks
from tasks.audit.task import attack_shadows
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.sanitize.task import draw_candidate
from tests.contract.gate_inputs import make_good_input
from tests.support import mutants
from tests.support.facts import make_sanitized_facts
from warehouse.columns import Column, Source
from warehouse.home import Home
from warehouse.stage_facts import AuditedFacts, read_facts, store_facts
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
    Home(tmp_path / "home").create()
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 10.0}
    return ReleaseContext(
        folder=str(tmp_path),
        file_digest="f",
        home=str(tmp_path / "home"),
        dataset="table",
        owner="o",
        audience="a",
        source=Source("csv", str(tmp_path / "t.csv")),
        columns=(Column("id", "identifier"), *(Column(name, **numeric) for name in "xyz")),
        method="additive_noise",
        parameters={"b": 0.3},
        policy=POLICY,
        record_id="id",
    )


def audited(context: ReleaseContext) -> SelfTestResult:
    """The self-test of a release of the table as it is now."""
    release_id = begin_release.fn(context)
    for step in (load_raw, validate, draw_candidate, attack_shadows):
        step.fn(context, release_id)
    store, run = context.open_run(release_id)
    with store.transaction() as db:
        result = read_facts(db, release_id, AuditedFacts).report.self_test
    assert result is not None
    assert result.code_version == run.code_version
    return result


def outcomes(result: SelfTestResult, policy: Policy) -> list[str]:
    report = replace(make_good_input().report, self_test=result)
    evidence = replace(
        make_good_input(), report=report, policy=policy, code_version=result.code_version
    )
    return [finding.outcome for finding in SelfTest().check(evidence)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What had to be proved, in turn; it is proved as ever."""
    names: list[str] = []
    run_leak_tests = tasks.audit.self_test.proofs_of

    def noted(worker: Any, missing: Sequence[str]) -> Any:
        names.extend(missing)
        return run_leak_tests(worker, missing)

    monkeypatch.setattr(tasks.audit.self_test, "proofs_of", noted)
    FOUND_TESTS.clear()
    return names


def stored(context: ReleaseContext) -> list[tuple[str, str]]:
    with context.open_store().transaction() as db:
        query = "select version, attack from audit.self_test order by version, attack"
        return db.execute(query).fetchall()


def test_proofs_are_kept_with_the_code_that_found_them(
    context: ReleaseContext, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = audited(context)
    assert asked == [NAME, "door_scan"]
    assert outcomes(first, POLICY) == ["PASS", "PASS"]
    assert first.coverage is not None
    assert {each.plant: each.refused_by for each in first.coverage.bad} == {
        "identity": (NAME,),
        "slight noise": (NAME,),
        "verbatim rows": ("door_scan",),
    }
    assert [attack for _, attack in stored(context)] == ["door_scan", NAME]
    FOUND_TESTS.clear()  # as in another process
    write(tmp_path / "t.csv", 2)
    second = audited(context)
    assert asked == [NAME, "door_scan"]
    assert second.proofs == first.proofs
    assert len(stored(context)) == 2
    monkeypatch.setattr("tasks.ingest.task.code_version", lambda: "other code")
    write(tmp_path / "t.csv", 3)
    FOUND_TESTS.clear()
    third = audited(context)
    assert asked == 2 * [NAME, "door_scan"]
    assert third.code_version == "other code"
    assert len({version for version, _ in stored(context)}) == 2
    with context.open_store().transaction() as db:
        db.execute("update audit.self_test set proofs = replace(proofs::varchar, '20', '19')")
    write(tmp_path / "t.csv", 4)
    with pytest.raises(Refused, match="was changed after it was written"):
        audited(context)


def test_a_home_proves_for_itself_what_another_one_found(
    context: ReleaseContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    attack = (Proof(NAME, "identity", 20, 20), Proof(NAME, "noise", 0, 20))
    proofs = {NAME: attack, "door_scan": door_test.test_leak_scan()}

    def noted(worker: Any, missing: Sequence[str]) -> Any:
        asked.extend(missing)
        return {name: proofs[name] for name in missing}, {}

    monkeypatch.setattr(tasks.audit.self_test, "proofs_of", noted)
    FOUND_TESTS.clear()
    worker: Any = None
    for name in ("one", "other"):
        Home(tmp_path / name).create()
        there = replace(context, home=str(tmp_path / name))
        store, run = there.run(begin_release.fn(there))
        with store.transaction() as db:
            store_facts(db, run, make_sanitized_facts())
        testing = SelfTestRun(store, run, POLICY)
        testing.run_leak_tests(worker)
        with store.advance(run, Stage.RAW) as change:
            testing.keep(change)
        assert len(stored(there)) == 2
    assert asked == 2 * [NAME, "door_scan"]


def test_a_policy_that_bears_a_copy_is_not_audited(context: ReleaseContext) -> None:
    limits = {f"{NAME}.breach_rate": Limit(1.0, "DPO", "whatever happens")}
    loose = replace(POLICY, limits=limits)
    result = audited(replace(context, policy=loose))
    assert outcomes(result, loose) == ["PASS", "FAIL"]
    assert result.coverage is not None
    assert list(result.coverage.powerless) == [NAME]


def with_mutant(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copyfile(mutants.__file__, folder / "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PPDM_TESTS_MUTANT", f"{kind} {NAME}")


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
def test_a_broken_attack_proves_nothing(
    kind: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_mutant(tmp_path, kind, monkeypatch)
    monkeypatch.setattr(tasks.audit.self_test, "TIME_LIMIT", 5.0 if kind == "hanging" else 60.0)
    found, failed = test_attacks([NAME])
    assert (found, failed) == ({}, {NAME: why})
    result = SelfTestResult("c", "p", failed=failed)
    assert explain_unproven(result, NAME) == f"{NAME} failed on a planted leak ({why})."


def test_the_command_shows_what_was_noticed() -> None:
    answer = run_self_test([NAME])
    assert answer.exit_code == 0
    assert answer.payload["proofs"] == [
        {"attack": NAME, "plant": "identity", "noticed": 20, "repetitions": 20},
        {"attack": NAME, "plant": "noise", "noticed": 0, "repetitions": 20},
    ]
    assert json.dumps(answer.payload)
    assert "identity          20 of 20" in answer.text


def test_the_command_complains_of_what_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = {NAME: (Proof(NAME, "identity", 3, 20), Proof(NAME, "noise", 0, 20))}
    monkeypatch.setattr(tasks.audit.self_test, "try_attacks", lambda names: (poor, {}))
    answer = run_self_test([NAME])
    assert answer.exit_code == 3
    assert "noticed the planted leak 'identity' 3 times in 20" in answer.text
    with pytest.raises(BadInput, match="No leak is planted for 'transform_invers'") as caught:
        run_self_test(["transform_invers"])
    assert NAME in str(caught.value)


def test_a_scan_that_sees_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert door_test.test_leak_scan() == (
        Proof("door_scan", "verbatim rows", 20, 20),
        Proof("door_scan", "noise", 0, 20),
    )
    monkeypatch.setattr(door_test, "numbers", lambda table, expected: iter(()))
    blind = door_test.test_leak_scan()
    assert explain_unproven(SelfTestResult("c", "p", blind), "door_scan") is not None
    monkeypatch.setattr(door_test, "numbers", lambda table, expected: iter(("no.",)))
    strict = door_test.test_leak_scan()
    why = explain_unproven(SelfTestResult("c", "p", strict), "door_scan")
    assert why is not None
    assert "took noise for a leak" in why

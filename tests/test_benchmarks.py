from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as program
from benchmarks import harness, release
from benchmarks.harness import Comparison, Figure, Result, Side, Times, measure
from benchmarks.report import PACKAGES, machine, table

NEEDS = {"grid_noise": "opendp"}


def result(ours: list[float], peer: list[float], amount: int = 1, **asked: Any) -> Result:
    comparison = Comparison("toy", Side("we", list, amount), Side("they", list), **asked)
    return Result(comparison, Times("we", amount, ours, ours), Times("they", 1, peer, peer))


def test_rounds_alternate_and_only_the_work_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    now = 0.0

    def doing(name: str, seconds: float) -> Any:
        def work() -> None:
            nonlocal now
            calls.append(name)
            now += seconds

        return work

    monkeypatch.setattr(harness.time, "perf_counter", lambda: now)
    ours = Side("we", doing("ours", 3.0), prepare=doing("table", 50.0))
    found = measure(Comparison("toy", ours, Side("they", doing("peer", 2.0))), rounds=2)
    assert calls == ["table", "ours", "peer"] * 3  # once to warm up
    assert found.ours.wall == [3.0, 3.0] and found.peer.wall == [2.0, 2.0]
    assert found.ratio == 1.5


def test_the_ratio_is_the_median_of_the_rounds_not_of_the_seconds() -> None:
    # The second round met a busy machine on both sides.
    assert result([2.0, 40.0, 3.0], [1.0, 20.0, 1.0]).ratio == 2.0


def test_speed_counts_what_each_side_got_done() -> None:
    found = result([2.0], [1.0], amount=100, is_speed=True)
    assert found.ratio == 50.0
    assert found.ours.median == 0.02


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        ({}, None),
        ({"at_most": 2.0}, True),
        ({"at_most": 1.9}, False),
        ({"is_speed": True, "at_least": 0.5}, True),
        ({"is_speed": True, "at_least": 0.6}, False),
        ({"figures": (Figure("MB", 7.0),)}, None),
        ({"figures": (Figure("MB", 7.0, 7.0),)}, True),
        ({"figures": (Figure("MB", 7.0, 6.9),)}, False),
        ({"at_most": 2.0, "figures": (Figure("MB", 7.0, 6.9),)}, False),
    ],
)
def test_targets(asked: dict[str, Any], met: bool | None) -> None:
    found = result([2.0], [1.0], **asked)
    assert found.met is met
    assert found.as_dict()["met"] is met
    assert ("NO" in table([found])) is (met is False)


def test_the_table_names_both_sides() -> None:
    figures = (Figure("MB", 7.0, 6.0), Figure("Stress", 0.5))
    found = result([3.0], [2.0], at_most=1.5, notes=("Beside it.",), figures=figures)
    lines = table([found]).splitlines()
    words = " ".join(lines[2].split())
    assert words == "toy 3 s 2 s 1.50x as long 1.50 to 1.50 at most 1.5 NO"
    assert lines[4:] == [
        "toy: we, against they.",
        "toy: MB: 7, at most 6 (missed).",
        "toy: Stress: 0.5.",
        "toy: Beside it.",
    ]


def run(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    out = tmp_path / "results.json"
    code = program.main([*arguments, "--out", str(out), "--rounds", "1"])
    return code, json.loads(out.read_text())


def test_a_missed_target_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def slow(small: bool) -> Iterator[list[Comparison]]:
        yield [
            Comparison("toy", Side("we", lambda: sum(range(9999))), Side("they", int), at_most=1)
        ]

    monkeypatch.setattr(program, "BENCHMARKS", {"toy": (slow, 1)})
    code, content = run(tmp_path)
    assert code == 1
    assert [found["met"] for found in content["results"]] == [False]
    assert run(tmp_path, "--small")[0] == 0  # toy sizes say nothing about targets


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        program.main(["grid"])
    assert end.value.code == 2
    assert "unknown benchmark 'grid'; known: grid_noise" in capsys.readouterr().err


def test_facts_of_the_machine() -> None:
    facts = machine()
    assert facts["cores"] >= 1 and facts["memory_gib"] > 0 and facts["cpu"]
    assert facts["blas"] and facts["blas_threads"]
    assert len(facts["load_average"]) == 3
    assert set(facts["versions"]) == set(PACKAGES) and facts["versions"]["numpy"]
    json.dumps(facts)


@pytest.mark.parametrize("name", [name for name in program.BENCHMARKS if name != "release"])
def test_every_benchmark_runs(tmp_path: Path, name: str) -> None:
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed: make .venv/bench")
    code, content = run(tmp_path, name, "--small")
    assert code == 0
    for found in content["results"]:
        assert len(found["ours"]["wall"]) == len(found["peer"]["wall"]) == 1
        assert len(found["ours"]["cpu"]) == 1
        assert found["ratio"]["median"] > 0


@pytest.mark.slow
def test_the_bare_flow_has_the_shape_of_a_release(tmp_path: Path, prefect_api: str) -> None:
    with release.home_in(tmp_path):
        compared = release.comparison(tmp_path)
        compared.peer.work()
    real, bare = shape_of("flowers"), shape_of("bare flowers")
    for what in real:
        assert real[what] == bare[what]
    assert real["flows"] == ["audit", "gate", "ingest", "publish", "release", "sanitize"]
    assert {"begin", "attack shadows", "tell"} <= set(real["tasks"])
    assert {"markdown", "table"} <= set(real["artifacts"])


def shape_of(run_name: str) -> dict[str, list[str]]:
    """What the latest run of this name left on the server, by name or kind."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        ArtifactFilter,
        ArtifactFilterFlowRunId,
        FlowRunFilter,
        FlowRunFilterId,
        FlowRunFilterParentFlowRunId,
    )
    from prefect.client.schemas.sorting import FlowRunSort
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=10)  # task runs reach the server as events
    time.sleep(2)
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=200)
        parent = next(run for run in runs if run.name.startswith(run_name))
        inside = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[parent.id]))
        family = [parent, *client.read_flow_runs(flow_run_filter=inside)]
        ids = [run.id for run in family]
        tasks = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=ids)))
        kinds = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=ids))
        artifacts = client.read_artifacts(artifact_filter=kinds)
        return {
            "flows": sorted(client.read_flow(run.flow_id).name for run in family),
            "tasks": sorted(run.name.rpartition("-")[0].removesuffix(" flowers") for run in tasks),
            "artifacts": sorted(str(each.type) for each in artifacts),
        }

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
from benchmarks.report import PACKAGES, describe_machine, format_table

NEEDS = {"grid_noise": "opendp"}


def make_result(ours: list[float], peer: list[float], amount: int = 1, **targets: Any) -> Result:
    comparison = Comparison("toy", Side("we", list, amount), Side("they", list), **targets)
    return Result(comparison, Times("we", amount, ours, ours), Times("they", 1, peer, peer))


def test_measure_two_sides_alternate_and_preparation_untimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    now = 0.0

    def make_work(name: str, seconds: float) -> Any:
        def work() -> None:
            nonlocal now
            calls.append(name)
            now += seconds

        return work

    monkeypatch.setattr(harness.time, "perf_counter", lambda: now)
    ours = Side("we", make_work("ours", 3.0), prepare=make_work("table", 50.0))
    found = measure(Comparison("toy", ours, Side("they", make_work("peer", 2.0))), rounds=2)
    assert calls == ["table", "ours", "peer"] * 3  # one round warms up
    assert found.ours.wall == [3.0, 3.0] and found.peer.wall == [2.0, 2.0]
    assert found.ratio == 1.5


def test_ratio_busy_round_median_of_rounds() -> None:
    # In the second round the machine was busy for both sides.
    assert make_result([2.0, 40.0, 3.0], [1.0, 20.0, 1.0]).ratio == 2.0


def test_ratio_speed_counts_amount() -> None:
    found = make_result([2.0], [1.0], amount=100, is_speed=True)
    assert found.ratio == 50.0
    assert found.ours.median == 0.02


@pytest.mark.parametrize(
    ("targets", "met"),
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
def test_met_target_judged(targets: dict[str, Any], met: bool | None) -> None:
    found = make_result([2.0], [1.0], **targets)
    assert found.met is met
    assert found.as_dict()["met"] is met
    assert ("NO" in format_table([found])) is (met is False)


def test_format_table_names_both_sides() -> None:
    figures = (Figure("MB", 7.0, 6.0), Figure("Stress", 0.5))
    found = make_result([3.0], [2.0], at_most=1.5, notes=("A note.",), figures=figures)
    lines = format_table([found]).splitlines()
    words = " ".join(lines[2].split())
    assert words == "toy 3 s 2 s 1.50x as long 1.50 to 1.50 at most 1.5 NO"
    assert lines[4:] == [
        "toy: we, against they.",
        "toy: MB: 7, at most 6 (missed).",
        "toy: Stress: 0.5.",
        "toy: A note.",
    ]


def run(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    out = tmp_path / "results.json"
    code = program.main([*arguments, "--out", str(out), "--rounds", "1"])
    return code, json.loads(out.read_text())


def test_main_missed_target_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def slow(small: bool) -> Iterator[list[Comparison]]:
        yield [
            Comparison("toy", Side("we", lambda: sum(range(9999))), Side("they", int), at_most=1)
        ]

    monkeypatch.setattr(program, "BENCHMARKS", {"toy": (slow, 1)})
    code, content = run(tmp_path)
    assert code == 1
    assert [found["met"] for found in content["results"]] == [False]
    assert run(tmp_path, "--small")[0] == 0  # targets do not apply to small sizes


def test_main_unknown_benchmark_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        program.main(["grid"])
    assert end.value.code == 2
    assert "unknown benchmark 'grid'; known: grid_noise" in capsys.readouterr().err


def test_describe_machine_complete() -> None:
    facts = describe_machine()
    assert facts["cores"] >= 1 and facts["memory_gib"] > 0 and facts["cpu"]
    assert facts["blas"] and facts["blas_threads"]
    assert len(facts["load_average"]) == 3
    assert set(facts["versions"]) == set(PACKAGES) and facts["versions"]["numpy"]
    json.dumps(facts)


QUICK = ("additive_noise", "dct_fuzzy", "memory")
SMOKE = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in program.BENCHMARKS
    if name != "release"
]


@pytest.mark.parametrize("name", SMOKE)
def test_main_small_every_benchmark_runs(tmp_path: Path, name: str) -> None:
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed: make .venv/bench")
    code, content = run(tmp_path, name, "--small")
    assert code == 0
    for found in content["results"]:
        assert len(found["ours"]["wall"]) == len(found["peer"]["wall"]) == 1
        assert len(found["ours"]["cpu"]) == 1
        assert found["ratio"]["median"] > 0


@pytest.mark.slow
def test_empty_release_same_shape_as_release(tmp_path: Path, prefect_api: str) -> None:
    with release.use_temporary_home(tmp_path):
        comparison = release.build_comparison(tmp_path)
        comparison.peer.work()
    real, empty = read_run_shape("flowers"), read_run_shape("empty flowers")
    for what in real:
        assert real[what] == empty[what]
    assert real["flows"] == ["release"]
    assert {"begin release", "attack shadows", "log"} <= set(real["tasks"])
    assert {"markdown", "table"} <= set(real["artifacts"])


def read_run_shape(run_name: str) -> dict[str, list[str]]:
    """Return the flows, tasks and artifacts of the latest run of this name."""
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

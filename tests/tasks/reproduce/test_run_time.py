"""The wall time of measurements over several runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from studies.reproduction.measurement import Measurement
from studies.reproduction.page import describe_time
from studies.reproduction.results import Result
from tasks.reproduce.plan import Reproduction
from tasks.reproduce.run_time import RunTime, read_run_time, update_run_time

JOBS = [Measurement("salary_example", "", "{}", draws, False) for draws in (1, 2, 3)]


def test_update_run_time_of_a_continued_run_adds_both(tmp_path: Path) -> None:
    path = tmp_path / "reproduction" / "run_time.json"
    assert update_run_time(path, RunTime(0.5, 2, 0), 3) is None
    assert update_run_time(path, RunTime(60.0, 2, 2), 3) == RunTime(60.0, 2, 2)
    assert update_run_time(path, RunTime(30.0, 1, 1), 3) == RunTime(90.0, 2, 3)
    assert update_run_time(path, RunTime(0.5, 2, 0), 3) == RunTime(90.0, 2, 3)
    assert read_run_time(path) == RunTime(90.0, 2, 3)


def test_update_run_time_of_a_whole_run_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "run_time.json"
    update_run_time(path, RunTime(60.0, 2, 2), 3)
    assert update_run_time(path, RunTime(80.0, 2, 3), 3) == RunTime(80.0, 2, 3)


def test_describe_time_is_that_which_was_measured(tmp_path: Path) -> None:
    results = {job: Result({"q": [1.0]}, 30.0, "x") for job in JOBS}
    found = Reproduction((), results, tmp_path / "page.md", 3, 0, 60.0)
    assert describe_time(found) == ""
    whole = replace(found, time=RunTime(60.0, 2, 3))
    assert describe_time(whole) == "; 1.0 minutes on 2 processes"
    killed = replace(found, time=RunTime(60.0, 1, 2))
    assert describe_time(killed) == "; 1.0 minutes on 1 process for 2 of them"

"""A tune with real attacks, without Prefect."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppdm.cli.release_files import read_release_file
from ppdm.cli.tune import write_tuned_file
from ppdm.cli.tune_view import list_next_steps
from ppdm.forecast.release import foretell_release
from ppdm_core.audit.certifiable import compute_smallest_limits
from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.noise import Noise
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release
from tasks.tune import workers
from tasks.tune.page import build_view, render_page
from tasks.tune.plan import MIN_RECORDS, TuneOptions, check_options, make_plan
from tasks.tune.result import TuneResult, load_tune
from tasks.tune.search import Search
from tasks.tune.task import search_settings
from tests.support.contexts import create_home, open_run
from tests.support.small_release import Small, small_rows
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.integrity.events import append_event
from warehouse.integrity.history import check_history
from warehouse.runs import begin_run
from warehouse.tunes import (
    BEGUN,
    ENDED,
    Records,
    count_tried_settings,
    find_finished_tune,
    list_tune_events,
    store_tune,
)

FEW = TuneOptions(settings=2)


class Killed(BaseException):
    """What a kill looks like from inside."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.notify.prefect_artifacts.ProgressBar.show", lambda bar, share: None)
    monkeypatch.setattr(workers, "count_processes", lambda: 1)


def make_small(folder: Path, rows: int = 150) -> Small:
    small = Small(folder, "small", {}, small_rows(rows))
    del small.content["limits"]["knn_accuracy"]
    return small


def read_context(small: Small) -> ReleaseContext:
    small.write()
    create_home(small.home)
    return read_release_file(small.file)[1]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseContext, TuneResult]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.notify.prefect_artifacts.ProgressBar.show", lambda bar, share: None)
        patch.setattr(workers, "count_processes", lambda: 1)
        context = read_context(make_small(tmp_path_factory.mktemp("tuned")))
        return context, search_settings.fn(context, FEW)


def test_search_settings_small_table_measures_every_setting(
    tuned: tuple[ReleaseContext, TuneResult],
) -> None:
    _, result = tuned
    assert (result.tried, len(result.trials), result.records, result.number) == (2, 2, 150, 1)
    names = {score.name for trial in result.trials for score in trial.scores}
    assert {"record_linkage.rate", "known_pairs.breach_rate", "best_accuracy"} <= names
    checks = {finding.check for finding in result.trials[0].findings}
    assert {"amplification.record", "required.membership", "covered.label"} <= checks
    assert not any(check.startswith(("ledger", "decided", "self_test")) for check in checks)


def test_search_settings_ended_events_and_result_in_the_history(
    tuned: tuple[ReleaseContext, TuneResult],
) -> None:
    context, result = tuned
    with context.open_store().transaction("tests") as db:
        check_history(db)
        events = list_tune_events(db, "small")
        stored = load_tune(db, "small")
        assert count_tried_settings(db, "small", Records("", "")) == 2
        assert db.execute("select count(*) from ledger.entry").fetchall() == [(0,)]
        assert db.execute("select count(*) from meta.run").fetchall() == [(0,)]
    assert [kind for kind, _ in events] == [BEGUN, ENDED]
    assert events[0][1]["limits"]["record_linkage.rate"] == 0.2
    assert stored == result
    assert list((Path(context.home) / "private" / "tunes").glob("*.jsonl")) == []


def test_search_settings_finished_before_result_returned_and_nothing_recorded(
    tuned: tuple[ReleaseContext, TuneResult],
) -> None:
    context, result = tuned
    assert search_settings.fn(context, FEW) == result
    plan = make_plan(context, FEW)
    with context.open_store().transaction("tests") as db:
        assert [kind for kind, _ in list_tune_events(db, "small")] == [BEGUN, ENDED]
        assert find_finished_tune(db, "small", plan.identity) is not None
        assert find_finished_tune(db, "small", "another plan") is None
        assert find_finished_tune(db, "another table", plan.identity) is None


def test_find_finished_tune_event_since_then_measured_again(tmp_path: Path) -> None:
    context = read_context(make_small(tmp_path))
    with context.open_store().transaction("tests") as db:
        store_tune(db, "small", "plan", data="d", policy="p", outcome="none", result={})
        assert find_finished_tune(db, "small", "plan") is not None
        append_event(db, "small", "small-0001", "release begun", {})
        assert find_finished_tune(db, "small", "plan") is None


def test_foretell_release_tuned_table_limits_of_the_divided_level(
    tuned: tuple[ReleaseContext, TuneResult],
) -> None:
    context, _ = tuned
    before = compute_smallest_limits(context.policy, 150)
    found = foretell_release(context).facts["smallest_limits"]
    assert found == compute_smallest_limits(context.policy.judge_choice(2), 150)
    assert found["record_linkage.rate"] > before["record_linkage.rate"]


def test_tuned_file_and_page_earlier_settings_counted(
    tuned: tuple[ReleaseContext, TuneResult], tmp_path: Path
) -> None:
    context, result = tuned
    assert result.tried_in_all == 2
    assert ("with earlier tunes", "2") not in build_view(result).facts
    later = replace(result, tried_in_all=26, chosen=result.trials[0].setting.digest)
    assert ("with earlier tunes", "26") in build_view(later).facts
    assert any(
        "chosen on the data, 26 tried" in step
        for step in list_next_steps(later, tmp_path / "t.toml", tmp_path / "page.html")
    )
    written = tmp_path / "tuned.toml"
    write_tuned_file(Path(context.home).parent / "small.toml", written, later)
    assert "# settings: chosen on the data, 26 tried by `ppdm tune`" in written.read_text()


def test_tuned_table_under_another_name_settings_count(
    tuned: tuple[ReleaseContext, TuneResult],
) -> None:
    context, _ = tuned
    renamed = replace(context, dataset="renamed")
    release_id = begin_release.fn(renamed)
    store, run = open_run(renamed, release_id)
    with store.transaction("tests") as db:
        assert count_tried_settings(db, "renamed", Records("", run.source_digest)) == 2
        assert count_tried_settings(db, "renamed", Records("", "of another table")) == 0


def test_search_settings_nothing_private_in_events_or_page(
    tuned: tuple[ReleaseContext, TuneResult],
) -> None:
    context, result = tuned
    cells = {cell for row in small_rows(150) for name, cell in row.items() if name != "mood"}
    with context.open_store().transaction("tests") as db:
        events = json.dumps(list_tune_events(db, "small"))
    page = render_page(result, context.policy)
    assert not any(cell in events or cell in page for cell in cells)
    assert "<script" not in page


def test_build_view_file_written_command_names_it(tuned: tuple[ReleaseContext, TuneResult]) -> None:
    _, result = tuned
    result = replace(result, chosen=result.trials[0].setting.digest)
    commands = [step.command for step in build_view(result, "my table.toml").steps]
    assert "ppdm release 'my table.toml'" in commands
    assert not any("ppdm release" in step.command for step in build_view(result).steps)


def test_build_view_every_setting_has_a_row(tuned: tuple[ReleaseContext, TuneResult]) -> None:
    _, result = tuned
    assert len(build_view(result).rows) == 2


@pytest.mark.slow
def test_search_settings_rotation_every_broken_limit_named(tmp_path: Path) -> None:
    context = read_context(make_small(tmp_path).strict())
    result = search_settings.fn(context, FEW)
    assert result.choice is None
    named = {each.check: each.sentence for each in result.trade_offs}
    broken = set.intersection(*(set(trial.broken) for trial in result.trials))
    assert {"amplification.record", "known_pairs.breach_rate"} <= broken <= set(named)
    assert all(named[check].startswith(f"No setting tried keeps {check} ") for check in broken)
    assert "with a waiver for random_rotation (no bound)" in named["amplification.record"]
    assert all(sentence in render_page(result, context.policy) for sentence in named.values())


@pytest.mark.slow
def test_search_killed_in_the_middle_finished_settings_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = read_context(make_small(tmp_path))
    append = "tasks.tune.progress_file.checkpoint"

    def strike(name: str) -> None:
        raise Killed

    monkeypatch.setattr(append, strike)
    with pytest.raises(Killed):
        search_settings.fn(context, FEW)
    monkeypatch.setattr(append, lambda name: None)
    plan = make_plan(context, FEW)
    search = Search(plan, lambda share: None)
    before = search.done
    assert len(before) == 1
    total = sum(cost * each.settings for cost, each in zip(search.costs, plan.rounds, strict=True))
    assert search.expected == pytest.approx(total - search.costs[0])
    asked: list[str] = []
    ask_all = workers.Workers.ask_all

    def note(self: workers.Workers, items: list, *rest: object) -> object:
        asked.extend(item.digest for item in items)
        return ask_all(self, items, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(workers.Workers, "ask_all", note)
    result = search_settings.fn(context, FEW)
    ((digest, number),) = before
    assert number == 1
    assert asked.count(digest) == 1  # in the last round only
    assert result.number == 1
    with context.open_store().transaction("tests") as db:
        assert [kind for kind, _ in list_tune_events(db, "small")] == [BEGUN, ENDED]


@pytest.mark.extended
def test_make_plan_keys_are_not_those_of_a_verdict(tmp_path: Path) -> None:
    context = read_context(make_small(tmp_path))
    with context.open_store().transaction("tests") as db:
        begin_run(
            db,
            dataset="small",
            owner="o",
            source_digest="s",
            file_digest="f",
            code_version="c",
            pid=1,
            flow_run_id=None,
        )
        noise: Noise = dataset_noise(db, "small")
    plan = make_plan(context, FEW)
    assert plan.state.has_key
    purposes = ["audit", "derive", "digest", "rank"]
    assert not {plan.noise.subkey(p) for p in purposes} & {noise.subkey(p) for p in purposes}
    again = make_plan(context, FEW)
    assert again.identity == plan.identity
    assert again.noise.subkey("audit") == plan.noise.subkey("audit")
    assert np.array_equal(again.records.rows.whole.X, plan.records.rows.whole.X)


def test_make_plan_large_table_bounded_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.tune.plan.MAX_RECORDS", 100)
    plan = make_plan(read_context(make_small(tmp_path)), FEW)
    assert (plan.records.rows.n, plan.total) == (100, 150)
    assert plan.select_records(60).rows.n == 60


def test_make_plan_too_few_records_one_sentence(tmp_path: Path) -> None:
    context = read_context(make_small(tmp_path, rows=MIN_RECORDS - 1))
    with pytest.raises(BadInput, match="at least 50 records") as error:
        make_plan(context, FEW)
    assert error.value.remedy


@pytest.mark.extended
def test_search_settings_utility_of_no_setting_one_sentence(tmp_path: Path) -> None:
    context = read_context(make_small(tmp_path, rows=80))
    with pytest.raises(BadInput, match="does not apply to these settings"):
        search_settings.fn(context, TuneOptions(("correlation",), settings=1))


def test_check_options_policy_forbids_one_sentence(tmp_path: Path) -> None:
    context = replace(read_context(make_small(tmp_path)), may_tune=False)
    with pytest.raises(BadInput, match="forbids"):
        check_options(context, FEW)


@pytest.mark.parametrize(
    "options",
    [
        TuneOptions(settings=0),
        TuneOptions(settings=201),
        TuneOptions(methods=("pca_laplas",)),
        TuneOptions(utilities=("accuracy",)),
    ],
)
def test_check_options_unknown_or_out_of_range_one_sentence(
    tmp_path: Path, options: TuneOptions
) -> None:
    with pytest.raises(BadInput) as error:
        check_options(read_context(make_small(tmp_path)), options)
    assert error.value.remedy

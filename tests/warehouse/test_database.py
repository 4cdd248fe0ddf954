from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from ppdm_core.model.errors import BadInput, Defect
from tests.support.contexts import start_run
from tests.support.facts import make_validated_facts
from tests.support.forkserver import run_cli
from warehouse import database as store_module
from warehouse.database import Run, Store, find_run, list_runs
from warehouse.home import Home
from warehouse.runs import drop_old_tables, reject_run, remove_files
from warehouse.stage_facts import ValidatedFacts, read_facts, store_facts
from warehouse.stages import ALLOWED, FINISHED, ORDER, Stage, is_past

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.create()
    return Store(home)


def begin(store: Store, *, source: str = "s1", code: str = "c1") -> Run:
    run, _ = start_run(
        store,
        dataset="wine",
        owner="cellar",
        source_digest=source,
        file_digest="f1",
        code_version=code,
        pid=os.getpid(),
        flow_run_id=None,
    )
    return run


def events(store: Store) -> list[str]:
    with store.transaction() as db:
        rows = db.execute("select kind from meta.event order by number").fetchall()
    return [row[0] for row in rows]


def walk(store: Store, run: Run, *stages: str) -> None:
    for stage in stages:
        with store.advance(run, Stage(stage)):
            pass


def test_home_private_folder_owner_only(store: Store) -> None:
    assert store.home.private.stat().st_mode & 0o777 == 0o700


def test_stages_all_reachable() -> None:
    reached = {"created"}
    for stage in (*ORDER, Stage.PUBLISHED):
        assert stage in reached
        reached |= ALLOWED[stage]
    assert reached == set(ALLOWED)
    assert {"published", "refused", "no_change"} <= FINISHED


def test_advance_step_stored_with_event(store: Store) -> None:
    run = begin(store)
    with store.advance(run, Stage.RAW, rows=3) as change:
        change.db.execute('create table raw."wine_0001" (x integer)')
    assert events(store) == ["created", "raw"]
    with store.transaction() as db:
        found = find_run(db, "wine-0001")
    assert found is not None and found.stage == "raw"


def test_advance_failed_step_rolled_back(store: Store) -> None:
    run = begin(store)

    def fail() -> None:
        with store.advance(run, Stage.RAW) as change:
            change.db.execute('create table raw."wine_0001" (x integer)')
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert events(store) == ["created"]
    with store.transaction() as db:
        tables = db.execute("select * from information_schema.tables where table_schema = 'raw'")
        assert tables.fetchall() == []


@pytest.mark.extended
@pytest.mark.parametrize("stage", ["validated", "approved", "published", "created"])
def test_advance_skipped_stage_defect(store: Store, stage: str) -> None:
    run = begin(store)
    with (
        pytest.raises(Defect, match="cannot go from stage 'created'"),
        store.advance(run, Stage(stage)) as change,
    ):
        change.db.execute('create table raw."wine_0001" (x integer)')
    assert events(store) == ["created"]
    with store.transaction() as db:  # what the step wrote is gone with it
        tables = db.execute("select * from information_schema.tables where table_schema = 'raw'")
        assert tables.fetchall() == []


@pytest.mark.extended
def test_advance_finished_run_defect(store: Store) -> None:
    run = begin(store)
    walk(store, run, "raw", "validated", "sanitized", "audited", "refused")
    for stage in ALLOWED:
        with pytest.raises(Defect), store.advance(run, Stage(stage)):
            pass
    assert is_past("refused", "sanitized")
    assert not is_past("raw", "validated")


def test_begin_same_release_continues(store: Store) -> None:
    run = begin(store)
    walk(store, run, "raw", "validated")
    again = begin(store)
    assert (again.release_id, again.stage) == (run.release_id, "validated")
    assert events(store)[-1] == "continued"


@pytest.mark.extended
def test_begin_other_data_or_code_old_run_abandoned(store: Store) -> None:
    begin(store)
    other = begin(store, source="s2")
    assert other.release_id == "wine-0002"
    third = begin(store, source="s2", code="c2")
    assert third.release_id == "wine-0003"
    with store.transaction() as db:
        assert [run.stage for run in list_runs(db, "wine")] == ["abandoned", "abandoned", "created"]


def test_reject_run_only_own_tables_dropped(store: Store) -> None:
    run = begin(store)
    with store.advance(run, Stage.RAW) as change:
        change.db.execute('create table raw."wine_0001" (x integer)')
        change.db.execute('create table raw."wine_00010" (x integer)')
    reject_run(store, run.release_id, {"kind": "bad_input"})
    with store.transaction() as db:
        tables = db.execute(
            "select table_name from information_schema.tables where table_schema = 'raw'"
        ).fetchall()
        assert tables == [("wine_00010",)]


def clean_up(store: Store) -> None:
    """Drop and remove what the last task of a release of "wine" does, if it keeps one raw table."""
    with store.transaction() as db:
        ended = drop_old_tables(db, "wine", keep_raw=1)
    remove_files(store.home, "wine", ended)


@pytest.mark.extended
def test_drop_old_tables_dropped_facts_stay(store: Store) -> None:
    for source in ("s1", "s2"):
        run = begin(store, source=source)
        with store.advance(run, Stage.RAW) as change:
            change.db.execute(f'create table raw."{run.table}" (x integer)')
            store_facts(change.db, run, make_validated_facts(n=3))
        walk(store, run, "validated", "sanitized", "audited", "refused")
    clean_up(store)
    with store.transaction() as db:
        tables = db.execute(
            "select table_name from information_schema.tables where table_schema = 'raw'"
        ).fetchall()
        assert tables == [("wine_0002",)]
        assert read_facts(db, "wine-0001", ValidatedFacts) == make_validated_facts(n=3)


def test_remove_files_unrecorded_folder_removed(store: Store) -> None:
    run = begin(store)
    walk(store, run, "raw", "abandoned")
    folder = store.home.published / "wine" / "0001"
    folder.mkdir(parents=True)
    (store.home.published / "wine" / ".0001.tmp").mkdir()
    clean_up(store)
    assert list((store.home.published / "wine").iterdir()) == []


def test_transaction_other_schema_files_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(store)
    folder = store.home.root / "migrations"
    folder.mkdir()
    monkeypatch.setattr(store_module, "SCHEMA_FILES", folder)
    for name in (None, "0001_other.sql"):
        if name:
            (folder / name).write_text("select 1;")
        with pytest.raises(BadInput, match="another version") as caught, store.transaction():
            pass
        assert caught.value.exit_code == 2
        assert caught.value.file == str(store.home.database)


@pytest.mark.extended
def test_status_home_of_other_version_one_sentence(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    packed = FIXTURES / "home_of_another_version.duckdb.gz"
    home.database.write_bytes(gzip.decompress(packed.read_bytes()))
    before = home.database.read_bytes()
    result = run_cli(["status", "--home", str(home.root)])
    assert result.exit_code == 2, result
    (line,) = result.stderr.splitlines()
    assert "warehouse.duckdb" in line and "another version" in line and "PPDM_HOME" in line
    assert "Traceback" not in result.stdout + result.stderr
    assert home.database.read_bytes() == before


def test_migrations_opened_twice_run_once_in_order(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(store)
    folder = store.home.root / "migrations"
    shutil.copytree(store_module.SCHEMA_FILES, folder)
    (folder / "9999_more.sql").write_text("create table meta.more (x integer);")
    monkeypatch.setattr(store_module, "SCHEMA_FILES", folder)
    for _ in range(2):
        with store.transaction() as db:
            assert db.execute("select count(*) from meta.more").fetchall() == [(0,)]
            names = db.execute("select name from meta.migration order by number").fetchall()
            steps = sorted(path.stem for path in store_module.SCHEMA_FILES.glob("*.sql"))
            assert [name for (name,) in names] == steps
            assert (steps[0], steps[-1]) == ("0001_schema", "9999_more")


def test_events_detail_plain_json(store: Store) -> None:
    begin(store)
    with store.transaction() as db:
        details = db.execute("select detail from meta.event").fetchall()
    ((text,),) = details
    detail = json.loads(text)
    # The two who made it, the owner and this process, are sealed rows, which the event names.
    assert len(detail.pop("sealed")) == 2
    assert set(detail) == {"source", "file", "code"}

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from warehouse import database as store_module
from warehouse.database import Store
from warehouse.home import Home

READ = "import duckdb, sys; print(duckdb.connect(sys.argv[1]).execute(sys.argv[2]).fetchall())"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "it's a home")
    home.create()
    return Store(home)


def read_in_other_process(store: Store, query: str) -> str:
    """What another process reads, which it can only if this one has let the file go."""
    command = [sys.executable, "-c", READ, str(store.home.database), query]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def leave_a_row_and_fail(store: Store) -> None:
    with store.transaction() as db:
        db.execute("create table meta.stored (x integer)")
        db.execute("select * from range(100000)")  # not fetched
        raise KeyError


def test_transaction_releases_file_at_end(store: Store) -> None:
    with store.transaction() as db:
        db.execute("create table meta.stored as select 7 as x")
    assert read_in_other_process(store, "select x from meta.stored") == "[(7,)]"
    with store.transaction() as db:
        assert db.execute("select x from meta.stored").fetchall() == [(7,)]


def test_transaction_releases_file_after_error(store: Store) -> None:
    with pytest.raises(KeyError):
        leave_a_row_and_fail(store)
    assert read_in_other_process(store, "select count(*) from meta.event") == "[(0,)]"
    with store.transaction() as db, pytest.raises(duckdb.CatalogException):
        db.execute("select * from meta.stored")


def test_transaction_temporary_tables_dropped(store: Store) -> None:
    with store.transaction() as db:
        db.execute("create temp table private_rows as select 1")
    with store.transaction() as db:
        names = db.execute("select table_name from duckdb_tables() where table_name like 'p%'")
        assert names.fetchall() == []


def test_transaction_failed_detach_next_one_works(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.transaction() as db:
        db.execute("create table meta.stored as select 7 as x")
        # As if the last write to the file had failed.
        monkeypatch.setattr(store_module, "DETACH", "detach missing")
    monkeypatch.undo()
    with store.transaction() as db:
        assert db.execute("select x from meta.stored").fetchall() == [(7,)]


def test_transaction_two_homes_independent(store: Store, tmp_path: Path) -> None:
    other = Store(Home(tmp_path / "other"))
    other.home.create()
    with store.transaction() as db, other.transaction() as second:
        db.execute("create table meta.mine (x integer)")
        second.execute("create table meta.theirs (x integer)")
    assert read_in_other_process(store, "select count(*) from meta.mine") == "[(0,)]"
    assert read_in_other_process(other, "select count(*) from meta.theirs") == "[(0,)]"

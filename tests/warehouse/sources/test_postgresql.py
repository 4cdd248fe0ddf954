from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError
from tests.support.servers import PASSWORD, Postgresql, find_free_port
from warehouse.columns import Source
from warehouse.sources import SOURCES
from warehouse.sources import postgresql as module

READER = SOURCES["postgresql"]
Make = Callable[..., Source]


@pytest.fixture
def make(postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Returns a source of the server, with the right password in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    def build(url: str | None = None, **options: str) -> Source:
        return Source("postgresql", "", {"url": url or postgresql.url(), **options})

    return build


@pytest.fixture
def visits(postgresql: Postgresql) -> str:
    """A table with a key, whose rows were written in another order."""
    postgresql.run(
        "drop schema if exists clinic cascade",
        "create schema clinic",
        "create table clinic.visits (id int primary key, cost numeric(30, 2), who uuid)",
        "insert into clinic.visits select 1000 - i, i + 0.5, gen_random_uuid() "
        "from generate_series(1, 1000) i",
        "insert into clinic.visits values (5000, 12345678901234567890.25, null)",
    )
    return "clinic.visits"


def load(source: Source) -> list[tuple[Any, ...]]:
    with duckdb.connect(":memory:") as db:
        READER.load(db, source, "main.t")
        return db.execute("select * exclude (__ppdm_row) from main.t order by rowid").fetchall()


def read_error(source: Source, kind: type[PpdmError] = BadInput) -> PpdmError:
    with pytest.raises(kind) as caught:
        load(source)
    error = caught.value
    assert error.remedy
    assert "CANARY" not in f"{error}{error.as_dict()}"
    assert error.__context__ is None or error.__suppress_context__
    return error


def test_load_table_in_order_of_its_key_with_exact_numbers(make: Make, visits: str) -> None:
    rows = load(make(table=visits))
    assert [row[0] for row in rows] == [*range(1000), 5000]
    assert rows[-1][1:] == ("12345678901234567890.25", None)
    assert len(rows[0][2]) == 36


def test_load_view_and_query_same_rows(
    make: Make, visits: str, postgresql: Postgresql, tmp_path: Path
) -> None:
    postgresql.run(f"create view clinic.dear as select * from {visits} where cost > 500")
    query = tmp_path / "q.sql"
    query.write_text(f"-- dear ones\nselect * from {visits} where cost > 500 order by id;\n")
    assert sorted(load(make(table="clinic.dear"))) == load(make(query=str(query)))


def test_digest_query_text_counts(make: Make, visits: str, tmp_path: Path) -> None:
    query = tmp_path / "q.sql"
    digests = set()
    for text in (f"select * from {visits} order by id", f"select * from {visits} order by 1"):
        query.write_text(text)
        digests.add(READER.digest(make(query=str(query))))
    assert len(digests) == 2


@pytest.mark.extended
def test_read_rows_one_transaction_and_read_only(
    make: Make, visits: str, postgresql: Postgresql, tmp_path: Path
) -> None:
    with module.open_rows(make(table=visits)) as rows:
        postgresql.run(f"delete from {visits}")
        assert sum(batch.num_rows for batch in rows.read_batches()) == 1001
    query = tmp_path / "q.sql"
    query.write_text(f"with gone as (delete from {visits} returning *) select * from gone")
    assert "does not accept the query" in read_error(make(query=str(query))).message


def test_list_tables_only_readable_ones(make: Make, visits: str, postgresql: Postgresql) -> None:
    assert visits in READER.list_tables(make())
    make_user(postgresql, "stranger")
    assert visits not in READER.list_tables(make(postgresql.url(user="stranger")))


def make_user(postgresql: Postgresql, name: str) -> None:
    if not postgresql.run(f"select 1 from pg_roles where rolname = '{name}'"):
        postgresql.run(f"create role {name} login password '{PASSWORD}'")


def test_load_without_right_refused(make: Make, visits: str, postgresql: Postgresql) -> None:
    make_user(postgresql, "stranger")
    error = read_error(make(postgresql.url(user="stranger"), table=visits))
    assert "no right" in error.message


@pytest.mark.extended
@pytest.mark.parametrize(
    ("column", "words"),
    [("j json", "type json"), ("k int[]", "type _int4"), ("l bytea", "type bytea")],
)
def test_load_column_of_unknown_type_refused(
    column: str, words: str, make: Make, postgresql: Postgresql
) -> None:
    postgresql.run("drop table if exists odd", f"create table odd (a int, {column})")
    error = read_error(make(table="odd"))
    assert words in error.message and error.column == column.split()[0]


def test_load_missing_table_refused(make: Make) -> None:
    assert "'none' is not in 127.0.0.1/postgres" in read_error(make(table="none")).message


def test_load_unreachable_server_refused(make: Make) -> None:
    url = f"postgresql://admin@127.0.0.1:{find_free_port()}/postgres"
    assert "cannot be reached" in read_error(make(url, table="t")).message


@pytest.mark.parametrize("place", ["environment", "file"])
def test_load_wrong_password_refused_without_showing_it(
    place: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make(table="t")
    if place == "file":
        file = tmp_path / "password.toml"
        file.touch(mode=0o600)
        file.write_text('password = "CANARYwrong"\n')
        source = make(table="t", credentials=str(file))
    else:
        monkeypatch.setenv("PGPASSWORD", "CANARYwrong")
    assert "refuses the login" in read_error(source).message


def test_load_password_of_file_used(
    make: Make, visits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "password.toml"
    file.touch(mode=0o600)
    file.write_text(f'password = "{PASSWORD}"\n')
    assert len(load(make(table=visits, credentials=str(file)))) == 1001


@pytest.mark.extended
@pytest.mark.parametrize("way", ["load", "copy", "digest"])
def test_read_server_gone_in_the_middle_is_trouble(
    way: str, make: Make, postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql.run(
        "drop table if exists big",
        "create table big as select i, repeat('x', 200) as t from generate_series(1, 400000) i",
    )

    class Dying(module.ServerRows):
        def __init__(self, batches: Any, options: Any) -> None:
            super().__init__(batches, options)
            postgresql.run(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and backend_type = 'client backend'"
            )

    monkeypatch.setattr(module, "ServerRows", Dying)
    source = make(table="big")
    work = {"load": load, "copy": lambda each: READER.copy(each, tmp_path), "digest": READER.digest}
    with pytest.raises(MachineTrouble, match="is gone") as caught:
        work[way](source)
    assert caught.value.exit_code == 5


LOCAL = "postgresql://a@localhost/d"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "mysql://a@localhost/CANARY", "table": "t"}, "is not a URL"),
        ({"url": "postgresql://a@localhost", "table": "t"}, "names no database"),
        ({"url": "postgresql://a@localhost/d"}, "either a table or a query"),
        ({"url": LOCAL, "table": "t", "query": "q"}, "either a table or a query"),
        ({"table": "t"}, "needs a url"),
    ],
)
def test_check_options_wrong_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        READER.check_options("", options)
    assert "CANARY" not in f"{caught.value}{caught.value.as_dict()}"

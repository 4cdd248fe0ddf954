"""What every kind of source must do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from ppdm_core.model.errors import BadInput
from tests.contract.cases import SourceCase
from warehouse.columns import Source
from warehouse.sources import SOURCES, Reader
from warehouse.sources.guess import guess_source
from warehouse.sql import column_types

CANARY = "CANARY7391"
TABLE = 'raw."t 1"'
ODD_NAMES = ["a b", "c.d", 'q"x', "it's", "naïve ☃", "select", "{0}"]
MIXED = (
    "select i as place, (i * 7919) % {n} as mixed, repeat('x', 40) as filler from range({n}) r(i)"
)


def write_source(reader: Reader, case: SourceCase, folder: Path, query: str) -> Source:
    """Return a source of this kind with the rows of a query."""
    if case.server is not None:
        with duckdb.connect(":memory:") as db:
            case.server.ingest(db.sql(query).to_arrow_table(), case.options["table"])
        return build_source(reader, case, "")
    path = folder / f"t{reader.endings[0]}"
    path.unlink(missing_ok=True)
    with duckdb.connect(":memory:") as db:
        db.execute(f"create table t as {query}")
        if isinstance(case.write, str):
            db.execute(case.write.format(path=path))
        else:
            case.write(db.sql("select * from t").to_arrow_table(), path)
    return build_source(reader, case, str(path))


def build_source(reader: Reader, case: SourceCase, path: str, **options: str) -> Source:
    server = {} if case.server is None else {"url": case.server.url()}
    return Source(reader.name, path, {**server, **case.options, **options})


@contextmanager
def open_database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 4}) as db:
        db.execute("create schema raw")
        db.execute("begin")
        yield db


def check_refused(reader: Reader, source: Source) -> None:
    with open_database() as db, pytest.raises(BadInput) as caught:
        reader.load(db, source, TABLE)
    error = caught.value
    assert error.remedy
    if source.path:
        assert error.file == source.path
    assert CANARY not in f"{error}{error.as_dict()}"
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


def check_missing_file_refused(reader: Reader, case: SourceCase, folder: Path) -> None:
    for path in (folder / "none", folder):
        source = build_source(reader, case, str(path))
        if case.server is not None:
            source = build_source(reader, case, "", table="none")
        check_refused(reader, source)
        with pytest.raises(BadInput):
            reader.digest(source)


def check_bad_file_refused(reader: Reader, case: SourceCase, folder: Path) -> None:
    if case.server is not None:
        source = write_source(reader, case, folder, "select 1 as a")
        case.server.run(f"alter table t add b json default '\"{CANARY}\"'")
        return check_refused(reader, source)
    path = folder / "bad"
    for content in (b"", b"\0\xff" + CANARY.encode() * 1000):
        path.write_bytes(content)
        check_refused(reader, build_source(reader, case, str(path)))


def check_few_rows_refused(reader: Reader, case: SourceCase, folder: Path) -> None:
    for n in (0, 1):
        query = f"select i as a, '{CANARY}' as b from range({n}) r(i)"
        check_refused(reader, write_source(reader, case, folder, query))


def check_reserved_name_refused(reader: Reader, case: SourceCase, folder: Path) -> None:
    if not case.has_underscores:
        return
    query = f"select i as __PPDM_row, '{CANARY}' as b from range(3) r(i)"
    check_refused(reader, write_source(reader, case, folder, query))


def list_names(case: SourceCase) -> list[str]:
    return ODD_NAMES if case.has_any_name else ["select", "b", "a"]


def check_odd_names_read(reader: Reader, case: SourceCase, folder: Path) -> None:
    names = list_names(case)
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    query = f"select {', '.join(f'i as {name}' for name in quoted)} from range(2) r(i)"
    source = write_source(reader, case, folder, query)
    with open_database() as db:
        reader.load(db, source, TABLE)
        assert list(column_types(db, TABLE)) == names
        assert len(db.execute(f"select {', '.join(quoted)} from {TABLE}").fetchall()) == 2


def check_names_as_loaded(reader: Reader, case: SourceCase, folder: Path) -> None:
    names = list_names(case)
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    query = f"select {', '.join(f'i as {name}' for name in quoted)} from range(2) r(i)"
    assert reader.read_names(write_source(reader, case, folder, query)) == names


def check_rows_in_order(reader: Reader, case: SourceCase, folder: Path) -> None:
    source = write_source(reader, case, folder, MIXED.format(n=case.rows))
    with open_database() as db:
        reader.load(db, source, TABLE)
        db.execute("commit")  # rows of an open transaction have other ids
        moved = "count(*) filter (__ppdm_row <> place::bigint or rowid <> __ppdm_row)"
        lost = f"{case.rows} - count(distinct mixed::bigint)"
        assert db.execute(f"select {moved}, {lost} from {TABLE}").fetchall() == [(0, 0)]


def check_rolled_back(reader: Reader, case: SourceCase, folder: Path) -> None:
    source = write_source(reader, case, folder, "select i as a from range(3) r(i)")
    with open_database() as db:
        reader.load(db, source, TABLE)
        db.execute("rollback")
        assert db.execute("select count(*) from duckdb_tables()").fetchall() == [(0,)]


def check_digest_follows_content(reader: Reader, case: SourceCase, folder: Path) -> None:
    n = min(case.rows, 100_000)
    query = f"select i as a, i * {{}} as b from range({n}) r(i)"
    source = write_source(reader, case, folder, query.format("0.5e0"))
    before = reader.digest(source)
    assert reader.digest(source) == before
    changed = query.format(f"if(i = {n - 1}, 0.25e0, 0.5e0)")
    assert reader.digest(write_source(reader, case, folder, changed)) != before


def check_copy_same_content(reader: Reader, case: SourceCase, folder: Path) -> None:
    source = write_source(reader, case, folder, MIXED.format(n=min(case.rows, 70_000)))
    expected = reader.digest(source)
    (folder / "copy").mkdir()
    copy, digest = reader.copy(source, folder / "copy")
    assert Path(copy.path).parent == folder / "copy"
    assert reader.find_copy(source, folder / "copy") == copy
    if source.path:
        Path(source.path).unlink()
        assert reader.digest(copy) == expected
    assert digest == expected
    with open_database() as db:
        SOURCES[copy.kind].load(db, copy, TABLE)
        found = db.execute(f"select count(*), sum(place::bigint * __ppdm_row) from {TABLE}")
        n = min(case.rows, 70_000)
        assert found.fetchall() == [(n, sum(i * i for i in range(n)))]


def check_found_by_ending(reader: Reader, case: SourceCase, folder: Path) -> None:
    source = write_source(reader, case, folder, "select i as a, i as b from range(3) r(i)")
    table = source.options.get("table")
    assert guess_source(source.path or source.options["url"], table) == source

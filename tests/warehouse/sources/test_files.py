from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ppdm_core.model.errors import BadInput
from warehouse.columns import Source
from warehouse.sources import SOURCES
from warehouse.sources.guess import guess_source
from warehouse.sql import column_types

TABLE = "main.t"
ROWS = 10  # of each file


def write_files(folder: Path, kind: str, count: int) -> Source:
    """Return a source of files whose rows are numbered throughout, written in another order."""
    folder.mkdir(parents=True)
    with duckdb.connect(":memory:") as db:
        for i in reversed(range(count)):
            path = folder / f"part-{i:04d}.{kind}"
            rows = f"select {i * ROWS} + i as place, i % 3 as c from range({ROWS}) r(i)"
            db.execute(f"copy ({rows}) to '{path}' (format {kind})")
    return Source(kind, str(folder))


def load(source: Source) -> list[tuple[int, int]]:
    with duckdb.connect(":memory:") as db:
        SOURCES[source.kind].load(db, source, TABLE)
        query = f"select __ppdm_row, place::bigint from {TABLE} order by rowid"
        return db.execute(query).fetchall()


def read_error(source: Source) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load(source)
    assert caught.value.remedy and caught.value.file
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_load_folder_of_200_files_in_order(kind: str, tmp_path: Path) -> None:
    source = write_files(tmp_path / "t", kind, 200)
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / ".hidden.csv").write_text("x")
    assert load(source) == [(i, i) for i in range(200 * ROWS)]
    assert SOURCES[kind].read_names(source) == ["place", "c"]


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_copy_pattern_same_rows_and_digest(kind: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_files(tmp_path / "t" / name, kind, 3)
    source, reader = Source(kind, f"{tmp_path}/t/*/part-000[01].{kind}"), SOURCES[kind]
    work = tmp_path / "work"
    work.mkdir()
    copy, digest = reader.copy(source, work)
    assert digest == reader.digest(source) == reader.digest(copy)
    assert reader.find_copy(source, work) == copy
    assert load(copy) == load(source) and len(load(copy)) == 4 * ROWS
    (tmp_path / "t" / "a" / f"part-0001.{kind}").unlink()
    assert reader.digest(source) != digest


def test_load_wider_numbers_in_one_file_keeps_values(tmp_path: Path) -> None:
    source = write_files(tmp_path / "t", "parquet", 2)
    with duckdb.connect(":memory:") as db:
        rows = "select 20 + i + 0.5e0 as place, null::bigint as c from range(3) r(i)"
        db.execute(f"copy ({rows}) to '{source.path}/part-0002.parquet' (format parquet)")
        SOURCES["parquet"].load(db, source, TABLE)
        assert column_types(db, TABLE) == {"place": "DOUBLE", "c": "BIGINT"}
        assert db.execute(f"select max(place) from {TABLE}").fetchall() == [(22.5,)]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("select 1 as place", "other columns"),
        ("select 'a' as place, 1 as c", "another type"),
    ],
)
def test_load_other_columns_refused(rows: str, words: str, tmp_path: Path) -> None:
    source = write_files(tmp_path / "t", "parquet", 2)
    with duckdb.connect(":memory:") as db:
        db.execute(f"copy ({rows}) to '{source.path}/part-0001.parquet' (format parquet)")
    error = read_error(source)
    assert words in error.message and "part-0001.parquet" in error.message
    assert error.file == f"{source.path}/part-0001.parquet"


def test_load_columns_in_other_order_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("place,c\n0,x\n1,x\n")
    (tmp_path / "b.csv").write_text("c,place\nx,2\n")
    assert load(Source("csv", f"{tmp_path}/*.csv")) == [(0, 0), (1, 1), (2, 2)]


def test_load_bad_part_named(tmp_path: Path) -> None:
    source = write_files(tmp_path / "t", "csv", 3)
    (tmp_path / "t" / "part-0001.csv").write_bytes(b"place,c\n1,\xff\n")
    error = read_error(source)
    assert error.message == "The source part-0001.csv is not UTF-8: see line 2."


@pytest.mark.parametrize("name", ["none-*.csv", "empty"])
def test_load_no_file_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "No file is found" in read_error(Source("csv", str(tmp_path / name))).message


def test_load_partitioned_folder_refused(tmp_path: Path) -> None:
    write_files(tmp_path / "t" / "year=2024", "parquet", 1)
    assert "column=value" in read_error(Source("parquet", str(tmp_path / "t"))).message


def test_load_file_named_as_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("place\n0\n1\n")
    (tmp_path / "a1.csv").write_text("place\n5\n6\n")
    assert load(Source("csv", str(tmp_path / "a[1].csv"))) == [(0, 0), (1, 1)]


def test_guess_source_folder_and_pattern(tmp_path: Path) -> None:
    source = write_files(tmp_path / "t", "parquet", 2)
    assert guess_source(source.path, None) == source
    pattern = f"{source.path}/*.parquet"
    assert guess_source(pattern, None) == Source("parquet", pattern)
    (tmp_path / "t" / "x.csv").write_text("a\n1\n2\n")
    with pytest.raises(BadInput, match="several kinds"):
        guess_source(source.path, None)

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ppdm_core.model.errors import BadInput, Defect, MachineTrouble, PpdmError
from warehouse.columns import Source
from warehouse.sources import SOURCES
from warehouse.sql import column_types

CANARY = "CANARY7391"
TABLE = 'raw."t 1"'
Loaded = tuple[list[str], list[tuple[object, ...]]]


@pytest.fixture
def db() -> duckdb.DuckDBPyConnection:
    cursor = duckdb.connect(":memory:").cursor()
    cursor.execute("create schema raw")
    cursor.execute("begin")
    return cursor


@pytest.fixture
def read(db: duckdb.DuckDBPyConnection) -> Callable[[Source], Loaded]:
    def read(source: Source) -> Loaded:
        SOURCES[source.kind].load(db, source, TABLE)
        names = ["__ppdm_row", *column_types(db, TABLE)]
        return names, db.execute(f"select * from {TABLE} order by __ppdm_row").fetchall()

    return read


Read = Callable[[Source], Loaded]


def csv(folder: Path, content: bytes | str, name: str = "t.csv", **options: str) -> Source:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Source("csv", str(path), options=options)


def catch_refusal(read: Read, source: Source, kind: type[PpdmError] = BadInput) -> PpdmError:
    with pytest.raises(kind) as caught:
        read(source)
    error = caught.value
    assert error.file == source.path
    assert error.remedy
    assert CANARY not in f"{error}{error.as_dict()}"
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return error


def test_csv_cells_read_as_text_empty_as_null(tmp_path: Path, read: Read) -> None:
    names, rows = read(csv(tmp_path, 'id,x,y\n007,1.50,\n008,"",b c\n'))
    assert names == ["__ppdm_row", "id", "x", "y"]
    assert rows == [(0, "007", "1.50", None), (1, "008", None, "b c")]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("a;b\n1,5;2\n3,5;4\n", {}),
        ("a\tb\n1,5\t2\n3,5\t4\n", {}),
        ("a,b\r\n'1,5',2\r\n'3,5',4\r\n", {"quote": "'"}),
        ("a~b\n1,5~2\n3,5~4\n", {"delimiter": "~"}),
        ("\ufeffa;b\n1,5;2\n3,5;4", {}),
    ],
)
def test_csv_dialects_same_cells(
    tmp_path: Path, read: Read, content: str, options: dict[str, str]
) -> None:
    assert read(csv(tmp_path, content, **options)) == (
        ["__ppdm_row", "a", "b"],
        [(0, "1,5", "2"), (1, "3,5", "4")],
    )


def test_csv_quotes_after_sniffed_part_read(tmp_path: Path, read: Read) -> None:
    body = "".join(f"{i},plain\n" for i in range(30_000))
    _, rows = read(csv(tmp_path, f'a,b\n{body}last,"two, words ""quoted"""\n'))
    assert rows[-1] == (30_000, "last", 'two, words "quoted"')


def test_csv_gzip_file_name_with_wildcards_read(tmp_path: Path, read: Read) -> None:
    csv(tmp_path, "a,b\n9,9\n9,9\n", "x1.csv")
    source = csv(tmp_path, gzip.compress(b"a,b\n1,2\n3,4\n"), "x[1]*?.csv.gz")
    assert read(source)[1] == [(0, "1", "2"), (1, "3", "4")]


def test_csv_partition_folder_no_extra_column(tmp_path: Path, read: Read) -> None:
    (tmp_path / "year=2020").mkdir()
    source = csv(tmp_path / "year=2020", "a,b\n1,2\n3,4\n")
    assert read(source)[0] == ["__ppdm_row", "a", "b"]


BAD_FILES = {
    "empty": (b"", "is empty"),
    "only blanks": (b"\n  \n", "is empty"),
    "header only": (b"a,b\n", "a header but no rows"),
    "one row": (f"a,b\n{CANARY},2\n".encode(), "only one row"),
    "duplicates": (b"x,a,A\n1,2,3\n1,2,3\n", "Columns 2 and 3"),
    "no header": (f"{CANARY},{CANARY}\n1,2\n3,4\n".encode(), "Columns 1 and 2"),
    "no name": (b"a,,c\n1,2,3\n1,2,3\n", "Column 2 of t.csv has no name"),
    "reserved": (b"a,__PPDM_row\n1,2\n3,4\n", "Column 2 of t.csv starts with '__ppdm_'"),
    "blank first line": (b"\na,b\n1,2\n3,4\n", "starts with an empty line"),
    "too many fields": (f"a,b\n1,2\n{CANARY},4,5\n".encode(), "not a table: see line 3"),
    "too few fields": (f"a,b\n1,2\n{CANARY}\n".encode(), "not a table: see line 3"),
    "open quote": (f'a,b\n1,2\n"{CANARY},4\n5,6\n'.encode(), "not a table"),
    "a letter": (f"Dear {CANARY},\n\nhow, are, you,\nsir\n".encode(), "t.csv"),
    "binary": (b"a,b\n1,\0\x01\xff\xfe2\n" + CANARY.encode(), "binary data"),
    "latin-1": (f"a,b\n1,2\n{CANARY},é\n".encode("latin-1"), "not UTF-8: see line 3"),
    "latin-1 header": ("é,b\n1,2\n3,4\n".encode("latin-1"), "not UTF-8: see line 1"),
    "utf-16": (f"a,b\n{CANARY},2\n3,4\n".encode("utf-16"), "not UTF-8"),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", BAD_FILES)
def test_csv_bad_file_refused(tmp_path: Path, read: Read, case: str) -> None:
    content, words = BAD_FILES[case]
    assert words in catch_refusal(read, csv(tmp_path, content)).message


def test_csv_bad_byte_far_down_line_named(tmp_path: Path, read: Read) -> None:
    lines = [b"%d,x" % i for i in range(300_000)]
    lines[280_000] = CANARY.encode() + b",\xe9"
    error = catch_refusal(read, csv(tmp_path, b"a,b\n" + b"\n".join(lines) + b"\n"))
    assert "see line 280002." in error.message


@pytest.mark.parametrize("cut", [20, 60])
def test_csv_damaged_gzip_refused(tmp_path: Path, read: Read, cut: int) -> None:
    content = gzip.compress(b"a,b\n" + os.urandom(2000).hex().encode() + b",1\n2,3\n")
    source = csv(tmp_path, content[:-cut], "t.csv.gz")
    assert "damaged gzip" in catch_refusal(read, source).message
    assert "damaged gzip" in catch_refusal(read, csv(tmp_path, "a,b\n1,2\n", "u.csv.gz")).message


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_sources_other_kind_than_declared_bad_input(tmp_path: Path, read: Read, kind: str) -> None:
    path = csv(tmp_path, f"a,b\n{CANARY},2\n3,4\n" * 1000).path
    assert "'kind' in [source]" in str(catch_refusal(read, Source(kind, path, {"table": "t"})))


def test_parquet_types_preserved_duplicate_names_refused(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1.5, None], "n": [1, 2], "s": ["a", ""]}), path)
    assert read(Source("parquet", str(path)))[1] == [(0, 1.5, 1, "a"), (1, None, 2, "")]
    both = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["x", "X"])
    pq.write_table(both, path)
    assert "Columns 1 and 2" in catch_refusal(read, Source("parquet", str(path))).message


def duckdb_file(folder: Path, statement: str) -> Source:
    with duckdb.connect(str(folder / "o.duckdb")) as other:
        other.execute(statement)
    return Source("duckdb", str(folder / "o.duckdb"), {"table": "t"})


def test_duckdb_types_preserved(tmp_path: Path, read: Read) -> None:
    made = "i::hugeint as h, i / 4 as x, 'a' || i as s, date '2020-01-01' as d, null::integer as e"
    names, rows = read(duckdb_file(tmp_path, f"create table t as select {made} from range(2) r(i)"))
    assert names == ["__ppdm_row", "h", "x", "s", "d", "e"]
    assert [row[:4] for row in rows] == [(0, 0, 0.0, "a0"), (1, 1, 0.25, "a1")]


def test_duckdb_table_found_by_schema(tmp_path: Path, read: Read) -> None:
    source = duckdb_file(tmp_path, "create schema s")
    duckdb_file(tmp_path, "create table s.t as select 2 as b from range(2)")
    duckdb_file(tmp_path, "create view v as select 1")
    for name in ("t", "v", "S.T "):
        assert (
            "is not in"
            in catch_refusal(read, Source("duckdb", source.path, {"table": name})).message
        )
    assert read(Source("duckdb", source.path, {"table": "s.t"}))[0] == ["__ppdm_row", "b"]


def test_duckdb_file_in_use_machine_trouble(tmp_path: Path, read: Read) -> None:
    source = duckdb_file(tmp_path, "create table t as select 1 as a from range(2)")
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, source.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        error = catch_refusal(read, source, MachineTrouble)
        holder.communicate(b"\n")
    assert "in use" in error.message
    assert read(source)[1] == [(0, 1), (1, 1)]


def test_digest_file_equals_sha256_of_bytes(tmp_path: Path) -> None:
    source = csv(tmp_path, "a,b\n1,2\n")
    assert SOURCES["csv"].digest(source) == hashlib.sha256(b"a,b\n1,2\n").hexdigest()


@pytest.mark.extended
def test_digest_table_depends_on_content_only(tmp_path: Path) -> None:
    def digest(statement: str, *more: str) -> str:
        path = tmp_path / "o.duckdb"
        path.unlink(missing_ok=True)
        source = duckdb_file(tmp_path, statement)
        for each in more:
            duckdb_file(tmp_path, each)
        return SOURCES["duckdb"].digest(source)

    values = "create table t as select * from (values {}) v(a, b)"
    same = digest(values.format("('x', 'y'), (null, 'z')"))
    assert same == digest(values.format("('x', 'y'), (null, 'z')"), "create table u as select 1")
    others = [
        digest(values.format("(null, 'z'), ('x', 'y')")),
        digest(values.format("('x', 'y'), ('', 'z')")),
        digest(values.format("('x', 'y'), ('-', 'z')")),
        digest(values.format("('xy', ''), (null, 'z')")),
        digest(values.format("('x', 'y'), (null, 'z')").replace("(a, b)", "(a, c)")),
        digest("create table t as select 1 as a"),
        digest("create table t as select 1::bigint as a"),
    ]
    assert len({same, *others}) == 8


def test_load_error_of_own_database_defect(tmp_path: Path, db: duckdb.DuckDBPyConnection) -> None:
    db.execute(f"create table {TABLE} (a integer)")
    with pytest.raises(Defect) as caught:
        SOURCES["csv"].load(db, csv(tmp_path, f"a,b\n{CANARY},2\n3,4\n"), TABLE)
    assert CANARY not in str(caught.value)

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import warehouse.validated_table
from ppdm_core.model.errors import Defect
from ppdm_core.model.schema import Categorical, Numeric
from warehouse.column_survey import list_survey_figures
from warehouse.columns import Column, Source
from warehouse.integrity.home_key import HomeKey
from warehouse.raw_profile import profile
from warehouse.same_data.cell_digests import CellDigests
from warehouse.same_data.row_digests import read_row_digests
from warehouse.scratch import open_scratch_database
from warehouse.sources import SOURCES
from warehouse.validated_table import Validated, write_validated

ODD = "o\"d'd. {x} ☃"
Rows = list[tuple[Any, ...]]


def key_of(identities: Sequence[bytes]) -> list[bytes]:
    return [hashlib.sha256(identity).digest()[:16] for identity in identities]


def number(name: str, **settings: Any) -> Column:
    return Column(name, "feature", "numeric", **{"low": 0.0, "high": 10.0, **settings})


def category(name: str, role: Any = "feature", **settings: Any) -> Column:
    return Column(name, role, "categorical", categories=("b", "it's", "a"), **settings)


def write_checked(
    db: duckdb.DuckDBPyConnection,
    columns: tuple[Column, ...],
    record_id: str | None,
    keys: Any = key_of,
) -> Validated:
    """Write the validated table `checked` from the table `raw`."""
    figures = profile(db, "raw", columns, record_id, more=list_survey_figures(columns))
    return write_validated(db, "raw", "checked", columns, figures, record_id, keys)


def write_rows(
    types: str,
    rows: Rows,
    *columns: Column,
    record_id: str | None = None,
    keys: Any = key_of,
) -> tuple[Validated, list[str], Rows]:
    with duckdb.connect(":memory:") as db:
        db.execute("begin")
        db.execute(f"create table raw (__ppdm_row bigint, {types})")
        marks = ", ".join("?" * (len(rows[0]) + 1))
        for position, row in enumerate(rows):
            db.execute(f"insert into raw values ({marks})", [position, *row])
        result = write_checked(db, columns, record_id, keys)
        db.execute("commit")
        written = db.execute("select * from checked order by __ppdm_row").fetchall()
        return result, [str(column[0]) for column in db.description or ()], written


def test_write_validated_small_table_equals_expected() -> None:
    columns = (
        Column("id", "identifier"),
        number("x", missing="median"),
        category("c"),
        Column("notes", "exclude"),
        category("y", "label"),
        number(ODD, low="from_data", high="from_data", missing="drop_row"),
    )
    quoted = '"' + ODD.replace('"', '""') + '"'
    result, names, rows = write_rows(
        f"id varchar, x varchar, c varchar, notes varchar, y varchar, {quoted} varchar",
        [
            ("007", "12", "a", "n", "b", "3"),
            ("7", None, "it's", "n", "a", "-4"),
            ("é", "9", "b", "n", "a", None),
            (" 7", "-0.0", "b", "n", "a", "1.5"),
            ("z", "2", "b", "n", "a", "0"),
        ],
        *columns,
        record_id="id",
    )
    keys = key_of([b"007", b"7", b" 7", b"z"])
    assert names == ["__ppdm_row", "__ppdm_key", "x", "c", ODD, "__ppdm_label", "__ppdm_id_0"]
    assert rows == [
        (0, keys[0], 10.0, 2, 3.0, 0, 7.0),
        (1, keys[1], 2.0, 1, -4.0, 2, 7.0),  # median of 12, -0 and 2: the dropped row has no say
        (2, keys[2], 0.0, 0, 1.5, 2, 7.0),
        (3, keys[3], 2.0, 0, 0.0, 2, None),
    ]
    assert math.copysign(1.0, rows[2][2]) == 1.0
    assert (result.n, result.changes.dropped_rows) == (4, 1)
    assert result.changes.clamped == {"x": 1}
    assert result.changes.imputed == {"x": 1}
    assert result.schema.numeric == (
        Numeric("x", 0, 10, imputed=True),
        Numeric(ODD, -4.0, 3.0, from_data=True),
    )
    assert result.schema.drops_rows
    assert result.schema.categorical == (Categorical("c", ("b", "it's", "a")),)
    assert result.schema.label == Categorical("y", ("b", "it's", "a"))


@pytest.mark.parametrize("batch_rows", [3, 1000])
def test_write_validated_digests_written_of_kept_rows(
    monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    """In the same pass, and without a change of the validated table."""
    monkeypatch.setattr(warehouse.validated_table, "BATCH_ROWS", batch_rows)
    columns = (number("x", missing="drop_row"), Column("notes", "exclude"))
    key, tables = HomeKey(bytes(32)), []
    with open_scratch_database() as db:
        select = "select i as __ppdm_row, nullif(sin(i), 0) as x, 'n' || i % 3 as notes"
        db.execute(f"create table raw as {select} from range(10) t(i)")
        figures = profile(db, "raw", columns, None, more=list_survey_figures(columns))
        for digests in (None, CellDigests(db, "raw", columns, key)):
            write_validated(db, "raw", "checked", columns, figures, None, key_of, digests)
            tables.append(db.execute("from checked order by all").fetchall())
            db.execute("drop table checked")
        assert digests is not None
        found = read_row_digests(digests)
    assert tables[0] == tables[1]
    assert [bytes(each) for each in found.keys] == [row[1] for row in tables[0]]
    assert len(np.unique(found.cells[:, 0])) == 9 and len(np.unique(found.cells[:, 1])) == 3


def test_write_validated_unlisted_categories_rows_dropped() -> None:
    columns = (category("y", "label", outside="drop_row", missing="drop_row"), number("x"))
    cells = [("a", "1"), ("A", "2"), (" a", "3"), (None, "4"), ("it's", "5")]
    result, _, rows = write_rows("y varchar, x varchar", cells, *columns)
    assert [(row[2], row[3]) for row in rows] == [(1.0, 2), (5.0, 1)]
    assert (result.n, result.changes.dropped_rows) == (2, 3)


def test_write_validated_empty_label_defect() -> None:
    columns = (category("y", "label", outside="drop_row"), number("x"))
    with pytest.raises(Defect):
        write_rows("y varchar, x varchar", [("a", "1"), (None, "2")], *columns)


def test_write_validated_missing_keep_code_minus_one() -> None:
    columns = (category("c", missing="keep", outside="drop_row"), number("x"))
    cells = [("a", "1"), (None, "2"), ("other", "3"), ("b", "4")]
    result, _, rows = write_rows("c varchar, x varchar", cells, *columns)
    assert [(row[2], row[3]) for row in rows] == [(2, 1.0), (-1, 2.0), (0, 4.0)]
    assert result.schema.categorical == (Categorical("c", ("b", "it's", "a"), missing=True),)
    assert result.changes.dropped_rows == 1


def test_write_validated_outside_other_code_of_other() -> None:
    rest = replace(category("c", missing="keep", outside="other"), categories=("b", "other", "a"))
    cells = [("a", "1"), (None, "2"), ("rare", "3"), ("b", "4"), ("other", "5")]
    result, _, rows = write_rows("c varchar, x varchar", cells, rest, number("x"))
    assert [row[2] for row in rows] == [2, -1, 1, 0, 1]
    assert result.changes.dropped_rows == 0


def test_write_validated_outside_other_empty_cell_defect() -> None:
    rest = replace(category("c", outside="other"), categories=("b", "other"))
    with pytest.raises(Defect):
        write_rows("c varchar, x varchar", [("b", "1"), (None, "2")], rest, number("x"))


def test_write_validated_unlisted_category_defect() -> None:
    columns = (category("c", missing="keep"), number("x"))
    with pytest.raises(Defect):
        write_rows("c varchar, x varchar", [("a", "1"), ("other", "2")], *columns)


def test_write_validated_without_label_and_id_default_values() -> None:
    result, names, rows = write_rows("x double", [(1.0,), (2.0,)], number("x"))
    assert names == ["__ppdm_row", "__ppdm_key", "x", "__ppdm_label"]
    assert [row[1] for row in rows] == key_of([bytes(8), bytes(7) + b"\x01"])
    assert [row[3] for row in rows] == [-1, -1]
    assert result.schema.label is None


def test_write_validated_bounds_from_data_no_clamping() -> None:
    column = number("x", low="from_data", high="from_data")
    assert write_rows("x double", [(1.0,), (2.0,)], column)[0].changes.clamped == {}


def test_write_validated_column_types_as_declared() -> None:
    with duckdb.connect(":memory:") as db:
        db.execute("create table raw as select 0::bigint as __ppdm_row, 'b' as c, 1 as x, 'a' as y")
        columns = (category("c"), number("x"), category("y", "label"))
        write_checked(db, columns, None)
        described = db.execute("describe checked").fetchall()
    assert [row[1] for row in described] == ["BIGINT", "BLOB", "INTEGER", "DOUBLE", "INTEGER"]
    assert {row[2] for row in described} == {"NO"}


def test_write_validated_one_bound_negative_zero_normalized() -> None:
    column = number("x", low=-0.0, high="from_data")
    result, _, rows = write_rows("x varchar", [("-5",), ("-0",), ("0.1",)], column)
    assert result.schema.numeric == (Numeric("x", 0.0, 0.1, from_data=True),)
    assert math.copysign(1.0, result.schema.numeric[0].low) == 1.0
    assert [math.copysign(1.0, row[2]) for row in rows] == [1.0, 1.0, 1.0]
    assert [row[2] for row in rows] == [0.0, 0.0, 0.1]
    assert result.changes.clamped == {"x": 1}


def test_write_validated_doubles_bits_preserved() -> None:
    values = [0.1, 1 / 3, 5e-324, math.pi, 9.999999999999998]
    _, _, from_text = write_rows("x varchar", [(repr(v),) for v in values], number("x"))
    _, _, native = write_rows("x double", [(v,) for v in values], number("x"))
    assert [row[2] for row in from_text] == [row[2] for row in native] == values


@pytest.mark.parametrize(
    ("cell", "column"),
    [
        (None, number("x")),
        ("CANARY", number("x")),
        ("nan", number("x")),
        ("inf", number("x")),
        ("11", number("x", outside="reject")),
        (None, category("x")),
        ("CANARY", category("x")),
        ("CANARY", category("x", "label")),
    ],
)
def test_write_validated_uncovered_cell_refused(cell: str | None, column: Column) -> None:
    """The expectations refuse such tables before; here it would be a defect."""
    with pytest.raises(Defect) as caught:
        write_rows("x varchar, z double", [(cell, 1.0)], column, number("z"))
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


def test_write_validated_missing_id_defect() -> None:
    with pytest.raises(Defect, match="without an id"):
        write_rows(
            "id varchar, x double",
            [(None, 1.0)],
            Column("id", "identifier"),
            number("x"),
            record_id="id",
        )


@pytest.mark.parametrize("keys", [lambda ids: [b"short"] * len(ids), lambda ids: [bytes(16)]])
def test_write_validated_wrong_keys_defect(keys: Any) -> None:
    with pytest.raises(Defect, match="16 bytes"):
        write_rows("x double", [(1.0,), (2.0,)], number("x"), keys=keys)


def test_write_validated_other_batch_size_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"p{i}", None if i % 3 == 0 else float(i % 11)) for i in range(50)]
    columns = (Column("id", "identifier"), number("x", missing="drop_row"))
    whole = write_rows("id varchar, x double", rows, *columns, record_id="id")
    assert whole[0].changes.dropped_rows == 17
    asked: list[int] = []

    def counting(identities: Sequence[bytes]) -> list[bytes]:
        asked.append(len(identities))
        return key_of(identities)

    for size in (1, 7, 49):
        monkeypatch.setattr(warehouse.validated_table, "BATCH_ROWS", size)
        asked.clear()
        again = write_rows("id varchar, x double", rows, *columns, record_id="id", keys=counting)
        assert again == whole
        assert max(asked) <= size and sum(asked) == 33


def test_write_validated_rolled_back_no_table() -> None:
    with duckdb.connect(":memory:") as db:
        db.execute("create table raw as select i as __ppdm_row, 1.0 as x from range(3) r(i)")
        db.execute("begin")
        write_checked(db, (number("x"),), None)
        db.execute("rollback")
        assert db.execute("select table_name from duckdb_tables()").fetchall() == [("raw",)]


@pytest.mark.slow
def test_write_validated_many_rows_equals_numpy(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(5, 4, size=(150_000, 2))
    gaps = rng.random(len(X)) < 0.01
    lines = [
        f"p{i},{'' if gap else repr(float(x))},{float(z)!r}"
        for i, ((x, z), gap) in enumerate(zip(X, gaps, strict=True))
    ]
    path = tmp_path / "t.csv"
    path.write_text("id,x,z\n" + "\n".join(lines) + "\n")
    columns = (
        Column("id", "identifier"),
        number("x", missing="median"),
        number("z", low="from_data", high="from_data"),
    )
    with duckdb.connect(":memory:") as db:
        db.execute("begin")
        SOURCES["csv"].load(db, Source("csv", str(path)), "raw")
        result = write_checked(db, columns, "id")
        found = db.execute("select * from checked").fetchnumpy()
    x = np.where(gaps, np.median(X[~gaps, 0]), X[:, 0])
    assert np.array_equal(found["__ppdm_row"], np.arange(len(X)))
    np.testing.assert_allclose(found["x"], np.clip(x, 0, 10), rtol=0, atol=1e-12)
    assert np.array_equal(found["z"], X[:, 1])
    assert bytes(found["__ppdm_key"][140_000]) == key_of([b"p140000"])[0]
    assert result.changes.imputed == {"x": int(gaps.sum())}
    assert result.changes.clamped["x"] == int(((X[:, 0] < 0) | (X[:, 0] > 10))[~gaps].sum())
    # Two digits outward: exact extremes would publish the value of a record.
    assert result.schema.numeric[1] == Numeric("z", -12.0, 22.0, from_data=True)
    assert -12.0 < X[:, 1].min() < -11.0 and 21.0 < X[:, 1].max() < 22.0


def test_write_validated_cells_that_become_other_counted_among_kept_rows() -> None:
    rows = [("a", 1.0), ("zzz", 2.0), ("yyy", None), (None, 3.0), ("other", 4.0), ("b", 5.0)]
    column = Column(
        "c",
        "feature",
        "categorical",
        categories=("a", "b", "other"),
        outside="other",
        missing="keep",
    )
    result, _, written = write_rows(
        "c varchar, x double", rows, column, number("x", missing="drop_row")
    )
    assert result.changes.other == {"c": 1}  # the row of yyy is dropped, and "other" stays
    assert result.changes.dropped_empty == {"x": 1}
    assert len(written) == 5

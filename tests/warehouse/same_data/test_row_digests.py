"""Digests of cells and rows."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

from tests.support.compared_tables import digest_table
from warehouse.columns import Column
from warehouse.integrity.home_key import HomeKey
from warehouse.same_data.cell_digests import CELLS, Places
from warehouse.same_data.row_digests import RowDigests, name_rows, read_row_digests
from warehouse.scratch import open_scratch_database
from warehouse.sql import ROW

KEY = HomeKey(bytes(range(32)))


def read(select: str, *columns: Column, key: HomeKey = KEY) -> RowDigests:
    """Return the digests of the rows of a SELECT."""
    with open_scratch_database() as db:
        db.execute(f"create table t as select row_number() over () - 1 as {ROW}, * from ({select})")
        n = db.execute("select count(*) from t").fetchall()[0][0]
        keys = [bytes([i]) * 16 for i in range(n)]
        return read_row_digests(digest_table(db, "t", columns, keys, key))


def feature(name: str, **given: Any) -> Column:
    return Column(name, "feature", "numeric", **given)


@pytest.mark.extended
@pytest.mark.parametrize(
    "cell",
    ["'1.5'", "' 1.50 '", "'15e-1'", "1.5::float", "1.5::double", "1.5::decimal(9, 4)"],
)
def test_read_row_digests_number_written_otherwise_same(cell: str) -> None:
    expected = read("select 1.5::double as x, 'a' as y", feature("x"), feature("y"))
    found = read(f"select {cell} as other, ' a ' as y", feature("other"), feature("y"))
    assert np.array_equal(found.cells, expected.cells)
    assert found.columns[0] != expected.columns[0] and found.columns[1] == expected.columns[1]


def test_read_row_digests_other_values_differ() -> None:
    cells = ["0", "1", "1.5", "-1", "a", "A", "nan", "1e300", "1e301", "true"]
    select = " union all ".join(f"select '{cell}' as x" for cell in cells)
    found = read(select, feature("x")).cells[:, 0]
    assert len(set(found.tolist())) == len(cells)


def test_read_row_digests_missing_cell_zero_other_key_other_digest() -> None:
    select = "select * from (values ('1', null), (null, 'b')) t(x, y)"
    columns = (feature("x", missing="keep"), feature("y", missing="keep"))
    found = read(select, *columns)
    assert (found.cells == 0).tolist() == [[False, True], [True, False]]
    other = read(select, *columns, key=HomeKey(bytes(32)))
    assert not np.any((found.cells == other.cells) & (found.cells != 0))
    assert not np.any(found.names == other.names)


def test_read_row_digests_identifiers_and_row_numbers_left_out() -> None:
    columns = (Column("id", "identifier"), feature("x"), Column("nr", "exclude"), feature("y"))
    select = "select 'p' || i as id, sin(i) as x, 10 * i + 3 as nr, i % 3 as y from range(40) t(i)"
    found = read(select, *columns)
    assert found.cells.shape == (40, 2)
    assert found.keys[7].tolist() == [7] * 16


def test_name_rows_columns_swapped_other_name() -> None:
    """Also where sums of column numbers are equal, as 0 + 3 and 1 + 2."""
    a, b = np.random.default_rng(1).integers(2**63, size=(2, 1), dtype=np.uint64)
    one, two = (np.column_stack(cells) for cells in ((a, b, b, a), (b, a, a, b)))
    assert name_rows(one) != name_rows(two)


def test_read_row_digests_excluded_column_not_in_name() -> None:
    columns = (feature("x"), Column("y", "exclude"))
    found = read("select 1 as x, i % 2 as y from range(2) t(i)", *columns)
    assert found.names[0] == found.names[1] and found.cells[0, 1] != found.cells[1, 1]


SEQUENCES = {
    "from one": ("i + 1", True),
    "steps of ten": ("10 * i - 30", True),
    "with gaps": ("i + i // 2", True),
    "text": ("'case ' || (i + 1) || 'a'", True),
    "dates": ("(date '2024-01-30' + i::integer)::varchar", True),
    "hours": ("(timestamp '2024-01-30' + to_hours(i))::varchar", True),
    "one repeated": ("greatest(i, 1)", False),
    "spread": ("i * i * i", False),
    "measured": ("sin(i)", False),
    "words": ("chr((65 + i)::integer)", False),
    "missing": ("nullif(i, 3)", False),
}


@pytest.mark.extended
@pytest.mark.parametrize("kind", SEQUENCES)
def test_read_row_digests_sequence_left_out(kind: str) -> None:
    cell, is_left_out = SEQUENCES[kind]
    columns = (feature("x", missing="keep"), feature("y"))
    found = read(f"select {cell} as x, sin(i) as y from range(40) t(i)", *columns)
    assert found.cells.shape[1] == 2 - is_left_out


@pytest.mark.parametrize(
    ("batches", "n", "is_numbered"),
    [
        ([range(9)], 9, False),  # too few
        ([range(10)], 10, True),
        ([range(10), range(10, 20)], 20, True),
        ([range(7, 40, 4), range(43, 80, 4)], 19, True),
        ([[0, 1000], range(10)], 12, False),
        ([range(10), [0.5]], 11, False),
        ([range(10), [np.nan]], 11, False),
        ([[3] * 12], 12, False),
    ],
)
def test_places_batches_number_rows(batches: list[Any], n: int, is_numbered: bool) -> None:
    places = Places()
    for batch in batches:
        places.add(np.array(batch, dtype=np.float64))
    assert places.can_number(n) == is_numbered


def test_read_row_digests_error_hides_cells() -> None:
    with open_scratch_database() as db:
        db.execute(f"create table t as select 0 as {ROW}, 'secret' as x")
        digests = digest_table(db, "t", (feature("x"),), [bytes(16)], KEY)
        db.execute(f"drop table {CELLS}")
        with pytest.raises(Exception, match=r"Reading the records to compare failed") as caught:
            read_row_digests(digests)
    assert not isinstance(caught.value, duckdb.Error)

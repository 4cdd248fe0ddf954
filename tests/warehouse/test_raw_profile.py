from __future__ import annotations

from typing import Any

import duckdb
import pytest

from ppdm_core.model.errors import BadInput, Defect
from warehouse.columns import Column
from warehouse.raw_profile import check_columns, profile

ODD = "o\"d'd. {x} ☃"


def number(name: str, **settings: Any) -> Column:
    return Column(name, "feature", "numeric", **{"low": 0.0, "high": 10.0, **settings})


def category(name: str, role: Any = "feature", **settings: Any) -> Column:
    return Column(name, role, "categorical", categories=("a", "it's"), **settings)


def compute_profile(
    types: str, rows: list[tuple[Any, ...]], *columns: Column, record_id: str | None = None
) -> dict[str, float | int]:
    with duckdb.connect(":memory:") as db:
        db.execute(f"create table raw (__ppdm_row bigint, {types})")
        marks = ", ".join("?" * (len(rows[0]) + 1))
        for position, row in enumerate(rows):
            db.execute(f"insert into raw values ({marks})", [position, *row])
        return profile(db, "raw", columns, record_id)


def test_profile_numbers_counted_with_first_row() -> None:
    cells = ["1", "x", None, "nan", "-inf", "11", "-1", "0", "10", " 3 ", "y"]
    assert compute_profile("x varchar", [(cell,) for cell in cells], number("x")) == {
        "rows": 11,
        "rows left": 11,
        "missing in 'x'": 1,
        "first row missing in 'x'": 3,
        "not a number in 'x'": 2,
        "first row not a number in 'x'": 2,
        "not finite in 'x'": 2,
        "first row not finite in 'x'": 4,
        "outside the declared bounds in 'x'": 2,
        "first row outside the declared bounds in 'x'": 6,
        "values in 'x'": 8,
        "repeated rows": 2,
    }


def test_profile_categories_labels_and_ids_counted() -> None:
    rows = [("1", "a", "a"), ("1", "A", "it's"), (None, None, "b"), ("01", "it's", "a")]
    found = compute_profile(
        "id varchar, c varchar, y varchar",
        rows,
        Column("id", "identifier"),
        category("c"),
        category("y", "label"),
        record_id="id",
    )
    assert found == {
        "rows": 4,
        "rows left": 4,
        "missing in record id": 1,
        "first row missing in record id": 3,
        "duplicate values in record id": 1,
        "missing in 'c'": 1,
        "first row missing in 'c'": 3,
        "unknown categories in 'c'": 1,
        "first row unknown categories in 'c'": 2,
        "missing in 'y'": 0,
        "first row missing in 'y'": 0,
        "unknown categories in 'y'": 1,
        "first row unknown categories in 'y'": 3,
        "distinct classes in 'y'": 2,
        "repeated rows": 0,
    }


def test_profile_dropped_rows_not_in_classes_and_ranges() -> None:
    columns = (
        number("x", missing="drop_row"),
        number("z", low="from_data", high="from_data"),
        category("y", "label"),
    )
    rows = [("1", "5", "a"), ("2", "5", "a"), (None, "6", "it's")]
    found = compute_profile("x varchar, z varchar, y varchar", rows, *columns)
    assert (found["rows"], found["rows left"]) == (3, 2)
    assert found["constant in 'z'"] == 1
    assert found["distinct classes in 'y'"] == 1
    assert found["values in 'z'"] == 2


def test_profile_dropped_categories_not_in_ranges() -> None:
    columns = (
        category("y", "label", outside="drop_row"),
        number("z", low="from_data", high="from_data"),
    )
    rows = [("a", "5"), ("b", "6"), ("it's", "5"), (None, "5")]
    found = compute_profile("y varchar, z varchar", rows, *columns)
    assert (found["rows"], found["rows left"]) == (4, 3)
    assert (found["missing in 'y'"], found["unknown categories in 'y'"]) == (1, 1)
    assert found["constant in 'z'"] == 1


@pytest.mark.parametrize(
    ("cells", "bounds", "constant"),
    [
        (["5", "5"], {"low": "from_data", "high": "from_data"}, 1),
        (["5", "5.5"], {"low": "from_data", "high": "from_data"}, 0),
        (["5", "5"], {"low": "from_data", "high": 9.0}, 0),
        (["5", "5"], {"low": 6.0, "high": "from_data"}, 1),
        ([None, None], {"low": "from_data", "high": "from_data"}, 1),
        (["nan", "5"], {"low": "from_data", "high": "from_data"}, 1),
    ],
)
def test_profile_bounds_from_data_constant_counted(
    cells: list[str], bounds: dict[str, Any], constant: int
) -> None:
    found = compute_profile("x varchar", [(cell,) for cell in cells], number("x", **bounds))
    assert found["constant in 'x'"] == constant


def test_profile_identifiers_and_excluded_columns_ignored() -> None:
    columns = (Column("i", "identifier"), Column("n", "exclude"), number("x"))
    found = compute_profile("i varchar, n varchar, x double", [(None, None, 1.0)], *columns)
    assert not any("'i'" in key or "'n'" in key for key in found)


@pytest.mark.parametrize(
    ("type_name", "good", "bad"),
    [
        ("double", 1.0, float("inf")),
        ("decimal(5, 2)", 1, 500),
        ("hugeint", 1, 500),
        ("boolean", None, True),
        ("date", None, "2020-01-01"),
        ("integer[]", None, [1]),
        ("double[2]", None, [1.0, 2.0]),
        ("blob", b"1", b"\xff"),
    ],
)
def test_profile_native_types_one_bad_cell_counted(type_name: str, good: Any, bad: Any) -> None:
    found = compute_profile(f"x {type_name}", [(good,), (bad,)], number("x"))
    wrong = [key for key, count in found.items() if key.startswith(("not", "out")) and count]
    assert len(wrong) == 1
    assert found[f"first row {wrong[0]}"] == 2


def test_profile_native_categories_compared_as_text() -> None:
    column = Column("c", "feature", "categorical", categories=("1", "2"))
    assert (
        compute_profile("c integer", [(1,), (2,), (3,)], column)["unknown categories in 'c'"] == 1
    )


def test_profile_column_without_values_has_counts() -> None:
    found = compute_profile("x varchar", [(None,), (None,)], number("x"))
    assert found["missing in 'x'"] == 2
    assert (found["not finite in 'x'"], found["values in 'x'"]) == (0, 0)


def test_profile_odd_column_name_counted() -> None:
    quoted = '"' + ODD.replace('"', '""') + '"'
    found = compute_profile(f"{quoted} varchar", [("1",), ("?",)], number(ODD))
    assert found[f"not a number in '{ODD}'"] == 1


def test_profile_bounds_compared_exactly() -> None:
    third = 0.30000000000000004
    found = compute_profile("x double", [(third,), (0.3,)], number("x", low=0.3, high=third))
    assert found["outside the declared bounds in 'x'"] == 0
    found = compute_profile("x double", [(third,), (0.3,)], number("x", low=0.0, high=0.3))
    assert found["outside the declared bounds in 'x'"] == 1


def test_profile_duckdb_error_hides_message() -> None:
    # A table that is a view on a failing cast: the only way to make the scan itself fail.
    with duckdb.connect(":memory:") as db:
        db.execute("create view raw as select 0::bigint as __ppdm_row, 'CANARY'::double as x")
        with pytest.raises(Defect) as caught:
            profile(db, "raw", (number("x"),), None)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


def test_check_columns_other_than_source_bad_input() -> None:
    columns = (Column("id", "identifier"), number("x"), number(ODD))
    check_columns([ODD, "x", "id"], columns, "/data/t.csv")
    with pytest.raises(BadInput) as missing:
        check_columns(["id", "x", "CANARY"], columns, "/data/t.csv")
    assert (missing.value.column, missing.value.file) == (ODD, "/data/t.csv")
    assert "is not in t.csv" in missing.value.message
    assert "CANARY" not in str(missing.value)
    with pytest.raises(BadInput) as extra:
        check_columns(["id", "x", ODD, "age"], columns, "/data/t.csv")
    assert extra.value.column == "age"
    assert "has no role in the release file" in extra.value.message
    with pytest.raises(BadInput, match="Column 'x' of the release file"):
        check_columns(["id", "X", ODD], columns, "/data/t.csv")


def test_check_columns_file_without_header_hides_cells() -> None:
    with pytest.raises(BadInput) as caught:
        check_columns(["CANARY", "12.5"], (number("x"), number("y")), "/data/t.csv")
    assert "header" in str(caught.value)
    assert "CANARY" not in str(caught.value) and "12.5" not in str(caught.value)


def test_check_columns_all_missing_or_all_extra_reported() -> None:
    columns = (number("x"), number("y"), number("z"))
    with pytest.raises(BadInput) as caught:
        check_columns(["x", "CANARY"], columns, "/data/t.csv")
    assert [each.column for each in caught.value.list_all()] == ["y", "z"]
    assert "CANARY" not in str(caught.value)
    with pytest.raises(BadInput) as caught:
        check_columns(["x", "y", "z", "a", "b"], columns, "/data/t.csv")
    assert [each.column for each in caught.value.list_all()] == ["a", "b"]

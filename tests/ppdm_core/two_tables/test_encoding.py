from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.two_tables.encoding import encode_tables, parse_date
from ppdm_core.two_tables.tables import as_table

N = 40


def encode(original: dict, released: dict) -> list[dict]:
    tables = [as_table("a", original), as_table("b", released)]
    return [dict(table.columns) for table in encode_tables(tables, "label")]


def test_encode_tables_empty_cells_filled_and_marked() -> None:
    x = np.arange(N, dtype=float)
    x[3] = np.nan
    original, released = encode({"x": x}, {"x": np.ones(N)})
    assert original["x"][3] == np.median(np.delete(np.arange(N), 3))
    assert np.flatnonzero(original["empty cells of x"]).tolist() == [3]
    assert released["empty cells of x"].sum() == 0


def test_encode_tables_dates_become_days() -> None:
    cells = np.array(["1970-01-02", "01.02.1970", ""] * 20, dtype=object)
    (original, _) = encode({"day": cells}, {"day": cells})
    assert original["day"][:2].tolist() == [1.0, 31.0]
    assert original["empty cells of day"][:3].tolist() == [0.0, 0.0, 1.0]


def test_encode_tables_categories_get_numbered_columns() -> None:
    colours = np.array(["red", "green", "blue", "red"] * 10, dtype=object)
    original, released = encode({"c": colours}, {"c": np.roll(colours, 1)})
    assert list(original) == ["c #1", "c #2", "c #3"]  # no value of the table
    assert original["c #3"].sum() == 20
    assert released["c #3"].sum() == 20


def test_encode_tables_two_categories_one_column() -> None:
    sex = np.array(["f", "m"] * 20, dtype=object)
    original, _ = encode({"sex": sex}, {"sex": sex})
    assert original["sex"].tolist() == [0.0, 1.0] * 20


def test_encode_tables_names_and_label_stay() -> None:
    names = np.array([f"person {i}" for i in range(N)], dtype=object)
    label = np.array(["a", "b"] * 20, dtype=object)
    original, _ = encode({"name": names, "label": label}, {"name": names, "label": label})
    assert original["name"].tolist() == names.tolist()
    assert original["label"].tolist() == label.tolist()


@pytest.mark.parametrize("text", ["12", "3.5", "abc", "-4", "2020-13-01", ""])
def test_parse_date_no_date_is_nan(text: str) -> None:
    assert np.isnan(parse_date(text))

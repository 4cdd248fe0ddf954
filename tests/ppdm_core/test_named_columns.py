from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.named_columns import read_numeric_columns

NAMES = ("a", "b")
X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
FRAME = pd.DataFrame({"b": X[:, 1], "a": X[:, 0]})

TABLES: dict[str, Any] = {
    "frame": FRAME,
    "whole numbers": FRAME.astype({"a": "int32"}),
    "nullable": FRAME.convert_dtypes(),
    "dict of arrays": {"b": X[:, 1], "a": X[:, 0]},
    "dict of lists": {"b": [10, 20, 30], "a": [1.0, 2.0, 3.0]},
    "decimals": {"a": [Decimal(1), Decimal(2), Decimal(3)], "b": X[:, 1]},
    "arrow": pa.Table.from_pandas(FRAME),
    "structured": np.array(
        [(10.0, 1.0), (20.0, 2.0), (30.0, 3.0)], dtype=[("b", float), ("a", float)]
    ),
    "array": X,
    "list": X.tolist(),
    "other columns": FRAME.assign(label="text"),
}


@pytest.mark.parametrize("what", TABLES)
def test_read_numeric_columns_same_numbers_from_every_table(what: str) -> None:
    assert np.array_equal(read_numeric_columns(TABLES[what], NAMES, {"label"}), X)


def test_read_numeric_columns_one_record() -> None:
    assert read_numeric_columns({"b": 10.0, "a": 1.0}, NAMES).tolist() == [[1.0, 10.0]]
    assert read_numeric_columns(FRAME.iloc[0], NAMES).tolist() == [[1.0, 10.0]]
    assert read_numeric_columns([1.0, 10.0], NAMES).tolist() == [1.0, 10.0]


def test_read_numeric_columns_no_names_wanted_counts_rows() -> None:
    assert read_numeric_columns(FRAME, (), ("a", "b")).shape == (3, 0)


BAD: dict[str, tuple[Any, str]] = {
    "missing": (FRAME[["a"]], "Column 'b' is missing. Add the column"),
    "numbered": (pd.DataFrame(X), "Column 'a' is missing. Add the column"),
    "extra": (FRAME.assign(c=1), "Column 'c' is not a column of the release. Leave it out"),
    "twice": (pd.concat([FRAME, FRAME[["a"]]], axis=1), "Column 'a' occurs twice. Rename"),
    "text": (FRAME.assign(a="x"), "Column 'a' holds other cells than numbers. Convert"),
    "numbers as text": ({"a": ["1", "2", "3"], "b": X[:, 1]}, "Column 'a' holds other cells"),
    "dates": (FRAME.assign(a=pd.Timestamp("2026-01-01")), "Column 'a' holds other cells"),
    "lists": ({"a": [[1], [2, 3], [4]], "b": X[:, 1]}, "Column 'a' holds other cells"),
    "lists of one": ({"a": [[1], [2], [3]], "b": X}, "Column 'a' holds other cells"),
    "missing value": (
        FRAME.convert_dtypes().assign(a=pd.array([1, None, 3])),
        "Column 'a' has 1 cell that is NaN or infinite, first in row 2",
    ),
    "nan": (FRAME.assign(b=[1, np.nan, np.nan]), "Column 'b' has 2 cells that are NaN or .* row 2"),
    "infinite": (FRAME.assign(a=[1, 2, np.inf]), "Column 'a' has 1 cell that is NaN or .* row 3"),
    "lengths": ({"a": [1.0, 2.0], "b": [1.0]}, "columns have different numbers of rows"),
    "array width": (X[:, :1], r"shape \(3, 1\) does not have the 2 columns a to b. Select"),
    "array depth": (X[None], r"shape \(1, 3, 2\) does not have the 2 columns"),
    "array text": ([["1", "2"]], "The table holds other cells than numbers"),
    "array nan": ([[1.0, 2.0], [np.nan, 1.0]], "Column 'a' has 1 cell that is NaN or .* row 2"),
    "ragged": ([[1.0], [1.0, 2.0]], "does not have the 2 columns"),
    "number": (3.0, r"shape \(\) does not have the 2 columns"),
    "records": ([{"a": 1, "b": 2}, {"a": 1, "b": 2}], "holds other cells than numbers"),
}


@pytest.mark.parametrize("what", BAD)
def test_read_numeric_columns_bad_table_one_sentence(what: str) -> None:
    table, sentence = BAD[what]
    with pytest.raises(BadInput, match=sentence):
        read_numeric_columns(table, NAMES)

"""What the label of a table tells by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from warehouse.columns import Column
from warehouse.label_summary import LabelSummary, summarize_label
from warehouse.sql import ROW

N = 600
RNG = np.random.default_rng(1)
SALARY = RNG.normal(50.0, 12.0, N)


def summarize(label: list[Any], hidden: dict[str, Any], **declared: Any) -> LabelSummary:
    """Return the summary of a table with this label and these excluded columns."""
    frame = pd.DataFrame({ROW: range(N), "label": label, **hidden})
    words = tuple(sorted({str(each) for each in label if each is not None}))
    given = {"categories": words, **declared}
    columns = (
        Column("label", "label", "categorical", **given),
        *(Column(name, "exclude") for name in hidden),
    )
    with duckdb.connect() as db:
        db.register("frame", frame)
        db.execute("create table main.source as select * from frame")
        found = summarize_label(db, "main.source", columns)
    assert found is not None
    return found


def round_salary() -> list[str]:
    return [f"{round(each, -1):.0f}" for each in SALARY]


REVEALED: dict[str, Callable[[], Any]] = {
    "as numbers": lambda: SALARY,
    "as text": lambda: [str(each) for each in SALARY.tolist()],
    "with gaps": lambda: [None if i % 3 else each for i, each in enumerate(SALARY.tolist())],
    "other words": lambda: [f"about {each}" for each in round_salary()],
    "a function": lambda: [str(hash(each) % 97) for each in map(float, round_salary())],
    "dates": lambda: [f"{2000 + int(each)}-01-01" for each in SALARY],
}
NOT_REVEALED: dict[str, Callable[[], Any]] = {
    "noise": lambda: RNG.normal(size=N),
    "identifiers": lambda: [f"person {i}" for i in range(N)],
    "a constant": lambda: ["same"] * N,
    "nothing": lambda: [None] * N,
    "rare words": lambda: ["yes" if i % 50 else "no" for i in range(N)],
    "lists": lambda: [[1, 2]] * N,
    "half of it": lambda: SALARY + RNG.normal(0.0, 12.0, N),
}


@pytest.mark.extended
@pytest.mark.parametrize("name", REVEALED)
def test_summarize_label_rounded_secret_column_named(name: str) -> None:
    assert set(summarize(round_salary(), {"salary": REVEALED[name]()}).revealed) == {"salary"}


@pytest.mark.extended
@pytest.mark.parametrize("name", NOT_REVEALED)
def test_summarize_label_other_column_not_named(name: str) -> None:
    assert summarize(round_salary(), {"other": NOT_REVEALED[name]()}).revealed == {}


def test_summarize_label_pairs_with_majority_not_revealed() -> None:
    """In classes of two records a rare word is the exception in its class."""
    label = [str(i // 2) for i in range(N)]
    assert summarize(label, {"rare": ["no" if i % 10 else "yes" for i in range(N)]}).revealed == {}


def test_summarize_label_counts_classes_of_kept_rows() -> None:
    label = ["a"] * 400 + ["b"] * 150 + ["c"] * 7 + [None] * 43
    found = summarize(label, {}, categories=("a", "b", "d"), outside="drop_row", missing="drop_row")
    assert (found.classes, found.records, found.smallest) == (2, 550, 150)
    assert found.rate == 2 / 550


def test_summarize_label_identifier_one_record_each() -> None:
    found = summarize([f"p{i}" for i in range(N)], {"salary": SALARY})
    assert (found.classes, found.records, found.smallest, found.revealed) == (N, N, 1, {})


def test_summarize_label_without_label_none() -> None:
    with duckdb.connect() as db:
        db.execute(f"create table main.source as select 1 as x, 0 as {ROW}")
        assert summarize_label(db, "main.source", (Column("x", "exclude"),)) is None

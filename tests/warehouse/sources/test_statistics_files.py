from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyreadstat
import pytest

from warehouse.columns import Source
from warehouse.sources import SOURCES, _statistics_file

FRAME = pd.DataFrame(
    {
        "id": [1.0, 2.0, 3.0],
        "cost": [0.1, None, 1e300],
        "word": ["a", "", "naïve"],
        "day": [datetime.date(2024, 2, 29), None, datetime.date(1999, 1, 1)],
    }
)
EXPECTED = [
    (1.0, 0.1, "a", "2024-02-29"),
    (2.0, None, None, None),
    (3.0, 1e300, "naïve", "1999-01-01"),
]


@pytest.mark.parametrize(
    ("kind", "name", "write"),
    [
        ("spss", "t.sav", pyreadstat.write_sav),
        ("stata", "t.dta", pyreadstat.write_dta),
    ],
)
@pytest.mark.parametrize("batch", [1, 50_000])
def test_load_numbers_text_and_dates(
    batch: int,
    kind: str,
    name: str,
    write: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_statistics_file, "BATCH_ROWS", batch)
    write(FRAME, tmp_path / name)
    with duckdb.connect(":memory:") as db:
        SOURCES[kind].load(db, Source(kind, str(tmp_path / name)), "main.t")
        rows = db.execute("select * exclude (__ppdm_row) from main.t order by rowid").fetchall()
    assert rows == EXPECTED

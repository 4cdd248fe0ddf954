"""A complete release of a table with derived columns and columns by pattern."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import Maker
from tests.support.small_release import feature, small_rows

DAY = datetime.date(2026, 1, 1)


def derive_years(**settings: object) -> dict[str, object]:
    given = {"role": "feature", "derive": "years_since", "from": "since", "date": str(DAY)}
    return {**given, "low": 0, "high": 10, **settings}


@pytest.mark.slow
def test_release_derived_columns_attacked_scanned_and_published(small: Maker) -> None:
    rows = small_rows()
    for row in rows:
        row["since"] = str(DAY - datetime.timedelta(days=round(365 * float(row["iron"]))))
    release = small(rows=rows)
    columns = release.content["columns"]
    for name in ("height", "weight", "iron"):
        del columns[name]
    columns |= {"?ei*": feature(), "iron": {"role": "exclude"}, "since": {"role": "exclude"}}
    columns["years"] = derive_years()
    columns["load"] = {"role": "feature", "derive": "ratio", "from": ["height", "weight"]}
    columns["load"] |= {"low": 0, "high": 3}
    columns["iron_log"] = {"role": "feature", "derive": "log1p", "from": "iron"}
    columns["iron_log"] |= {"low": 0, "high": 3}
    release.content["sanitizer"] = {"method": "additive_noise", "b": 1.0}
    done = release.write().run()
    assert done.exit_code == 0, done.stdout + done.stderr
    (version,) = release.versions()
    table = pq.read_table(release.published / version / "data.parquet")
    assert {"height", "weight", "pulse", "years", "load", "iron_log", "mood"} == set(
        table.column_names
    )
    report = release.ask("report", "latest", "--columns", "--out", str(release.folder / "r.html"))
    assert report.exit_code == 0, report.stderr
    page = (release.folder / "r.html").read_text()
    assert "found without it" in page and "iron_log" in page
    check_private_words(release.published / version, rows[7]["since"])
    again = release.run()
    assert again.exit_code == 0 and release.versions() == [version], again.stdout


def check_private_words(folder: Path, cell: str) -> None:
    """Check that neither an excluded source nor one of its cells is in what was published."""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert cell.encode() not in content, path

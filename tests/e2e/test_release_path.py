"""How often one release opens the warehouse, and how often it passes over its tables."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.history import History
from tests.support.small_release import ROWS, Small, small_rows

Maker = Callable[..., Small]
MAX_TRANSACTIONS = 17  # two of them look at the stage before an engine is opened
MAX_WAIT_SECONDS = 2.0
MANY_ROWS = 50_000
LONG_WORK = {"copy_source", "bits", "ask", "format_card", "render_report"}
LONG_WORK |= {"check_bytes", "describe_files", "compute_code_version"}
LONG_WORK |= {"name_draws", "stage_rows", "write_candidate"}
# The raw table is surveyed, then copied and digested.
MAX_PASSES = {"raw": 2, "validated": 3}
MORE_FOR_DERIVED = 2  # cells that cannot be read are counted before the columns are added
# A count of all rows reads no column, `limit 0` no row, and the largest row number one column.
NO_PASS = re.compile(
    r"select count\(\*\) from \S+$|select .* limit 0$"
    r"|select coalesce\(max\(__ppdm_row\), -1\) from \S+$"
)


def count_passes(statements: list[str], schema: str) -> int:
    """Return how often statements read a table of a schema."""
    read = re.compile(rf"\b(?:from|join)\s+{schema}\.", re.IGNORECASE)
    return sum(len(read.findall(each)) for each in statements if not NO_PASS.match(each.strip()))


def test_count_passes_reads_counted_writes_and_counts_not() -> None:
    statements = ['create table raw."t" as from x', 'select count(*) from raw."t"']
    statements.append('select * from raw."t" limit 0')
    assert count_passes(statements, "raw") == 0
    statements += [
        'with a as (select b\n from raw."t") select 1',
        'select 1 join raw."t" using (c)',
    ]
    assert count_passes(statements, "raw") == 2


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> list[dict[str, Any]]:
    """Return every transaction and statement of one published release."""
    return run_counted(release_in(tmp_path_factory.mktemp("counted")))


def run_counted(release: Small) -> list[dict[str, Any]]:
    """Run a release that is published; return its transactions, statements and long work."""
    release.write()
    path = release.folder / "log"
    result = release.run(str(path), "release", entry="counted")
    assert (result.exit_code, release.versions()) == (0, ["0001"])
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_release_transactions_few(log: list[dict[str, Any]]) -> None:
    opened = [each["transaction"] for each in log if "transaction" in each]
    assert 8 <= len(opened) <= MAX_TRANSACTIONS, opened


def test_release_file_checked_once(log: list[dict[str, Any]]) -> None:
    assert [each["check"] for each in log if "check" in each] == ["check_columns", "check_settings"]


def test_release_long_work_no_transaction_open(log: list[dict[str, Any]]) -> None:
    """Attacks, noise, digests of whole files and pages need no table of the warehouse."""
    work = [(each["work"], each["is_open"]) for each in log if "work" in each]
    assert {name for name, _ in work} == LONG_WORK
    assert [name for name, is_open in work if is_open] == []


def test_release_card_rendered_once(log: list[dict[str, Any]]) -> None:
    assert [each["work"] for each in log if "work" in each].count("format_card") == 1


@pytest.mark.parametrize("schema", MAX_PASSES)
def test_release_passes_over_tables_few(schema: str, log: list[dict[str, Any]]) -> None:
    assert 1 <= count_passes(list_statements(log), schema) <= MAX_PASSES[schema]


def list_statements(log: list[dict[str, Any]]) -> list[str]:
    return [each["statement"] for each in log if "statement" in each]


@pytest.mark.extended
def test_release_medians_and_derived_columns_few_more_passes(small: Maker) -> None:
    release = small("more_passes")
    columns = release.content["columns"]
    columns["iron"]["missing"] = "median"
    columns["pulse"] = {"role": "exclude"}
    bounds = {"role": "feature", "type": "numeric", "low": 0, "high": 3}
    columns["log_pulse"] = {**bounds, "derive": "log1p", "from": "pulse"}
    statements = list_statements(run_counted(release))
    assert count_passes(statements, "raw") <= MAX_PASSES["raw"] + MORE_FOR_DERIVED + 1
    assert count_passes(statements, "validated") <= MAX_PASSES["validated"]


@pytest.mark.parametrize("n", [ROWS, pytest.param(MANY_ROWS, marks=pytest.mark.slow)])
def test_release_other_process_gets_lock_soon(small: Maker, history: History, n: int) -> None:
    release = small("history")
    release.rows = small_rows(n)
    release.write()
    waits = release.folder / "waits"
    lock = release.private / "locks" / "warehouse.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    result = release.run(str(waits), str(lock), "release", entry="contended")
    assert result.exit_code == 0
    expected = set(history.points)
    deadline = time.monotonic() + 30
    while len(lines := waits.read_text().splitlines()) < len(expected) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.1)
    found = {name: float(waited) for waited, name in (line.split(" ", 1) for line in lines)}
    assert set(found) == expected
    assert max(found.values()) < MAX_WAIT_SECONDS, found

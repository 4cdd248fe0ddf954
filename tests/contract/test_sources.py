from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tests.contract import cases, checks_sources
from tests.contract.cases import SourceCase
from tests.contract.checks import check_named_alike
from tests.support.servers import PASSWORD
from warehouse.columns import Source
from warehouse.sources import SOURCES, Reader
from warehouse.sources.csv import Csv
from warehouse.sql import ROW

Check = Callable[[Reader, SourceCase, Path], None]
CHECKS: list[Check] = [
    checks_sources.check_missing_file_refused,
    checks_sources.check_bad_file_refused,
    checks_sources.check_few_rows_refused,
    checks_sources.check_reserved_name_refused,
    checks_sources.check_odd_names_read,
    checks_sources.check_names_as_loaded,
    checks_sources.check_rows_in_order,
    checks_sources.check_rolled_back,
    checks_sources.check_digest_follows_content,
    checks_sources.check_copy_same_content,
    checks_sources.check_found_by_ending,
]


def test_sources_each_has_a_case() -> None:
    assert set(cases.SOURCES) == set(SOURCES)


@pytest.mark.parametrize("key", SOURCES)
def test_source_name_same_in_four_places(key: str) -> None:
    check_named_alike(type(SOURCES[key]), key, cases.SOURCES)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("key", SOURCES)
def test_source_check_passes(
    key: str,
    check: Check,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = cases.SOURCES[key]
    if SOURCES[key].schemes:
        case = replace(case, server=request.getfixturevalue("postgresql"))
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    check(SOURCES[key], case, tmp_path)


class IgnoresMissingFiles(Csv):
    def digest(self, source: Source) -> str:
        return ""


class RaisesItsOwnError(Csv):
    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        if b"\0" in Path(source.path).read_bytes():
            raise ValueError(checks_sources.CANARY)
        super().load(db, source, table)


class ChecksNothing(Csv):
    """As DuckDB reads a file by itself."""

    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        rows = f"select row_number() over () as {ROW}1, * from read_csv('{source.path}')"
        db.execute(f"create table {table} as {rows}")


class SortsNames(Csv):
    def find_names(self, db: duckdb.DuckDBPyConnection, source: Source) -> list[str]:
        return sorted(super().find_names(db, source))


class SortsRows(Csv):
    def select_rows(self, db: duckdb.DuckDBPyConnection, source: Source) -> str:
        return f"{super().select_rows(db, source)} order by all desc"


class ReplacesNames(Csv):
    def select_rows(self, db: duckdb.DuckDBPyConnection, source: Source) -> str:
        return f"""select *, 1 as "c_d" from ({super().select_rows(db, source)})"""


class CommitsItself(Csv):
    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        super().load(db, source, table)
        db.execute("commit")
        db.execute("begin")


class DigestsTheStart(Csv):
    def digest(self, source: Source) -> str:
        return Path(source.path).read_text()[:1000]


class CopiesNothing(Csv):
    def copy(self, source: Source, folder: Path) -> tuple[Source, str]:
        return source, self.digest(source)


class HasAnotherName(Csv):
    name = "text"


BUGS: list[tuple[Check, Reader]] = [
    (checks_sources.check_missing_file_refused, IgnoresMissingFiles()),
    (checks_sources.check_bad_file_refused, RaisesItsOwnError()),
    (checks_sources.check_few_rows_refused, ChecksNothing()),
    (checks_sources.check_reserved_name_refused, ChecksNothing()),
    (checks_sources.check_odd_names_read, ReplacesNames()),
    (checks_sources.check_names_as_loaded, SortsNames()),
    (checks_sources.check_rows_in_order, SortsRows()),
    (checks_sources.check_rolled_back, CommitsItself()),
    (checks_sources.check_digest_follows_content, DigestsTheStart()),
    (checks_sources.check_copy_same_content, CopiesNothing()),
    (checks_sources.check_found_by_ending, HasAnotherName()),
]


@pytest.mark.parametrize(("check", "bug"), BUGS, ids=lambda each: getattr(each, "__name__", None))
def test_source_check_planted_bug_found(check: Check, bug: Reader, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        check(bug, cases.SOURCES["csv"], tmp_path)


def test_source_checks_each_has_a_bug() -> None:
    assert [check for check, _ in BUGS] == CHECKS

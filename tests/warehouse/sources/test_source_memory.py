"""The memory of reading a source, and of writing a sink, does not grow with the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.memory import measure_peak_memory
from tests.contract import cases
from tests.contract.checks_sources import write_source
from tests.support.servers import PASSWORD
from warehouse.columns import Source
from warehouse.scratch import open_scratch_database
from warehouse.sources import SOURCES

ROWS = "select i as id, {cells}, 'note ' || i as notes from range({n}) r(i)"
CELLS = ", ".join(f"((i * {prime}) % 997) / 7.0 as x{prime}" for prime in (101, 103, 107, 109))
MAX_GROWTH_BYTES = 60 * 2**20
# Rows of the smaller table, which fills all caches (128 MB of each database), and of the larger,
# which has more bytes than may be added.
SIZES = {
    "excel": (20_000, 120_000),
    **dict.fromkeys(("sas", "spss", "stata"), (500_000, 1_500_000)),
}
USUAL_SIZES = (3_000_000, 5_000_000)
MOST_ROWS, MAX_BYTES = 10_000_000, 500 * 10**6
MANY_FILES = 10


def load(source: Source, folder: str) -> None:
    with open_scratch_database() as db:
        SOURCES[source.kind].load(db, source, "main.t")


def copy(source: Source, folder: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as to:
        SOURCES[source.kind].copy(source, Path(to))


def digest(source: Source, folder: str) -> None:
    SOURCES[source.kind].digest(source)


WAYS: dict[str, Callable[[Source, str], None]] = {"load": load, "copy": copy, "digest": digest}


@pytest.fixture
def make(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, int], Source]:
    """Returns a source of a kind with so many rows."""

    def build(key: str, n: int) -> Source:
        case, reader = cases.SOURCES[key], SOURCES[key]
        if reader.schemes:
            case = replace(case, server=request.getfixturevalue("postgresql"))
            monkeypatch.setenv("PGPASSWORD", PASSWORD)
        return write_source(reader, case, tmp_path, ROWS.format(cells=CELLS, n=n))

    return build


@pytest.mark.slow
@pytest.mark.parametrize("key", SOURCES)
def test_read_more_rows_hardly_more_memory(
    key: str, make: Callable[[str, int], Source], tmp_path: Path
) -> None:
    peaks = []
    for n in SIZES.get(key, USUAL_SIZES):
        source = make(key, n)
        found = {
            way: measure_peak_memory(work, source, str(tmp_path)) for way, work in WAYS.items()
        }
        peaks.append(found)
    grown = {way: peaks[1][way] - peaks[0][way] for way in WAYS}
    assert max(grown.values()) < MAX_GROWTH_BYTES, (grown, peaks)


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", ["csv", "parquet", "duckdb", "postgresql"])
def test_read_ten_million_rows_in_half_a_gigabyte(
    key: str, make: Callable[[str, int], Source], tmp_path: Path
) -> None:
    source = make(key, MOST_ROWS)
    found = {way: measure_peak_memory(work, source, str(tmp_path)) for way, work in WAYS.items()}
    assert max(found.values()) < MAX_BYTES, found

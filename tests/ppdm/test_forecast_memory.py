"""The memory of `ppdm check` does not grow with the rows of its table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import tomlkit

from benchmarks.memory import measure_whole_memory
from tests.support.small_release import CONTENT, feature

FEATURES = ("height", "weight", "pulse", "iron", "sugar", "sleep")
MAX_BYTES, MAX_GROWTH_BYTES = 500 * 10**6, 60 * 10**6
ROWS = """
copy (
  select 'id-' || i as person, if(i % 2 = 0, 'calm', 'tense') as mood, 'note ' || i as notes,
    {cells}
  from range({n}) r(i)
) to '{path}' (format parquet)
"""


def write_release(folder: Path, n: int) -> Path:
    """Write a table of nine columns with features along one direction, and its release file."""
    level = "3 + 4 * (i % 2) + ((i * 7919) % 1000) / 1000.0"
    cells = ", ".join(
        f"{level} + ((i * {prime}) % 997) / 2000.0 as {name}"
        for name, prime in zip(FEATURES, (101, 103, 107, 109, 113, 127), strict=True)
    )
    with duckdb.connect(config={"memory_limit": "500MB"}) as db:
        db.execute("set enable_progress_bar = false")
        db.execute(ROWS.format(cells=cells, n=n, path=folder / "table.parquet"))
    content = {**CONTENT, "source": {"kind": "parquet", "path": "table.parquet"}}
    content["dataset"] = {**CONTENT["dataset"], "name": "t"}
    content["columns"] = {**CONTENT["columns"], **{name: feature() for name in FEATURES}}
    path = folder / "t.toml"
    path.write_text(tomlkit.dumps(content))
    return path


def foretell(path: str) -> None:
    from ppdm.cli.release_files import read_release_file
    from ppdm.forecast.release import foretell_release

    foretell_release(read_release_file(Path(path))[1])


def measure(folder: Path, n: int) -> int:
    folder.mkdir()
    return measure_whole_memory(foretell, str(write_release(folder, n)))


# The smaller table fills the cache of the database already, which has 128 MB.
@pytest.mark.slow
def test_foretell_more_rows_hardly_more_memory(tmp_path: Path) -> None:
    small, large = measure(tmp_path / "s", 700_000), measure(tmp_path / "l", 2_000_000)
    assert large < MAX_BYTES, f"{large:,} bytes"
    assert large - small < MAX_GROWTH_BYTES, f"{small:,} and {large:,} bytes"

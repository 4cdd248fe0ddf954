from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from warehouse.ordered_parts import ORDER, order_rows
from warehouse.scratch import open_scratch_database
from warehouse.sql import KEY

N = 3_000


def make_rows(n: int = N, ranks: int = 2**64) -> pa.Table:
    """Rows with random ranks below ``ranks``, so that few ranks are often equal."""
    rng = np.random.default_rng(5)
    shift = 64 - (ranks - 1).bit_length()
    order = rng.integers(0, ranks, n, dtype=np.uint64) << np.uint64(shift)
    keys = [rng.bytes(16) for _ in range(n)]
    return pa.table({"x": rng.random(n), ORDER: order, KEY: pa.array(keys, pa.binary())})


@pytest.mark.parametrize("size", [N, 400, 17])
@pytest.mark.parametrize("ranks", [2**64, 2**4])
def test_order_rows_parts_of_any_size_order_of_one_sort(
    tmp_path: Path, size: int, ranks: int
) -> None:
    table = make_rows(ranks=ranks)
    with open_scratch_database() as db:
        db.register("given", table)
        expected = db.sql(f"select x from given order by {ORDER}, {KEY}").fetchnumpy()["x"]
    folder = tmp_path / "parts"
    with order_rows(table.to_reader(100), N, folder, size) as ordered:
        assert folder.exists() == (size < N)
        for _ in range(2):  # it can be read again
            found = [each.column("x").to_numpy() for each in ordered.tables()]
            np.testing.assert_array_equal(np.concatenate(found), expected)
        assert (max(map(len, found)) <= 2 * size) or ranks < 2**64
    assert not folder.exists()


def test_order_rows_folder_of_a_killed_run_replaced(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-0000.arrow").write_bytes(b"old")
    with order_rows(make_rows().to_reader(100), N, tmp_path / "parts", 100) as ordered:
        assert sum(each.num_rows for each in ordered.tables()) == N
    assert not (tmp_path / "parts").exists()


def test_order_rows_no_rows_one_empty_table(tmp_path: Path) -> None:
    with order_rows(make_rows(0).to_reader(), 0, tmp_path / "parts") as ordered:
        assert [each.num_rows for each in ordered.tables()] == [0]

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import Refused
from warehouse.row_digest import digest_released_rows, digest_row_blocks

ROWS = st.lists(
    st.tuples(
        st.floats(allow_nan=False, width=64) | st.none(),
        st.sampled_from(["", "a", "b"]) | st.none(),
    ),
    max_size=20,
)


def make_table(rows: list[tuple[float | None, str | None]]) -> pa.Table:
    numbers, texts = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"x": pa.array(numbers, pa.float64()), "c": pa.array(texts, pa.string())})


def test_digest_golden_by_hand() -> None:
    first = b"\1" + struct.pack(">d", 1.5) + b"\1" + hashlib.sha256(b"a").digest()
    second = b"\0" + bytes(8) + b"\0" + bytes(32)
    heading = b'ppdm rows 1\n[["x","number"],["c","text"]]\n'
    expected = hashlib.sha256(heading + second + first).hexdigest()
    assert digest_released_rows(make_table([(1.5, "a"), (None, None)])) == expected


@settings(deadline=None, max_examples=50)
@given(rows=ROWS, seed=st.integers(0, 9))
def test_digest_any_order_same_and_any_change_another(
    rows: list[tuple[float | None, str | None]], seed: int
) -> None:
    digest = digest_released_rows(make_table(rows))
    order = np.random.default_rng(seed).permutation(len(rows))
    assert digest_released_rows(make_table([rows[i] for i in order])) == digest
    assert digest_released_rows(make_table([*rows, (0.5, "a")])) != digest
    if rows:
        assert digest_released_rows(make_table([*rows, rows[0]])) != digest
        changed = (rows[0][0], "other")
        assert digest_released_rows(make_table([changed, *rows[1:]])) != digest


def test_digest_negative_zero_and_chunks_do_not_count() -> None:
    first, second = make_table([(0.0, "a")]), make_table([(-0.0, "b")])
    both = pa.concat_tables([first, second])
    assert digest_released_rows(both) == digest_released_rows(make_table([(0.0, "b"), (0.0, "a")]))


def test_digest_other_type_refused() -> None:
    with pytest.raises(Refused):
        digest_released_rows(pa.table({"x": [1, 2]}))


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_digest_row_blocks_several_runs_same_digest(size: int) -> None:
    """Also of rows that are sorted already, or mostly equal: no run is a sample of all rows."""
    rng = np.random.default_rng(1)
    numbers = np.concatenate([np.full(400, 0.5), np.arange(600.0), rng.normal(size=500)])
    table = pa.table({"x": numbers, "y": [f"w{i % 11}" for i in range(len(numbers))]})
    blocks = [table.slice(start, size) for start in range(0, len(numbers), size)]
    assert digest_row_blocks(blocks, run_bytes=2_000) == digest_released_rows(table)
    assert digest_row_blocks(blocks[:-1], run_bytes=2_000) != digest_released_rows(table)

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.rows import BLOCK, ArrayRows, canonical, cut, padded_product, pick, row_numbers
from ppdm_core.types import Block, Categorical, Numeric, Schema
from tests.contract.tables import LARGE, content, in_parts, table
from warehouse.parts import PartRows, write_parts


def numbered(n: int) -> Block:
    return Block(
        X=np.arange(n, dtype=np.float64)[:, None],
        C=np.arange(n, dtype=np.int32)[:, None],
        label=np.arange(n, dtype=np.int32),
        key=row_numbers(n),
        record=np.arange(n),
        start=0,
    )


def chunks(sizes: list[int]) -> list[Block]:
    whole, edges = numbered(sum(sizes)), np.cumsum([0, *sizes]).tolist()
    return [cut(whole, a, b) for a, b in pairwise(edges)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=20), st.integers(1, 9))
def test_canonical_blocks_do_not_depend_on_chunks(sizes, size):
    n = sum(sizes)
    blocks = list(canonical(chunks(sizes), size))
    assert [block.n for block in blocks] == [size] * (n // size) + [n % size] * bool(n % size)
    assert [block.start for block in blocks] == list(range(0, n, size))
    expected = numbered(n)
    for name in ("X", "C", "label", "key", "record"):
        got = [getattr(block, name) for block in blocks]
        assert not n or np.array_equal(np.concatenate(got), getattr(expected, name))


def test_single_rows_make_whole_blocks():
    blocks = list(canonical(chunks([1] * LARGE)))
    assert [block.n for block in blocks] == [BLOCK, LARGE - BLOCK]
    assert np.array_equal(np.concatenate([block.X for block in blocks]), numbered(LARGE).X)


def test_reduce_merges_in_block_order():
    rows = table(LARGE)
    assert rows.reduce(lambda block: [block.start], list.__add__) == [0, BLOCK]
    assert rows.reduce(lambda block: block.n, int.__add__) == LARGE


def test_map_may_drop_rows_and_change_columns():
    rows = table(LARGE)
    wanted = Schema((Numeric("first", 0.0, 1.0),))

    def step(block: Block) -> Block:
        return replace(pick(block, block.label == 1), X=block.X[block.label == 1, :1])

    mapped = rows.map(step, wanted)
    kept = rows.whole.label == 1
    assert mapped.n == kept.sum()
    assert mapped.schema == wanted
    assert np.array_equal(mapped.whole.X, rows.whole.X[kept, :1])
    assert np.array_equal(mapped.whole.key, rows.whole.key[kept])


def test_row_numbers_are_distinct_keys():
    keys = row_numbers(70_000)
    assert keys.shape == (70_000, 16)
    assert len(np.unique(keys, axis=0)) == 70_000
    assert np.array_equal(row_numbers(10), keys[:10])


@pytest.mark.parametrize("n", [1, 2, 7, 100, 4097, BLOCK - 1, BLOCK])
def test_padded_product_rounds_alike_wherever_a_record_stands(n):
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((BLOCK, 9)), rng.standard_normal((9, 4))
    whole = padded_product(X, A)
    assert np.array_equal(padded_product(X[-n:], A), whole[-n:])
    np.testing.assert_allclose(whole, X @ A, rtol=1e-12, atol=1e-12)


def test_parts_hold_the_same_blocks(tmp_path: Path):
    rows = table(LARGE)
    parts = in_parts(rows, tmp_path / "x")
    assert len(parts.parts()) == 4
    assert parts.n == LARGE
    for a, b in zip(rows.blocks(), parts.blocks(), strict=True):
        assert a.start == b.start
        for name in ("X", "C", "label", "key", "record"):
            one, two = getattr(a, name), getattr(b, name)
            assert one.dtype == two.dtype
            assert np.array_equal(one, two)


def test_parts_keep_categories_and_missing_labels(tmp_path: Path):
    schema = Schema((Numeric("x", 0.0, 9.0),), (Categorical("c", ("a", "b")),))
    rows = ArrayRows(
        schema,
        np.array([[1.0], [2.0], [3.0]]),
        label=np.array([-1, 0, 1], dtype=np.int32),
        C=np.array([[0], [1], [-1]], dtype=np.int32),
    )
    parts = write_parts(rows.blocks(), schema, tmp_path / "x")
    assert content(parts) == content(rows)


def test_mapped_parts_lie_beside_their_source(tmp_path: Path):
    source = in_parts(table(50), tmp_path / "x")
    before = content(source)
    mapped = [source.map(lambda block: replace(block, X=block.X + 1), source.schema) for _ in "ab"]
    assert len({source.folder, *(one.folder for one in mapped)}) == 3
    assert {one.folder.parent for one in mapped} == {tmp_path}
    assert all(isinstance(one, PartRows) for one in mapped)
    assert content(mapped[0]) == content(mapped[1]) != before
    assert content(source) == before


def test_parts_reduce_as_memory_does(tmp_path: Path):
    rows = table(LARGE)
    parts = in_parts(rows, tmp_path / "x")

    def total(stored):
        return stored.reduce(lambda block: block.X.sum(axis=0), np.add)

    assert np.array_equal(total(parts), total(rows))

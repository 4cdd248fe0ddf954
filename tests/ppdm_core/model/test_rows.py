from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.rows import (
    BLOCK,
    ArrayRows,
    Block,
    RowsView,
    add_counts,
    fold_blocks,
    make_position_keys,
    multiply_padded,
    regroup_blocks,
    select_rows,
    slice_rows,
    sum_counts,
)
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.tables import (
    KEY,
    LARGE,
    fit_sanitizer,
    make_table,
    read_bytes,
    scale_rows,
    store_in_parts,
)
from warehouse.parquet_parts import PartRows, write_parts


def make_numbered_block(n: int) -> Block:
    return Block(
        X=np.arange(n, dtype=np.float64)[:, None],
        C=np.arange(n, dtype=np.int32)[:, None],
        label=np.arange(n, dtype=np.int32),
        key=make_position_keys(n),
        record=np.arange(n),
        start=0,
    )


def make_chunks(sizes: list[int]) -> list[Block]:
    whole, edges = make_numbered_block(sum(sizes)), np.cumsum([0, *sizes]).tolist()
    return [slice_rows(whole, a, b) for a, b in pairwise(edges)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=20), st.integers(1, 9))
def test_regroup_blocks_any_chunks_same_blocks(sizes, size):
    n = sum(sizes)
    blocks = list(regroup_blocks(make_chunks(sizes), size))
    assert [block.n for block in blocks] == [size] * (n // size) + [n % size] * bool(n % size)
    assert [block.start for block in blocks] == list(range(0, n, size))
    expected = make_numbered_block(n)
    for name in ("X", "C", "label", "key", "record"):
        got = [getattr(block, name) for block in blocks]
        assert not n or np.array_equal(np.concatenate(got), getattr(expected, name))


def test_regroup_blocks_single_rows_fill_blocks():
    blocks = list(regroup_blocks(make_chunks([1] * LARGE)))
    assert [block.n for block in blocks] == [BLOCK, LARGE - BLOCK]
    assert np.array_equal(
        np.concatenate([block.X for block in blocks]), make_numbered_block(LARGE).X
    )


@pytest.mark.parametrize(
    ("blocks", "tree"),
    [(1, "0"), (3, "((01)2)"), (4, "((01)(23))"), (7, "(((01)(23))((45)6))")],
)
def test_fold_blocks_any_number_fixed_binary_tree(blocks: int, tree: str):
    made = regroup_blocks([make_numbered_block(blocks)], 1)
    assert fold_blocks(made, lambda block: str(block.start), "({}{})".format) == tree


def test_reduce_merges_in_block_order():
    rows = make_table(LARGE)
    assert rows.reduce(lambda block: [block.start], list.__add__) == [0, BLOCK]
    assert rows.reduce(lambda block: block.n, int.__add__) == LARGE


def test_map_may_drop_rows_and_change_columns():
    rows = make_table(LARGE)
    wanted = Schema((Numeric("first", 0.0, 1.0),))

    def step(block: Block) -> Block:
        return replace(select_rows(block, block.label == 1), X=block.X[block.label == 1, :1])

    mapped = rows.map(step, wanted)
    kept = rows.whole.label == 1
    assert mapped.n == kept.sum()
    assert mapped.schema == wanted
    assert np.array_equal(mapped.whole.X, rows.whole.X[kept, :1])
    assert np.array_equal(mapped.whole.key, rows.whole.key[kept])


@pytest.mark.parametrize("n", [1, 7, LARGE])
def test_map_may_add_rows(n):
    rows = make_table(n)
    copies = 1 + np.arange(n) % 4  # of each row; most blocks become larger
    mapped = rows.map(
        lambda block: select_rows(
            block, np.repeat(np.arange(block.n), copies[block.start : block.start + block.n])
        ),
        rows.schema,
    )
    assert mapped.n == copies.sum()
    for name in ("X", "C", "label", "key", "record"):
        got, given = getattr(mapped.whole, name), getattr(rows.whole, name)
        assert got.dtype == given.dtype
        assert np.array_equal(got, np.repeat(given, copies, axis=0))


def add_one(block: Block) -> Block:
    return replace(block, X=block.X + 1)


def test_rows_view_equals_stored_rows(tmp_path: Path):
    rows = make_table(LARGE)
    stored = rows.map(add_one, rows.schema).map(add_one, rows.schema)
    for source in (rows, store_in_parts(rows, tmp_path / "x")):
        view = RowsView(RowsView(source, add_one, rows.schema), add_one, rows.schema)
        assert read_bytes(view) == read_bytes(stored)
        assert view.n == LARGE
        mapped = view.map(add_one, rows.schema)
        assert type(mapped) is type(source)
        assert read_bytes(mapped) == read_bytes(stored.map(add_one, rows.schema))
        total = view.reduce(lambda block: block.X.sum(axis=0), np.add)
        assert np.array_equal(total, stored.reduce(lambda block: block.X.sum(axis=0), np.add))


def count_positive(block: Block) -> Block:
    counts = {"positive cells": int(np.count_nonzero(block.X > 0))}
    return replace(block, counts=add_counts(block.counts, counts))


@pytest.mark.parametrize("kind", ["memory", "parts"])
def test_map_counting_steps_sums_counts_over_blocks_and_passes(tmp_path: Path, kind):
    rows = make_table(LARGE)
    source = rows if kind == "memory" else store_in_parts(rows, tmp_path / "x")
    positive = int(np.count_nonzero(rows.whole.X > 0))
    once = source.map(count_positive, rows.schema)
    assert once.counts == {"positive cells": positive}
    assert source.counts == {}
    assert once.map(count_positive, rows.schema).counts == {"positive cells": 2 * positive}
    view = RowsView(RowsView(once, count_positive, rows.schema), add_one, rows.schema)
    assert view.counts == {"positive cells": 2 * positive}
    assert view.map(add_one, rows.schema).counts == {"positive cells": 2 * positive}
    assert view.whole.counts == sum_counts(view.blocks()) == {"positive cells": positive}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=9), st.integers(1, 9))
def test_regroup_blocks_chunks_with_counts_keep_sum(sizes, size):
    counted = [replace(chunk, counts={"rows": chunk.n}) for chunk in make_chunks(sizes)]
    assert sum_counts(regroup_blocks(counted, size)) == {"rows": sum(sizes)}


class CountedArrays(ArrayRows):
    passes = 0

    def blocks(self):
        self.passes += 1
        return super().blocks()


class CountedParts(PartRows):
    passes = 0

    def blocks(self):
        self.passes += 1
        return super().blocks()


class CountedNoise(Noise):
    draws = 0

    def bits(self, block, name, columns, fingerprint):
        self.draws += block.n
        return super().bits(block, name, columns, fingerprint)


@pytest.mark.parametrize("kind", ["memory", "parts"])
@pytest.mark.parametrize("shape", [{}, {"noise_shape": "per_component"}])
def test_pca_laplace_number_of_passes(tmp_path: Path, kind, shape):
    learning = 2  # moments, then scores
    plain = make_table(LARGE)
    rows: CountedArrays | CountedParts = CountedArrays(plain.schema, plain.whole.X)
    if kind == "parts":
        rows = CountedParts(plain.schema, store_in_parts(rows, tmp_path / "x").folder)
        rows.passes = 0
    sanitizer = PcaLaplace(components=2, b=0.3, basis="private", **shape)
    fitted = fit_sanitizer(sanitizer, rows)
    assert rows.passes == learning
    noise = CountedNoise(KEY)
    released = sanitizer.sanitize(scale_rows(rows, fitted), noise, fitted)
    assert rows.passes == learning + 1
    assert released.rows.n == noise.draws == LARGE
    read_bytes(released.rows)
    assert (rows.passes, noise.draws) == (learning + 1, LARGE)  # what is released is stored


def test_make_position_keys_are_distinct():
    keys = make_position_keys(70_000)
    assert keys.shape == (70_000, 16)
    assert len(np.unique(keys, axis=0)) == 70_000
    assert np.array_equal(make_position_keys(10), keys[:10])


@pytest.mark.parametrize("n", [1, 2, 7, 100, 4097, BLOCK - 1, BLOCK])
def test_multiply_padded_any_position_same_rounding(n):
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((BLOCK, 9)), rng.standard_normal((9, 4))
    whole = multiply_padded(X, A)
    assert np.array_equal(multiply_padded(X[-n:], A), whole[-n:])
    np.testing.assert_allclose(whole, X @ A, rtol=1e-12, atol=1e-12)


def test_part_rows_hold_same_blocks(tmp_path: Path):
    rows = make_table(LARGE)
    parts = store_in_parts(rows, tmp_path / "x")
    assert len(parts.parts()) == 4
    assert parts.n == LARGE
    for a, b in zip(rows.blocks(), parts.blocks(), strict=True):
        assert a.start == b.start
        for name in ("X", "C", "label", "key", "record"):
            one, two = getattr(a, name), getattr(b, name)
            assert one.dtype == two.dtype
            assert np.array_equal(one, two)


def test_part_rows_keep_categories_and_missing_labels(tmp_path: Path):
    schema = Schema((Numeric("x", 0.0, 9.0),), (Categorical("c", ("a", "b")),))
    rows = ArrayRows(
        schema,
        np.array([[1.0], [2.0], [3.0]]),
        label=np.array([-1, 0, 1], dtype=np.int32),
        C=np.array([[0], [1], [-1]], dtype=np.int32),
    )
    parts = write_parts(rows.blocks(), schema, tmp_path / "x")
    assert read_bytes(parts) == read_bytes(rows)


def test_part_rows_map_writes_next_to_source(tmp_path: Path):
    source = store_in_parts(make_table(50), tmp_path / "x")
    before = read_bytes(source)
    mapped = [source.map(lambda block: replace(block, X=block.X + 1), source.schema) for _ in "ab"]
    assert len({source.folder, *(one.folder for one in mapped)}) == 3
    assert {one.folder.parent for one in mapped} == {tmp_path}
    assert all(isinstance(one, PartRows) for one in mapped)
    assert read_bytes(mapped[0]) == read_bytes(mapped[1]) != before
    assert read_bytes(source) == before


def test_part_rows_reduce_equals_memory(tmp_path: Path):
    rows = make_table(LARGE)
    parts = store_in_parts(rows, tmp_path / "x")

    def total(stored):
        return stored.reduce(lambda block: block.X.sum(axis=0), np.add)

    assert np.array_equal(total(parts), total(rows))


def test_part_rows_pass_holds_few_blocks(tmp_path: Path):
    import pyarrow as pa

    columns = Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(2)))
    X = np.random.default_rng(0).random((40 * BLOCK, 2))
    parts = write_parts(ArrayRows(columns, X).blocks(), columns, tmp_path / "x")
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in parts.blocks()]
    assert len(held) == 40
    assert max(held) < X.nbytes / 2


@pytest.mark.slow
def test_reduce_files_of_1_7_and_64_blocks_same_bytes_as_in_memory(tmp_path: Path):
    """Rounding depends on the numbers of the blocks, not on the files that hold them."""
    rng = np.random.default_rng(3)
    columns = Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(2)))
    rows = ArrayRows(columns, rng.random((65 * BLOCK + 11, 2)))

    def compute_moments(stored):
        return stored.reduce(lambda block: block.X.T @ block.X, np.add).tobytes()

    expected = compute_moments(rows)
    blocks = list(rows.blocks())
    for size in (1, 7, 64):
        folder = tmp_path / str(size)
        for number, start in enumerate(range(0, len(blocks), size)):
            part = write_parts(blocks[start : start + size], columns, tmp_path / "part")
            folder.mkdir(exist_ok=True)
            part.parts()[0].rename(folder / f"part-{number:04d}.parquet")
            (tmp_path / "part").rmdir()
        assert compute_moments(PartRows(columns, folder)) == expected

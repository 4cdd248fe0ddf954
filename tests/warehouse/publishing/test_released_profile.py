"""The profile of a released table, against numpy on the complete table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.publishing.released_profile import (
    BINS,
    MAX_COLUMNS,
    OTHERS,
    ReleasedProfile,
    read_released_profile,
)

N = 40_000  # three blocks


def write(path: Path, columns: dict[str, object]) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=7_000)
    return path


def read(path: Path) -> ReleasedProfile:
    found = read_released_profile(path)
    assert found is not None
    return found


def test_read_released_profile_numbers_as_numpy_computes_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.laplace(1e6, 2.0, N)
    columns = {"x": x, "y": -3 * x + rng.normal(0, 6, N), "constant": np.full(N, 2.5)}
    found = read(write(tmp_path / "t.parquet", columns))
    assert (found.rows, found.columns) == (N, 3)
    for profile, values in zip(found.numbers, columns.values(), strict=True):
        assert profile.mean == pytest.approx(values.mean())
        assert profile.deviation == pytest.approx(values.std(), abs=1e-6)
    expected = np.round(np.corrcoef(x, columns["y"])[0, 1], 2)
    assert found.correlations == ((1.0, expected, 0.0), (expected, 1.0, 0.0), (0.0, 0.0, 0.0))
    first = found.numbers[0]
    inside = np.histogram(x, first.edges)[0]
    assert first.counts[1:-1] == tuple(inside[1:-1])
    assert first.counts[0] == np.sum(x < first.edges[1])  # with all values beyond
    assert sum(filter(None, found.numbers[2].counts)) == N


def test_read_released_profile_small_counts_are_left_out(tmp_path: Path) -> None:
    x = np.concatenate([np.zeros(500), [100.0] * 9])
    mood = ["calm"] * 480 + ["tense"] * 20 + ["rare"] * 8 + [None]
    found = read(write(tmp_path / "t.parquet", {"x": x, "mood": mood}))
    assert [count for count in found.numbers[0].counts if count is not None] == [500]
    (category,) = found.categories
    assert category.categories == ("calm", "tense", "rare", "(empty)")
    assert category.counts == (480, 20, None, None)


def test_read_released_profile_many_columns_first_ones_and_the_label(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    columns: dict[str, object] = {f"c{j:03d}": rng.random(200) for j in range(215)}
    found = read(write(tmp_path / "t.parquet", {**columns, "label": ["a", "b"] * 100}))
    assert (found.columns, len(found.numbers)) == (216, MAX_COLUMNS - 1)
    assert [each.name for each in found.categories] == ["label"]
    assert all(len(each.counts) == BINS for each in found.numbers)


def test_read_released_profile_many_categories_others_together(tmp_path: Path) -> None:
    words = [f"word {i % 30}" for i in range(3_000)]
    (found,) = read(write(tmp_path / "t.parquet", {"word": words})).categories
    assert found.categories[-1] == OTHERS and found.counts[-1] == 1_800


def test_read_released_profile_unreadable_or_empty_none(tmp_path: Path) -> None:
    assert read_released_profile(tmp_path / "none.parquet") is None
    (tmp_path / "text.parquet").write_text("text")
    assert read_released_profile(tmp_path / "text.parquet") is None
    assert read_released_profile(write(tmp_path / "t.parquet", {"x": np.zeros(0)})) is None

"""Which tables of a home hold the same data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tests.support.compared_tables import (
    ID,
    ComparedTables,
    append_rows,
    number_people,
    select_rows,
)
from warehouse.same_data import row_digests

PEOPLE = number_people(80)
COARSE = {  # few different values: no cell is rare, and some rows are there twice
    f"c{j}": list(np.random.default_rng(j).integers(0, 4, 300)) for j in range(7)
}


def without(table: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: cells for name, cells in table.items() if name not in names}


def rename(table: dict[str, Any]) -> dict[str, Any]:
    """Other names in another order."""
    return {f"other_{name}" if name != ID else ID: table[name] for name in reversed(table)}


def write_otherwise(table: dict[str, Any]) -> dict[str, Any]:
    """As a file of 32-bit floats would hold it."""
    return {
        name: cells if name == ID else [f" {np.float32(cell)!s}0" for cell in cells]
        for name, cells in table.items()
    }


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "nothing": dict,
    "one row deleted": lambda table: select_rows(table, range(1, len(table["c0"]))),
    "rows in another order": lambda table: select_rows(table, range(len(table["c0"]))[::-1]),
    "columns renamed": rename,
    "one column dropped": lambda table: without(table, "c0"),
    "two columns dropped, others renamed": lambda table: rename(without(table, "c0", "c5")),
    "a column added": lambda table: table | {"new": list(range(7, 7 + 3 * len(table["c0"]), 3))},
    "a column replaced": lambda table: table | {"c1": list(np.arange(len(table["c0"])) % 13)},
    "every row three times": lambda table: append_rows(append_rows(table, table), table),
    "a third of the rows replaced": lambda table: replace_rows(table, 1 / 3),
}


def replace_rows(table: dict[str, Any], share: float) -> dict[str, Any]:
    """Replace rows by others of the same kind."""
    n = len(table["c0"])
    kept = select_rows(table, range(int(share * n), n))
    rng = np.random.default_rng(9)
    columns = [name for name in table if name != ID]
    others = {name: rng.permutation(np.asarray(table[name])) for name in columns}
    others |= {ID: [f"new {i}" for i in range(n)]} if ID in table else {}
    return append_rows(kept, select_rows(others, range(int(share * n))))


def keep_first(names: Iterable[str]) -> list[Any]:
    """Return the first case for the normal suite; the others are slow."""
    first, *others = names
    return [first, *(pytest.param(name, marks=pytest.mark.slow) for name in others)]


@pytest.mark.extended
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "table", [PEOPLE, pytest.param(COARSE, marks=pytest.mark.slow)], ids=["people", "coarse"]
)
def test_store_sketch_changed_table_same_group(
    home: ComparedTables, table: dict[str, Any], change: str
) -> None:
    home.add(table)
    assert home.add(CHANGES[change](dict(table)), "other name").groups == [1]


def test_store_sketch_other_format_same_group(home: ComparedTables) -> None:
    home.add(PEOPLE)
    assert home.add(write_otherwise(PEOPLE), "other name").groups == [1]


@pytest.mark.extended
@pytest.mark.parametrize("table", [PEOPLE, COARSE], ids=["people", "coarse"])
def test_store_sketch_fewer_than_half_other_group(
    home: ComparedTables, table: dict[str, Any]
) -> None:
    home.add(table)
    assert home.add(replace_rows(dict(table), 0.6)).groups == [2]
    assert 1 in home.add(replace_rows(dict(table), 0.4)).groups


@pytest.mark.extended
def test_store_sketch_records_recognised_by_other_columns_in_turn(home: ComparedTables) -> None:
    """Three of the columns come again with new ones, then the new ones alone."""
    old, new = number_people(80, columns=6), number_people(80, columns=12, seed=3)
    half_new = without(new, "c0", "c1", "c2") | {name: old[name] for name in ("c3", "c4", "c5")}
    assert [home.add(table).groups for table in (old, half_new)] == [[1], [1]]
    assert home.add(without(half_new, "c3", "c4", "c5")).groups == [1]


def test_store_sketch_excluded_column_same_group(home: ComparedTables) -> None:
    home.add(COARSE)
    assert home.add(COARSE, exclude=["c0", "c1"]).groups == [1]


def test_store_sketch_same_source_same_group(home: ComparedTables) -> None:
    """Also of a table in which no record can be recognised."""
    table = {"c0": [0, 1] * 30, "c1": [0, 0, 1] * 20}
    home.add(table, source="file")
    assert home.add(table, "other").groups == [2]
    assert home.add(table, "third", source="file").groups == [1]


@pytest.mark.extended
def test_store_sketch_two_groups_member_of_both(home: ComparedTables) -> None:
    home.add(PEOPLE)
    other = number_people(80, seed=2)
    home.add(other)
    assert home.add(append_rows(PEOPLE, other)).groups == [1, 2]


def draw_integers(seed: int, n: int, columns: int, largest: int) -> dict[str, Any]:
    cells = np.random.default_rng(seed).integers(0, largest + 1, (n, columns))
    return {f"c{j}": list(cells[:, j]) for j in range(columns)}


def draw_survey(seed: int, n: int = 200) -> dict[str, Any]:
    """Running numbers, ages, years and counts: what unrelated tables have in common."""
    rng = np.random.default_rng(seed)
    return {
        "row": list(range(1, n + 1)),
        "case": [f"C-{i:04d}" for i in range(n)],
        "day": list(np.datetime64("2024-01-01") + np.arange(n)),
        "age": list(rng.integers(18, 90, n)),
        "year": list(rng.integers(1950, 2021, n)),
        "children": list(rng.poisson(1, n)),
        "claims": list(np.where(rng.random(n) < 0.8, 0, rng.integers(1, 500, n))),
        "score": list(rng.integers(0, 300, n)),
    }


UNRELATED: dict[str, Callable[[int], dict[str, Any]]] = {
    "three columns of few values": lambda seed: draw_integers(seed, 200, 3, 5),
    "wide, as many values as rows": lambda seed: draw_integers(seed, 200, 20, 200),
    "narrow, as many values as rows": lambda seed: draw_integers(seed, 60, 4, 60),
    "survey": draw_survey,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", keep_first(UNRELATED))
def test_store_sketch_unrelated_small_integers_other_groups(
    home: ComparedTables, kind: str
) -> None:
    found = [home.add(UNRELATED[kind](seed)).groups for seed in range(1, 6)]
    assert found == [[number] for number in range(1, 6)]


@pytest.mark.slow
def test_store_sketch_part_of_population_other_group(home: ComparedTables) -> None:
    """A small table beside a large one of the same few values."""
    home.add(draw_integers(1, 4000, 3, 15))
    for seed in range(2, 6):
        assert home.add(draw_integers(seed, 80, 3, 15)).groups == [seed]


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of more than 500 records are compared by samples."""
    monkeypatch.setattr(row_digests, "MAX_RECORDS", 500)


@pytest.mark.extended
@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(
    "change", keep_first(["one row deleted", "columns renamed", "one column dropped"])
)
def test_store_sketch_sampled_table_same_group(home: ComparedTables, change: str) -> None:
    table = number_people(3000)
    first = home.add(table)
    assert first.records < 700
    assert home.add(CHANGES[change](table), "other").groups == [1]
    assert home.add(number_people(3000, seed=2)).groups == [3]


@pytest.mark.extended
@pytest.mark.usefixtures("samples")
def test_store_sketch_sampled_table_of_few_values_same_group(home: ComparedTables) -> None:
    table = draw_integers(1, 3000, 6, 5)
    home.add(table)
    assert home.add(CHANGES["one row deleted"](table), "other").groups == [1]
    assert home.add(draw_integers(2, 3000, 6, 5)).groups == [3]


@pytest.mark.extended
@pytest.mark.usefixtures("samples")
def test_store_sketch_part_of_sampled_table_same_group(home: ComparedTables) -> None:
    table = number_people(3000)
    home.add(table)
    assert home.add(select_rows(table, range(400)), "other").groups == [1]
    assert home.add(replace_rows(table, 0.7)).groups == [3]


def draw_categories(seed: int, n: int, columns: int) -> dict[str, Any]:
    """Categories of which the first has half of the records, the second a quarter, and so on."""
    cells = np.minimum(np.random.default_rng(seed).geometric(0.5, (n, columns)), 8)
    return {f"c{j}": [f"category {cell}" for cell in cells[:, j]] for j in range(columns)}


def draw_questionnaire(seed: int, n: int) -> dict[str, Any]:
    ages = {"age": list(np.random.default_rng(seed).integers(18, 90, n))}
    return ages | draw_integers(seed + 50, n, 9, 4)


SAMPLED: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "small integers": lambda seed, n: draw_integers(seed, n, 6, 5),
    "binary columns": lambda seed, n: draw_integers(seed, n, 12, 1),
    "answers on a scale of five": lambda seed, n: draw_integers(seed, n, 10, 4),
    "most rows repeated": lambda seed, n: draw_integers(seed, n, 5, 3),
    "skewed categories": lambda seed, n: draw_categories(seed, n, 6),
    "questionnaire with ages": draw_questionnaire,
}


@pytest.mark.extended
@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("kind", keep_first(SAMPLED))
def test_store_sketch_sampled_unrelated_tables_other_groups(
    home: ComparedTables, kind: str
) -> None:
    """Also a small one, which is stored as a whole."""
    sizes = (2000, 2000, 400)
    found = [home.add(SAMPLED[kind](seed, n)).groups for seed, n in enumerate(sizes)]
    assert found == [[1], [2], [3]]


@pytest.mark.usefixtures("samples")
def test_store_sketch_unrelated_table_of_combinations_that_a_sample_shows_once_other_group(
    home: ComparedTables,
) -> None:
    """Half of the earlier records have few combinations, and the sample holds most of them once."""
    repeated, varied = draw_integers(1, 2000, 5, 3), draw_integers(2, 2000, 5, 30)
    own = {"own": list(np.random.default_rng(3).normal(0, 1, 4000))}
    home.add(append_rows(repeated, varied) | own)
    assert home.add(draw_integers(4, 400, 5, 3)).groups == [2]


SAMPLED_CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "one row deleted, columns renamed": lambda table: rename(CHANGES["one row deleted"](table)),
    "three columns dropped": lambda table: without(table, "c0", "c3", "c5"),
    "a column added": CHANGES["a column added"],
    "a third of the rows replaced": CHANGES["a third of the rows replaced"],
}


@pytest.mark.extended
@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("change", SAMPLED_CHANGES)
def test_store_sketch_sampled_table_without_rare_values_changed_same_group(
    home: ComparedTables, change: str
) -> None:
    table = draw_questionnaire(1, 2000)
    home.add(table)
    assert home.add(SAMPLED_CHANGES[change](table), "other").groups == [1]


@pytest.mark.slow
def test_store_sketch_large_tables_as_small_ones(home: ComparedTables) -> None:
    """More records than are stored, without a change of that number."""
    n = 120_000
    table = {ID: list(range(n))} | draw_questionnaire(1, n)
    assert home.add(table).records < 55_000
    changed = rename(without(CHANGES["one row deleted"](table), "c3", "c5"))
    assert home.add(changed, "other").groups == [1]
    renumbered = table | {ID: list(range(n, 2 * n))}
    found = home.add(renumbered)
    assert found.groups == [1] and found.renumbered > 0.9 * n
    for number, unrelated in enumerate((draw_questionnaire(2, n), draw_integers(3, n, 8, 4)), 4):
        assert home.add(unrelated, "others").groups == [number]

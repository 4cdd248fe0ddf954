"""Records that come again with another id."""

from __future__ import annotations

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

PEOPLE = number_people(60)


def with_ids(table: dict[str, Any], start: int, stop: int, prefix: str) -> dict[str, Any]:
    """Give other ids to some of the rows."""
    ids = [f"{prefix}{i}" if start <= i < stop else name for i, name in enumerate(table[ID])]
    return table | {ID: ids}


def test_count_renumbered_first_table_none(home: ComparedTables) -> None:
    found = home.add(PEOPLE)
    assert (found.unknown, found.renumbered) == (60, 0)


@pytest.mark.extended
def test_count_renumbered_stable_ids_none(home: ComparedTables) -> None:
    """Also in another order, with changed, deleted and added records."""
    home.add(PEOPLE)
    kept = select_rows(PEOPLE, range(59, 4, -1))
    kept["c0"] = list(np.random.default_rng(5).random(55))
    new = with_ids(number_people(7, seed=2), 0, 7, "new ")
    found = home.add(append_rows(kept, new))
    assert (found.unknown, found.renumbered) == (7, 0)


@pytest.mark.extended
@pytest.mark.parametrize("count", [10, 60])
def test_count_renumbered_other_ids_counted(home: ComparedTables, count: int) -> None:
    home.add(PEOPLE)
    found = home.add(with_ids(PEOPLE, 0, count, "q"))
    assert (found.unknown, found.renumbered) == (count, count)


@pytest.mark.extended
def test_count_renumbered_ids_of_an_earlier_table_counted(home: ComparedTables) -> None:
    """Another table of the dataset lies between."""
    home.add(PEOPLE)
    home.add(with_ids(number_people(60, seed=2), 0, 60, "r"))
    found = home.add(with_ids(PEOPLE, 0, 60, "q"))
    assert (found.unknown, found.renumbered) == (60, 60)


@pytest.mark.extended
def test_count_renumbered_new_values_no_evidence(home: ComparedTables) -> None:
    home.add(PEOPLE)
    found = home.add(with_ids(number_people(60, seed=2), 0, 60, "q"))
    assert (found.unknown, found.renumbered) == (60, 0)


@pytest.mark.extended
def test_count_renumbered_other_dataset_none(home: ComparedTables) -> None:
    """Its ledger has other accounts, and the ids are not compared."""
    home.add(PEOPLE)
    found = home.add(with_ids(PEOPLE, 0, 60, "q"), "others")
    assert (found.unknown, found.renumbered) == (60, 0)


@pytest.mark.extended
def test_count_renumbered_record_comes_again_beside_itself_none(home: ComparedTables) -> None:
    """New visits of known patients, whose earlier visits are still in the table."""
    home.add(PEOPLE)
    again = with_ids(select_rows(PEOPLE, range(20)), 0, 20, "visit ")
    found = home.add(append_rows(PEOPLE, again | {"c0": list(range(1000, 1040, 2))}))
    assert (found.unknown, found.renumbered) == (20, 0)


@pytest.mark.extended
def test_count_renumbered_ids_known_after_that_none(home: ComparedTables) -> None:
    home.add(PEOPLE)
    home.add(with_ids(PEOPLE, 0, 60, "q"))
    for prefix in ("p", "q"):
        found = home.add(with_ids(PEOPLE, 0, 60, prefix))
        assert (found.unknown, found.renumbered) == (0, 0)


def test_count_renumbered_copies_of_each_row_counted(home: ComparedTables) -> None:
    copies = append_rows(PEOPLE, with_ids(PEOPLE, 0, 60, "copy "))
    home.add(copies)
    found = home.add(with_ids(copies, 0, 120, "q"))
    assert (found.unknown, found.renumbered) == (120, 120)


@pytest.mark.extended
def test_count_renumbered_cohorts_of_few_values_none(home: ComparedTables) -> None:
    """New people every time, with values that others had."""
    for cohort in range(4):
        cells = np.random.default_rng(cohort).integers(0, 6, (300, 4))
        ids = {ID: [f"{cohort}-{i}" for i in range(300)]}
        found = home.add(ids | {f"c{j}": list(cells[:, j]) for j in range(4)})
        assert found.unknown == 300
        assert found.renumbered == 0


@pytest.mark.extended
def test_count_renumbered_turnover_of_few_values_few(home: ComparedTables) -> None:
    """A third of the people is replaced every time, by people with values that others had."""
    rng = np.random.default_rng(1)
    cells, ids = rng.integers(0, 9, (300, 4)), np.arange(300)
    for week in range(6):
        names = {ID: [f"p{i}" for i in ids]}
        found = home.add(names | {f"c{j}": list(cells[:, j]) for j in range(4)})
        assert found.groups == [1]
        assert found.renumbered < 0.3 * found.unknown
        gone = rng.choice(300, 100, replace=False)
        cells[gone] = rng.integers(0, 9, (100, 4))
        ids[gone] = np.arange(100) + 1000 * (week + 1)


@pytest.mark.extended
def test_count_renumbered_sampled_table_estimated(
    home: ComparedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_digests, "MAX_RECORDS", 500)
    table = number_people(3000)
    home.add(table)
    found = home.add(with_ids(table, 0, 3000, "q"))
    assert found.unknown == pytest.approx(3000, rel=0.15)
    assert found.renumbered > 0.6 * found.unknown
    assert home.add(with_ids(table, 0, 3000, "p")).renumbered < 100

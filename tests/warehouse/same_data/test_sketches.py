"""What is stored of the records of a table, and how it is protected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.errors import Refused
from tests.support.compared_tables import ComparedTables, number_people, open_tables, select_rows
from tests.support.slow_cases import mark_slow
from warehouse.integrity.history import CHECKS, check_history
from warehouse.same_data import sketch_check
from warehouse.same_data.sketch_check import check_sketches

PEOPLE = number_people(30)


@pytest.mark.extended
def test_store_sketch_same_records_adds_nothing(home: ComparedTables) -> None:
    first = home.add(PEOPLE)
    assert first.records == 30 and first.values == 6 * 30
    again = home.add(select_rows(PEOPLE, range(2, 30)))
    assert (again.records, again.values) == (0, 0)
    other = home.add(PEOPLE, "others")  # only what the ledger of the other dataset calls them
    assert (other.records, other.values) == (30, 0)


@pytest.mark.extended
def test_store_sketch_changed_cells_adds_little(home: ComparedTables) -> None:
    home.add(PEOPLE)
    changed = home.add(PEOPLE | {"c0": list(np.linspace(1.5, 3.3, 30))})
    assert (changed.groups, changed.values) == ([1], 0)
    changed = home.add(PEOPLE | {f"c{j}": number_people(30, seed=8)[f"c{j}"] for j in range(4)})
    assert changed.groups != [1] and changed.values == 6 * 30


def test_store_sketch_two_homes_no_common_digest(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        with open_tables(tmp_path / name) as home:
            home.add(PEOPLE)
            rows = home.db.execute("select name, column_name, digest from audit.record_value")
            found.append(rows.fetchnumpy())
    for column in ("name", "column_name", "digest"):
        one, two = (set(each[column].tolist()) - {0} for each in found)
        assert len(one) > 1 and not one & two


ONE_RECORD = "where name = (select min(name) from audit.record)"
ONE_VALUE = "where digest = (select min(digest) from audit.record_value)"
EDITS = [
    "delete from audit.sketch",
    "delete from audit.record",
    "delete from audit.record_value",
    f"delete from audit.record_value {ONE_VALUE}",
    f"delete from audit.record {ONE_RECORD}",
    f"update audit.record_value set digest = digest - 1 {ONE_VALUE}",
    f"update audit.record_value set is_rare = not is_rare {ONE_VALUE}",
    "update audit.record_value set data_group = 2",
    f"update audit.record set data_group = 2 {ONE_RECORD}",
    f"update audit.record set account = 1 {ONE_RECORD}",
    f"update audit.record set sampled_share = 0.5 {ONE_RECORD}",
    f"update audit.record set sketch = 2 {ONE_RECORD}",
    "update audit.sketch set data_groups = '[2]'",
    "update audit.sketch set renumbered = 1",
    "insert into audit.record values (2, 1, 1, 1, 1, 1)",
]


@pytest.mark.extended
@pytest.mark.parametrize("edit", mark_slow(EDITS, EDITS[::4]))
def test_check_sketches_edited_refused(home: ComparedTables, edit: str) -> None:
    home.add(PEOPLE)
    check_sketches(home.db)
    home.db.execute(edit)
    with pytest.raises(Refused):
        check_sketches(home.db)
    with pytest.raises(Refused):
        home.add(PEOPLE, "others")


def test_check_history_sketch_deleted_with_its_records_refused(home: ComparedTables) -> None:
    """Nothing is left that contradicts it, except the event that names it."""
    home.add(PEOPLE)
    for table in ("audit.sketch", "audit.record", "audit.record_value"):
        home.db.execute(f"delete from {table}")
    check_sketches(home.db)
    with pytest.raises(Refused, match="A row that Event"):
        check_history(home.db)


def test_check_history_checks_sketches() -> None:
    assert check_sketches in CHECKS


@pytest.mark.extended
def test_check_sketches_batches_checked_all(
    home: ComparedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketch_check, "MAX_CHECKED_ROWS", 300)
    for seed in range(1, 4):
        home.add(number_people(20, seed=seed))
    check_sketches(home.db)
    home.db.execute("update audit.record set account = 1 where sketch = 3")
    with pytest.raises(Refused, match="people-0003"):
        check_sketches(home.db)

from __future__ import annotations

from pathlib import Path

import pytest

from ppdm_core.model.errors import Refused
from tests.support.contexts import create_home
from warehouse.database import Store
from warehouse.integrity.history import check_history
from warehouse.tunes import (
    BEGUN,
    ENDED,
    Records,
    count_tried_settings,
    find_last_tune,
    list_tune_events,
    record_begin,
    store_tune,
)

LIMITS = {"record_linkage.rate": 0.05}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(create_home(tmp_path / "home"))


RECORDS = Records("data", "source")


def begin(
    store: Store,
    plan: str = "p",
    settings: tuple[str, ...] = ("a", "b"),
    records: Records = RECORDS,
) -> None:
    with store.transaction("tests") as db:
        record_begin(db, "people", plan, records, settings, LIMITS)


def end(store: Store, plan: str = "p") -> int:
    with store.transaction("tests") as db:
        return store_tune(
            db, "people", plan, data="data", policy="q", outcome="proposed", result={"x": 1.5}
        )


def test_record_begin_continued_tune_one_event(store: Store) -> None:
    begin(store)
    begin(store)
    with store.transaction("tests") as db:
        assert [kind for kind, _ in list_tune_events(db, "people")] == [BEGUN]


def test_record_begin_after_the_end_another_event(store: Store) -> None:
    begin(store)
    assert end(store) == 1
    begin(store)
    assert end(store) == 2
    with store.transaction("tests") as db:
        kinds = [kind for kind, _ in list_tune_events(db, "people")]
        assert kinds == [BEGUN, ENDED, BEGUN, ENDED]
        check_history(db)
        found = find_last_tune(db, "people")
    assert found is not None and (found.number, found.result) == (2, {"x": 1.5})


def test_count_tried_settings_killed_tune_counts_and_equal_settings_once(store: Store) -> None:
    begin(store, "p", ("a", "b"))
    begin(store, "q", ("b", "c"))
    with store.transaction("tests") as db:
        assert count_tried_settings(db, "people", Records("other", "other")) == 3
        assert count_tried_settings(db, "renamed", Records("data", "other")) == 3
        assert count_tried_settings(db, "renamed", Records("other", "source")) == 3
        assert count_tried_settings(db, "renamed", Records("other", "other")) == 0
        assert count_tried_settings(db, "people", RECORDS, ["c", "d"]) == 4


def test_count_tried_settings_other_columns_count_again(store: Store) -> None:
    begin(store, "p", ("a", "b"))
    begin(store, "q", ("a", "b"), Records("other columns", "source"))
    with store.transaction("tests") as db:
        assert count_tried_settings(db, "people", RECORDS) == 4


@pytest.mark.slow
def test_find_last_tune_edited_result_refused(store: Store) -> None:
    begin(store)
    end(store)
    with store.transaction("tests") as db:
        db.execute("update audit.tune set result = '{}'")
    with store.transaction("tests") as db, pytest.raises(Refused):
        find_last_tune(db, "people")

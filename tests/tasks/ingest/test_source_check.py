"""What `ppdm check` reports about changes since the last run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppdm.cli.check import format_check
from tasks.ingest.source_check import MIN_COMMON_RECORDS, check_source
from tests.support.stewards import Steward, numbers


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    return Steward(tmp_path, numbers(2 * MIN_COMMON_RECORDS))


def find_restless(steward: Steward) -> dict[str, float]:
    found = check_source(steward.build_context())["restless_columns"]
    assert isinstance(found, dict)
    return found


def test_check_source_first_release_no_restless_columns(steward: Steward) -> None:
    context = steward.build_context()
    assert check_source(context)["restless_columns"] == {}
    assert not Path(context.home, "private", "warehouse.duckdb").exists()


def test_check_source_column_changed_everywhere_reported(steward: Steward) -> None:
    steward.release()
    assert find_restless(steward) == {}
    before = dict(steward.rows)
    for i, (name, (x, y)) in enumerate(before.items()):
        steward.rows[name] = (x / 2, y / 2 if i < 10 else y)
    assert find_restless(steward) == {"x": 1.0}
    # Written otherwise, it is the same number; people who are new have not changed.
    steward.rows = {name: (f"{x!r}0", y) for name, (x, y) in before.items()}
    steward.rows |= {f"new {i}": (0.5, 0.5) for i in range(50)}
    assert find_restless(steward) == {}


def test_check_source_few_common_records_not_reported(steward: Steward) -> None:
    steward.release()
    few = list(steward.rows)[: MIN_COMMON_RECORDS - 1]
    steward.rows = dict.fromkeys(few, (0.5, 0.5))
    assert find_restless(steward) == {}


def test_check_source_without_ids_not_reported(steward: Steward) -> None:
    steward.record_id = None
    steward.release()
    steward.rows = numbers(2 * MIN_COMMON_RECORDS, seed=2)
    assert find_restless(steward) == {}


def test_format_check_restless_column_named_with_remedy(steward: Steward) -> None:
    steward.release()
    steward.rows = {name: (x / 2, y) for name, (x, y) in steward.rows.items()}
    context = steward.build_context()
    text = format_check(Path("release.toml"), context, check_source(context))
    assert "'x' changed in 100 % of the records" in text and "Exclude it" in text

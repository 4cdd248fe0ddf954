"""What `ppdm check` reports about changes since the last run, and about the label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.check import format_check
from ppdm_core.model.policy import Limit, Policy
from tasks.ingest.source_check import MIN_COMMON_RECORDS, check_source
from tests.support.stewards import COLUMNS, Steward, numbers
from warehouse.columns import Column


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    return Steward(tmp_path, numbers(2 * MIN_COMMON_RECORDS))


def find_frequently_changed(steward: Steward) -> dict[str, float]:
    found = check_source(steward.build_context())["frequently_changed_columns"]
    assert isinstance(found, dict)
    return found


def test_check_source_first_release_no_frequently_changed_columns(steward: Steward) -> None:
    context = steward.build_context()
    warehouse = Path(context.home, "private", "warehouse.duckdb")
    warehouse.unlink()
    assert check_source(context)["frequently_changed_columns"] == {}
    assert not warehouse.exists()


@pytest.mark.extended
def test_check_source_column_changed_everywhere_reported(steward: Steward) -> None:
    steward.release()
    assert find_frequently_changed(steward) == {}
    before = dict(steward.rows)
    for i, (name, (x, y)) in enumerate(before.items()):
        steward.rows[name] = (x / 2, y / 2 if i < 10 else y)
    assert find_frequently_changed(steward) == {"x": 1.0}
    # Written otherwise, it is the same number; people who are new have not changed.
    steward.rows = {name: (f"{x!r}0", y) for name, (x, y) in before.items()}
    steward.rows |= {f"new {i}": (0.5, 0.5) for i in range(50)}
    assert find_frequently_changed(steward) == {}


@pytest.mark.extended
def test_check_source_few_common_records_not_reported(steward: Steward) -> None:
    steward.release()
    few = list(steward.rows)[: MIN_COMMON_RECORDS - 1]
    steward.rows = dict.fromkeys(few, (0.5, 0.5))
    assert find_frequently_changed(steward) == {}


@pytest.mark.extended
def test_check_source_without_ids_not_reported(steward: Steward) -> None:
    steward.record_id = None
    steward.release()
    steward.rows = numbers(2 * MIN_COMMON_RECORDS, seed=2)
    assert find_frequently_changed(steward) == {}


@pytest.mark.extended
def test_format_check_changed_column_named_with_remedy(steward: Steward) -> None:
    steward.release()
    steward.rows = {name: (x / 2, y) for name, (x, y) in steward.rows.items()}
    context = steward.build_context()
    text = format_check(Path("release.toml"), context, check_source(context))
    assert "'x' changed in 100 % of the records" in text and "Exclude it" in text


def check_label(folder: Path, labels: list[str], **limits: Any) -> str:
    """Return the text of `ppdm check` for a table with these labels and an excluded salary."""
    rows = {
        f"p{i}": (x, y, label, 100 * sum(map(ord, label)) + i % 2)
        for i, (label, (x, y)) in enumerate(zip(labels, numbers(len(labels)).values(), strict=True))
    }
    categories = tuple(sorted(set(labels)))
    columns = (
        *COLUMNS,
        Column("group", "label", "categorical", categories=categories),
        Column("salary", "exclude"),
    )
    steward = Steward(folder, rows, columns)
    given = {name.replace("_", "."): limit for name, limit in limits.items()}
    steward.policy = Policy((), given, shadow_draws=1, splits=0)
    context = steward.build_context()
    return format_check(Path("release.toml"), context, check_source(context))


LABEL_LIMIT = Limit(0.05, "DPO", "1 in 20")


def test_check_label_large_classes_only_revealed_column_named(tmp_path: Path) -> None:
    text = check_label(tmp_path, ["a", "b"] * 60, label_rate=LABEL_LIMIT)
    assert text.count("label 'group'") == 1
    assert "reveals column 'salary', which is not released" in text


def test_check_label_small_class_warned(tmp_path: Path) -> None:
    text = check_label(tmp_path, ["a"] * 60 + ["b"] * 49, label_rate=LABEL_LIMIT)
    assert "classes of fewer than 50 records (the smallest has 49)" in text
    assert "counts against the limits on attacks" in text


def test_check_label_limit_broken_or_missing_said(tmp_path: Path) -> None:
    labels = [f"c{i // 10}" for i in range(120)]
    text = check_label(tmp_path, labels, label_rate=LABEL_LIMIT)
    assert "alone finds the rows of 10.00% of the persons, which breaks the limit" in text
    text = check_label(tmp_path, labels)
    assert "No limit is on label.rate: no release with a label passes without one." in text


@pytest.mark.parametrize(
    ("size", "words"), [(1, "as an identifier has"), (2, "finds the rows of 50%")]
)
def test_check_label_that_identifies_said(tmp_path: Path, size: int, words: str) -> None:
    text = check_label(tmp_path, [f"c{i // size}" for i in range(80)], label_rate=LABEL_LIMIT)
    assert words in text and "no release can have it" in text

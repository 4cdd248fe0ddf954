"""What a release stores about the expectations of its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw, validate
from tests.support.contexts import make_context
from warehouse.expectations import Expectation

MEAN = "expect_column_mean_to_be_between"  # of x: 0.40625
MET = Expectation(MEAN, "x", max_value=0.75)
NOT_MET = Expectation(MEAN, "x", max_value=0.25)
ROWS = Expectation("expect_table_row_count_to_be_between", min_value=2.0)


def build_context(folder: Path, *expectations: Expectation) -> ReleaseContext:
    (folder / "t.csv").write_text("id,x,y\n1,0.3125,0.5\n2,0.5,0.25\n")
    return make_context(folder, expectations=expectations)


def read_events(context: ReleaseContext) -> dict[str, dict[str, Any]]:
    """Return the detail of each event, by its kind."""
    with context.open_store().transaction() as db:
        rows = db.execute("select kind, detail from meta.event").fetchall()
    return {kind: json.loads(detail) for kind, detail in rows}


def test_validate_expectations_met_stored_without_values(tmp_path: Path) -> None:
    context = build_context(tmp_path, MET, ROWS)
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    validate.fn(context, release_id)
    assert read_events(context)["validated"]["expectations"] == [
        {"type": MEAN, "column": "x", "passed": True},
        {"type": ROWS.type, "column": None, "passed": True},
    ]


def test_validate_expectation_not_met_rejected_and_stored(tmp_path: Path) -> None:
    context = build_context(tmp_path, ROWS, NOT_MET, MET)
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    with pytest.raises(BadInput, match=f"Column 'x' of t.csv does not meet {MEAN}") as caught:
        validate.fn(context, release_id)
    detail = read_events(context)["rejected"]
    assert [each["passed"] for each in detail["expectations"]] == [True, False, True]
    assert detail["column"] == "x"
    for text in (str(caught.value), json.dumps(detail)):
        assert "0.25" in text
        assert "0.40625" not in text
        assert "0.406" not in text


def test_validate_without_expectations_none_stored(tmp_path: Path) -> None:
    context = build_context(tmp_path)
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    validate.fn(context, release_id)
    assert read_events(context)["validated"]["expectations"] == []

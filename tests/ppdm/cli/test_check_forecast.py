"""What `ppdm check` says of the release that would follow, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.check import check_release_file
from ppdm.cli.result import CommandResult, build_failure, build_json
from ppdm_core.model.errors import BadInput
from tests.support.small_release import Small, small_rows

CANARY = "qzxcanary"
NUMBER = "7.1234567"


@pytest.fixture
def small(tmp_path: Path) -> Small:
    small = Small(tmp_path, "small", {}, small_rows(120))
    small.content["sanitizer"] = {"method": "additive_noise", "b": 0.3}
    small.content["audit"] |= {"required": ["record_linkage"], "splits": 0}
    kept = ("amplification.record", "record_linkage.rate", "label.rate")
    small.content["limits"] = {name: small.content["limits"][name] for name in kept}
    return small


def spoil(small: Small) -> None:
    """Plant canaries where cells are dropped, changed, excluded or identify."""
    for i, row in enumerate(small.rows):
        row["person"] = f"{CANARY}{i}"
        row["notes"] = CANARY
        row["height"] = f"{float(NUMBER) + i * 1e-7:.7f}"
    small.rows[3]["mood"] = f"{CANARY}mood"
    small.rows[4]["pulse"] = ""
    small.rows[5]["iron"] = "99.1234567"
    small.rows[6]["weight"] = ""
    small.content["columns"]["mood"]["outside"] = "drop_row"
    small.content["columns"]["pulse"]["missing"] = "drop_row"
    small.content["columns"]["weight"]["missing"] = "median"


def check(small: Small) -> tuple[str, dict[str, Any]]:
    result = check_release_file(small.write().file)
    return result.text, result.payload


def check_no_cell(result: CommandResult) -> None:
    shown = result.text + json.dumps(build_json("check", result))
    assert CANARY not in shown
    for digits in ("1234567", "99.1"):
        assert digits not in shown


@pytest.mark.slow
def test_check_changes_foretold_as_counts_without_any_cell(small: Small) -> None:
    spoil(small)
    result = check_release_file(small.write().file)
    changes = result.payload["changes"]
    assert changes == {
        "dropped_rows": 2,
        "dropped_empty": {"pulse": 1},
        "dropped_unlisted": {"mood": 1},
        "clamped": {"iron": 1},
        "imputed": {"weight": 1},
        "other": {},
    }
    assert (
        "Rows that will be dropped: 2 (an empty cell in 'pulse' 1; a category not listed in "
        "'mood' 1; a row may count for several columns)." in result.text
    )
    assert "moved to the bounds of their column: 'iron' 1." in result.text
    assert "filled with the median of their column: 'weight' 1." in result.text
    check_no_cell(result)
    assert result.payload["ledger"]["records"] == 118
    assert not small.home.exists()


def test_check_several_bad_columns_all_said_without_any_cell(small: Small) -> None:
    spoil(small)
    del small.content["columns"]["weight"]["missing"]
    for row in small.rows[10:13]:
        row["iron"] = row["height"] = CANARY
    with pytest.raises(BadInput) as caught:
        check_release_file(small.write().file)
    result = build_failure(caught.value)
    assert [each.column for each in caught.value.list_all()] == ["height", "weight", "iron"]
    assert result.text.splitlines()[0] == "ppdm: small.csv: 3 errors"
    check_no_cell(result)


@pytest.mark.slow
def test_check_ledger_without_ids_charge_of_each_run_said(small: Small) -> None:
    del small.content["dataset"]["record_id"]
    text, payload = check(small)
    assert "Ledger: this attempt charges 120 records" in text
    assert "Without a record_id every run is a new draw" in text
    assert payload["ledger"]["is_charged"] and payload["ledger"]["is_charged_again"]


@pytest.mark.slow
def test_check_weak_policy_limit_that_would_refuse_said(small: Small) -> None:
    small.content["limits"]["record_linkage.rate"] |= {"value": 1.0}
    text, payload = check(small)
    policy = payload["policy_check"]
    assert policy["is_refused"]
    bad = next(each for each in policy["bad_releases"] if each["name"] == "identity")
    line = bad["refusing_limits"]["record_linkage.rate"]
    assert f"a limit of {line:g} would refuse it" in text
    assert f"{bad['observed']['record_linkage.rate']:.3g}" in text
    assert payload["estimate"]["seconds"] > 0 and "Estimate for the release" in text

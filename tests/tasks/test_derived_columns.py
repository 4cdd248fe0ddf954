"""Derived columns in a release: stored, charged and bounded as a release of their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Guarantee
from tasks.ingest.checks import list_checks
from tasks.ingest.source_check import check_source
from tasks.ingest.table_suite import list_table_expectations
from tests.support.stewards import NUMERIC, Steward
from warehouse.columns import Column, Derivation
from warehouse.derived_columns import add_derived_columns
from warehouse.expectations import Expectation
from warehouse.integrity.home_key import HomeKey
from warehouse.raw_profile import profile
from warehouse.same_data.cell_digests import CellDigests
from warehouse.scratch import open_scratch_database
from warehouse.stage_facts import SanitizedFacts, read_facts


def make_age(date: str = "2026-01-01") -> Column:
    derivation = Derivation("years_since", ("born",), date=date)
    return Column("age", "feature", "numeric", 0.0, 120.0, derivation=derivation)


YEAR = Column(
    "year", "feature", "numeric", 1900.0, 2030.0, derivation=Derivation("year", ("born",))
)
SOURCE = (Column("id", "identifier"), Column("born", "exclude"), Column("x", **NUMERIC))


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    rows = {f"p{i}": (f"19{50 + i}-02-1{i % 9}", i / 20) for i in range(12)}
    return Steward(tmp_path, rows, (*SOURCE, make_age()))


@pytest.mark.slow
def test_release_derived_column_charged_with_its_record(steward: Steward) -> None:
    assert steward.release()["records"] == 12
    assert steward.release()["records"] == 0
    steward.rows["p3"] = ("2001-05-05", steward.rows["p3"][1])  # a source, not released itself
    assert steward.release()["records"] == 1
    assert steward.release(columns=(*SOURCE, make_age("2027-01-01")))["records"] == 12


def read_release(steward: Steward) -> tuple[Guarantee, list[Any]]:
    """Return the guarantee of a release and the first validated row."""
    release_id = steward.release()["release_id"]
    with steward.store.transaction() as db:
        facts = read_facts(db, release_id, SanitizedFacts)
        table = f'validated."{release_id.replace("-", "_")}"'
        found = db.execute(f"select * from {table} order by __ppdm_row limit 1").fetchall()
    assert facts is not None
    return facts.guarantee, list(found[0])


@pytest.mark.slow
def test_release_two_columns_of_one_source_share_its_bound(steward: Steward) -> None:
    one, _ = read_release(steward)
    steward.columns = (*SOURCE, make_age(), YEAR)
    two, row = read_release(steward)
    assert two.ln_attribute == pytest.approx(2 * one.ln_attribute)
    assert two.ln_attribute < two.ln_record
    assert any("one attribute" in each for each in two.assumptions)
    assert not any("one attribute" in each for each in one.assumptions)
    assert row[3:5] == [pytest.approx((2026 - 1950) - 40 / 365, abs=0.05), 1950.0]


def test_widen_attribute_many_columns_at_most_the_record() -> None:
    guarantee = Guarantee("bounded", 1.0, 2.0, 5.0)
    assert guarantee.widen_attribute(1) is guarantee
    assert guarantee.widen_attribute(2).ln_attribute == 4.0
    assert guarantee.widen_attribute(3).ln_attribute == 5.0
    assert (guarantee.widen_attribute(3).ln_component, guarantee.ln_record) == (1.0, 5.0)


def test_cell_digests_derived_columns_left_out(steward: Steward) -> None:
    columns = (*SOURCE, make_age(), YEAR)
    with open_scratch_database() as db:
        db.execute("create table raw (__ppdm_row bigint, id varchar, born varchar, x varchar)")
        add_derived_columns(db, "raw", columns, "t.csv")
        digests = CellDigests(db, "raw", columns, HomeKey(b"k" * 32))
        assert [column.name for column in digests.columns] == ["born", "x"]


def test_check_source_counts_cells_of_derived_columns(steward: Steward) -> None:
    steward.rows["p1"] = ("", 0.5)
    with pytest.raises(BadInput) as caught:
        check_source(steward.build_context())
    assert "Column 'age' of t.csv has 1 cell that is empty, in row 2" in caught.value.message
    assert "result is not defined" in (caught.value.remedy or "")
    steward.rows["p1"] = ("canary", 0.5)
    with pytest.raises(BadInput, match="is not a date, in row 2") as caught:
        check_source(steward.build_context())
    assert "canary" not in str(caught.value)


def test_list_checks_cells_beyond_the_edges_counted() -> None:
    column = Column(
        "group",
        "feature",
        "categorical",
        categories=("[0, 1)", "[1, 2]"),
        outside="reject",
        derivation=Derivation("bin", ("x",), edges=(0.0, 1.0, 2.0)),
    )
    columns = (Column("x", "exclude"), column)
    with open_scratch_database() as db:
        db.execute("create table raw as select range as __ppdm_row, range + 0.5 as x from range(3)")
        add_derived_columns(db, "raw", columns, "t.csv")
        counts = profile(db, "raw", columns, None)
    (failed,) = (
        each
        for each in list_checks(counts, columns, None, "t.csv")
        if not each.low <= counts[each.key] <= each.high
    )
    assert (
        failed.message == "Column 'group' of t.csv has 1 cell that is beyond the edges, in row 3."
    )
    assert failed.remedy.startswith("Widen 'edges'")


def test_list_table_expectations_derived_columns_left_out() -> None:
    added = (Expectation("expect_column_values_to_be_unique", "age"),)
    entries = list_table_expectations((*SOURCE, make_age()), "id", added)
    assert "age" not in str(entries) and "born" in str(entries)

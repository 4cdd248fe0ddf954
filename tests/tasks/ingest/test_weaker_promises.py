"""Rules of columns that make rows depend on other records, or drop rows by value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.context import ReleaseContext
from tasks.ingest.source_check import list_weaker_promises
from tasks.ingest.task import begin_release, load_raw
from tasks.publish.manifest_body import format_guarantee
from tasks.sanitize.task import draw_candidate
from tests.support.contexts import make_context, open_run, write_unchecked
from warehouse.columns import Column
from warehouse.sql import ROW
from warehouse.stage_facts import SanitizedFacts, read_facts
from warehouse.tables import validated_table

MEDIAN = "Empty cells hold the median of their column"
DROPPED = "Rows are dropped because of their values"
LABEL = Column("group", "label", "categorical", categories=("a", "b"), outside="reject")
NOTE = Column("note", "exclude")
FULL = [f"p{i},{i / 20},{1 - i / 20},{'ab'[i % 2]},n" for i in range(20)]
GAPS = [*FULL[:17], "p17,,0.5,a,n", "p18,0.5,0.5,b,", "p19,0.5,0.5,c,n"]


@pytest.fixture
def context(tmp_path: Path) -> ReleaseContext:
    context = make_context(tmp_path)
    return replace(context, columns=(*context.columns, LABEL, NOTE))


def change(context: ReleaseContext, name: str, **rules: Any) -> ReleaseContext:
    columns = tuple(
        replace(each, **rules) if each.name == name else each for each in context.columns
    )
    return replace(context, columns=columns)


def draw(context: ReleaseContext, lines: list[str]) -> tuple[SanitizedFacts, dict[str, Any]]:
    """Draw a release; return its facts and the validated values."""
    header = ",".join(column.name for column in context.columns)
    Path(context.source.path).write_text("\n".join([header, *lines]) + "\n")
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    write_unchecked(context, release_id)
    draw_candidate.fn(context, release_id)
    store, run = open_run(context, release_id)
    with store.transaction() as db:
        found = db.execute(f"select x from {validated_table(run)} order by {ROW}").fetchnumpy()
        return read_facts(db, release_id, SanitizedFacts), found


RULES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "median": ("x", {"missing": "median"}, MEDIAN),
    "empty number": ("x", {"missing": "drop_row"}, DROPPED),
    "empty label": ("group", {"missing": "drop_row"}, DROPPED),
    "unlisted label": ("group", {"outside": "drop_row"}, DROPPED),
    "empty excluded cell": ("note", {"missing": "drop_row"}, DROPPED),
    "clamped": ("x", {"outside": "clamp"}, None),
    "rejected": ("x", {"outside": "reject", "missing": "reject"}, None),
}


@pytest.mark.extended
@pytest.mark.parametrize("rule", RULES)
def test_guarantee_rule_of_a_column_named_where_it_is_active(
    context: ReleaseContext, rule: str
) -> None:
    """The rule decides, not whether it had to be applied: no cell of this table is empty."""
    name, settings, sentence = RULES[rule]
    context = change(context, name, **settings)
    guarantee = draw(context, FULL)[0].guarantee
    found = [line for line in guarantee.assumptions if line.startswith((MEDIAN, DROPPED))]
    assert guarantee.kind == ("bounded_given_basis" if sentence else "bounded")
    assert [line.startswith(sentence or "") for line in found] == [True] * bool(sentence)
    assert list_weaker_promises(context) == found
    assert set(found) <= set(format_guarantee(guarantee)["assumptions"])


@pytest.mark.extended
def test_guarantee_filled_cells_and_dropped_rows_not_counted(context: ReleaseContext) -> None:
    context = change(context, "x", missing="median")
    context = change(context, "note", missing="drop_row")
    context = change(context, "group", outside="drop_row")
    clean, gaps = draw(context, FULL)[0], draw(context, GAPS)[0]
    assert gaps.released == 18 < clean.released
    assert gaps.guarantee == clean.guarantee
    assert len(list_weaker_promises(context)) == 2


@pytest.mark.extended
def test_validate_median_makes_a_row_depend_on_other_records(context: ReleaseContext) -> None:
    """Why it is a weaker promise: another record changes the row of p17."""
    context = change(context, "x", missing="median")
    lines = [*FULL[:17], "p17,,0.5,a,n"]
    before = draw(context, lines)[1]["x"]
    after = draw(context, ["p0,1,1,a,n", "p1,1,1,b,n", *lines[2:]])[1]["x"]
    assert before[17] != after[17]

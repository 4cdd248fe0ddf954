"""Why rows were dropped, by column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks.ingest.task import begin_release, load_raw
from tests.support.contexts import make_context, write_unchecked
from warehouse.columns import Column
from warehouse.stage_facts import SettingsFacts, ValidatedFacts, read_facts

TABLE = """id,x,colour
a,0.1,red
b,,red
c,0.3,blue
d,,blue
e,0.5,
"""


def test_write_records_dropped_rows_counted_by_column_and_reason(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 1.0}
    colour: dict[str, Any] = {"role": "feature", "type": "categorical", "categories": ("red",)}
    columns = (
        Column("id", "identifier"),
        Column("x", missing="drop_row", **numeric),
        Column("colour", missing="drop_row", outside="drop_row", **colour),
    )
    context = make_context(tmp_path, columns=columns)
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    write_unchecked(context, release_id)
    with context.open_run(release_id) as (db, _):
        facts = read_facts(db, release_id, ValidatedFacts)
        settings = read_facts(db, release_id, SettingsFacts)
    assert (facts.n, facts.dropped_rows) == (1, 4)
    assert facts.dropped_empty == {"x": 2, "colour": 1}
    assert facts.dropped_unlisted == {"colour": 2}
    assert (settings.owner, settings.policy) == (context.owner, context.policy)

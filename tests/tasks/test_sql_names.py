"""Names of columns and categories that would be statements if they were not quoted."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.ingest.task import begin_release, load_raw
from tasks.sanitize.task import draw_candidate
from tests.support.contexts import make_context, open_run, write_unchecked
from tests.support.stewards import NUMERIC
from warehouse.columns import Column
from warehouse.stages import Stage

NAMES = (
    'x"; drop table meta.run; --',
    "x'; drop table meta.run; --",
    "x) from meta.run; drop table meta.event; --",
    "../../x",
    "select",
    "a.b",
    "$1 ? %s {x}",
)


@pytest.mark.extended
@pytest.mark.parametrize("name", NAMES)
def test_steps_statement_as_column_name_is_a_name(name: str, tmp_path: Path) -> None:
    categories = (name, "other")
    columns = (
        Column(f"{name} id", "identifier"),
        Column(name, **NUMERIC),
        Column("y", **NUMERIC),
        Column(f"{name} label", "label", "categorical", categories=categories),
    )
    values = np.random.default_rng(1).random((40, 2)).tolist()
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in columns])
        writer.writerows([f"p{i}", *row, categories[i % 2]] for i, row in enumerate(values))
    context = replace(make_context(tmp_path), columns=columns, record_id=columns[0].name)
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    write_unchecked(context, release_id)
    draw_candidate.fn(context, release_id)
    store, run = open_run(context, release_id)
    assert run.stage == Stage.SANITIZED
    with store.transaction() as db:
        kinds = [kind for (kind,) in db.execute("select kind from meta.event").fetchall()]
        quoted = name.replace('"', '""')
        ((rows, labels),) = db.execute(
            f'select count("{quoted}"), count(distinct "{quoted} label") '
            f'from sanitized."{run.table}_candidate"'
        ).fetchall()
    assert kinds == ["created", "raw", "validated", "sanitized"]
    assert (rows, labels) == (40, 2)

"""The private copy of a source, which a release loads in place of the source."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tasks.ingest.task import begin_release, load_raw
from tests.support.contexts import make_context, open_run
from warehouse.tables import raw_table

BEFORE, AFTER = (f"id,x,y\na,0.{d},0.2\nb,0.{d},0.4\n" for d in (1, 9))


def test_load_raw_source_changed_meanwhile_first_content_loaded(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    source = Path(context.source.path)
    source.write_text(BEFORE)
    release_id = begin_release.fn(context)
    source.write_text(AFTER)
    load_raw.fn(context, release_id)
    store, run = open_run(context, release_id)
    assert run.source_digest == hashlib.sha256(BEFORE.encode()).hexdigest()
    with store.transaction() as db:
        loaded = db.execute(f"select x from {raw_table(run)} order by id").fetchall()
    assert [float(x) for (x,) in loaded] == [0.1, 0.1]
    assert not store.home.work(context.dataset).exists()

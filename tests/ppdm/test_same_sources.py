"""The draft, the check and the release of one table are the same, wherever the table is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ppdm.cli.init import Decided, draft_file
from ppdm.cli.release_files import read_release_file
from tasks.dataset_lock import hold_dataset
from tasks.ingest.expectations import preload
from tasks.ingest.source_check import check_source
from tasks.ingest.task import begin_release, load_raw
from tasks.signing_key import load_author_key
from tests.contract import cases
from tests.contract.checks_sources import write_source
from tests.support.servers import PASSWORD
from warehouse.sources import SOURCES
from warehouse.tables import raw_table

ROWS = 240
QUERY = f"""
select 'p' || i as person, ((i * 7919) % 997) / 7.0 as height, ((i * 104729) % 991) / 3.0 as weight,
  if(i % 3 = 0, null, ((i * 31) % 101) / 2.0) as pulse, if(i % 2 = 0, 'calm', 'tense') as mood
from range({ROWS}) r(i)
"""
IN_BUCKET = "a bucket"


def place_table(key: str, folder: Path, request: pytest.FixtureRequest) -> tuple[str, str | None]:
    """Write the table to a source of a kind; return what `ppdm init` is told of it."""
    case, reader = cases.SOURCES["csv" if key == IN_BUCKET else key], SOURCES.get(key)
    if key == IN_BUCKET:
        buckets = request.getfixturevalue("buckets")
        buckets.set_environment(request.getfixturevalue("monkeypatch"))
        path = Path(write_source(SOURCES["csv"], case, folder, QUERY).path)
        buckets.client().create_bucket(Bucket="same")
        buckets.client().put_object(Bucket="same", Key="t.csv", Body=path.read_bytes())
        return "s3://same/t.csv", None
    assert reader is not None
    if reader.schemes:
        request.getfixturevalue("monkeypatch").setenv("PGPASSWORD", PASSWORD)
        case = replace(case, server=request.getfixturevalue("postgresql"))
    source = write_source(reader, case, folder, QUERY)
    return source.path or source.options["url"], source.options.get("table")


@pytest.mark.extended
@pytest.mark.parametrize("key", [*cases.SOURCES, IN_BUCKET])
def test_draft_check_and_load_same_counts(
    key: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    preload()
    place, table = place_table(key, tmp_path, request)
    out = tmp_path / "draft.toml"
    drafted = draft_file(place, out, table, Decided())
    roles = {each["name"]: each["role"] for each in drafted.payload["columns"]}
    assert roles == {
        "person": "identifier",
        **dict.fromkeys(("height", "weight", "pulse"), "feature"),
        "mood": "label",
    }
    context = read_release_file(out)[1]
    facts = check_source(context)
    assert facts["rows"] == ROWS and facts["repeated_rows"] == 0
    load_author_key(Path(context.home))
    with hold_dataset(context):
        release_id = begin_release.fn(context)
        load_raw.fn(context, release_id)
    with context.open_run(release_id) as (db, run):
        cells = "count(*), count(distinct person), count(mood), count(nullif(pulse::varchar, ''))"
        total = "round(sum(height::double) + sum(weight::double) + sum(pulse::double), 3)"
        found = db.execute(f"select {cells}, {total} from {raw_table(run)}").fetchall()
    height = sum((i * 7919) % 997 / 7 + (i * 104729) % 991 / 3 for i in range(ROWS))
    pulse = sum((i * 31) % 101 / 2 for i in range(ROWS) if i % 3)
    assert found == [(ROWS, ROWS, ROWS, ROWS * 2 // 3, round(height + pulse, 3))]

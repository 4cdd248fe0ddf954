"""Approvals with keys that were altered after they were given: none of them publishes.

Each alteration is made twice: by a person who can only edit the warehouse, and by one who has the
key of the home and seals everything again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.release_files import read_release_file
from ppdm_core.model.errors import PpdmError, Refused
from tests.support.key_files import name_key
from tests.support.sealed_home import columns, damaged
from tests.support.signed_homes import get_public, reseal
from tests.support.small_release import Small
from warehouse.audit_results import find_verdict
from warehouse.database import Store
from warehouse.home import Home
from warehouse.publishing.publish import check_approved, check_seals, publish_release

ID = "small-0001"
CHANGED = {
    "VARCHAR": "coalesce({0}, '') || '0'",
    "BIGINT": "coalesce({0}, 0) + 1",
    "TIMESTAMP WITH TIME ZONE": "{0} + interval 1 microsecond",
}
ROWS = {  # the row of each table on which an approval rests
    "audit.decision": "true",
    "meta.author": "uid is not null",
    "meta.reviewer": "name = 'rita'",
}
# The user id is shown, and nothing is decided by it where there are keys.
NOT_SIGNED = {("audit.decision", "uid"), ("meta.author", "uid")}


@pytest.fixture(scope="module")
def agreed(tmp_path_factory: pytest.TempPathFactory, signed: Small) -> Small:
    """Return a release that has the approval that it needs; its process died before publishing."""
    release = signed.copied_to(tmp_path_factory.mktemp("agreed") / "copy")
    arguments = (name_key(release, "rita"), "publishing begun", ID)
    assert release.run(*arguments, entry="approved_with_key").exit_code == -9
    return release


def prepare(release: Small) -> tuple[Store, Any]:
    """Return the store, and the request to publish as the pipeline makes it."""
    from tasks.publish.task import build_request, read_publish_inputs
    from tasks.release_summary import summarize_run

    context = read_release_file(release.file)[1]
    with context.open_run(ID) as (db, run):
        summary = summarize_run(db, run)
        inputs = read_publish_inputs(db, context, summary)
    return context.open_store(), build_request(context, summary, inputs)


def find_objection(db: Any, request: Any) -> str:
    """Return what the checks before publishing say of the approvals, if anything."""
    try:
        check_seals(db, request.run)
        verdict = find_verdict(db, ID)
        assert verdict is not None
        check_approved(db, verdict, request)
    except PpdmError as error:
        return error.message
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("table", ROWS)
def test_publish_any_altered_field_of_approval_refused(table: str, agreed: Small) -> None:
    store, request = prepare(agreed)
    with damaged(store) as db:
        assert find_objection(db, request) == ""  # the control
        types = columns(db, table)
    head = store.home.head.read_bytes()
    for name, kind in types.items():
        where, value = ROWS[table], CHANGED[kind].format(name)
        statement = f"update {table} set {name} = {value} where {where}"
        with damaged(store, statement) as db:
            assert "history of this home was changed" in find_objection(db, request), name
        if name == "mac" or (table, name) in NOT_SIGNED:
            continue
        with damaged(store, statement) as db:
            reseal(db)
            assert "sign" in find_objection(db, request), name
        store.home.head.write_bytes(head)


DAMAGES = {
    "decision deleted": "delete from audit.decision",
    "decision repeated": "insert into audit.decision select * from audit.decision",
    "author is another person": f"update meta.author set public = '{get_public('puppet')}' "
    "where uid is not null",
    "reviewer enrolled by the author": f"update meta.reviewer set signer = '{get_public('sam')}' "
    "where name = 'rita'",
    "keys removed": "delete from meta.reviewer",
    "signatures removed": "update audit.decision set public = null, signature = null, "
    "salt = null, verdict_digest = null",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", DAMAGES)
def test_publish_damaged_approvals_refused(what: str, agreed: Small, tmp_path: Path) -> None:
    release = agreed.copied_to(tmp_path / "copy")
    store, request = prepare(release)
    with Store(Home(release.home)).transaction("tests") as db:
        db.execute(DAMAGES[what])
        if what != "decision repeated":
            reseal(db)
    with pytest.raises(Refused if what != "decision deleted" else PpdmError):
        publish_release(store, request)
    assert release.versions() == []


@pytest.mark.slow
def test_publish_unaltered_approval_published(agreed: Small, tmp_path: Path) -> None:
    """The control: nothing else keeps it shut, and sealing again is not noticed."""
    release = agreed.copied_to(tmp_path / "copy")
    store, request = prepare(release)
    with Store(Home(release.home)).transaction("tests") as db:
        reseal(db)
    publish_release(store, request)
    assert release.versions() == ["0001"]

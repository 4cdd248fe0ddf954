"""The withdrawal of a published version.

The record comes first: one transaction sets the stage and appends the event, which holds all that
the notice says. The files follow: the version moves to `private/withdrawn`, the notice takes its
place, and `latest` steps back. Each of these steps can be repeated, so that after a kill the next
command completes them; before the commit nothing has happened.

Nothing is refunded: the ledger and the audits of later releases treat the version as released,
because recipients may have copies.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.manifest import NAME
from ppdm_core.model.withdrawal import NOTICE_NAME, describe_withdrawal, sign_notice
from warehouse.approvals import find_current_user
from warehouse.checkpoints import checkpoint
from warehouse.database import Run, Store, fetch_first, get_run
from warehouse.home import Home, sync, translate_disk_errors
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import monotonic_now
from warehouse.publishing.deliveries import complete_deliveries
from warehouse.publishing.manifest import file_digest
from warehouse.publishing.version_folders import (
    LATEST,
    hidden_folder,
    hide_folder,
    open_to_readers,
    point_latest,
)
from warehouse.stages import Stage
from warehouse.tables import EVENTS, RUNS, VERSIONS

if TYPE_CHECKING:
    from warehouse.transaction import Transaction


@dataclass(frozen=True)
class Withdrawal:
    """A withdrawal as its event records it."""

    dataset: str
    release_id: str
    at: str  # time in UTC
    reason: str
    by: str  # name of the operating-system user
    manifest: str  # digest of the manifest of the version
    notice: str  # digest of the file that takes its place

    @property
    def folder_name(self) -> str:
        return self.release_id.rpartition("-")[2]

    @property
    def words(self) -> str:
        """When and why, to follow the name of the version."""
        return describe_withdrawal(self.at, self.reason)

    @property
    def body(self) -> dict[str, str]:
        """What the notice says."""
        return {
            "release_id": self.release_id,
            "withdrawn": self.at,
            "reason": self.reason,
            "manifest": self.manifest,
        }


def withdraw_version(store: Store, release_id: str, reason: str) -> Withdrawal:
    """Withdraw a published version; the caller holds the dataset's lock.

    The same withdrawal may be repeated: it completes what a killed process left.
    """
    with store.transaction(release_id) as db:
        run = get_run(db, release_id)
        found = find_withdrawal(db, release_id)
    if found is None or found.reason != reason:
        check_withdrawable(store.home, run, found)
        record_withdrawal(store, run, reason)
    complete_withdrawals(store)
    complete_deliveries(store, run.dataset)
    with store.transaction(release_id) as db:
        recorded = find_withdrawal(db, release_id)
    assert recorded is not None
    return recorded


def check_withdrawable(home: Home, run: Run, found: Withdrawal | None) -> None:
    """Check that a run is a published version in a folder of its own."""
    if found is not None:
        raise BadInput(
            f"{run.release_id} was withdrawn on {found.at[:10]} already, for another reason.",
            remedy=f"See the reason: ppdm show {run.release_id}",
        )
    if run.stage != Stage.PUBLISHED:
        raise BadInput(
            f"{run.release_id} is not published: it is '{run.stage}'.",
            remedy="Only a published version can be withdrawn; see: ppdm status",
        )
    folder = home.published / run.dataset / f"{run.number:04d}"
    for path in (folder.parent, folder):
        if path.is_symlink():
            raise Refused(
                f"{path.relative_to(home.root)} is a link, not the folder of {run.release_id}.",
                file=str(path),
                remedy="Remove the link, then withdraw the version.",
            )


def record_withdrawal(store: Store, run: Run, reason: str) -> None:
    """Record a withdrawal; from here on it is a fact, and its files follow."""
    with translate_disk_errors(store.home.withdrawn):
        store.home.withdrawn.mkdir(exist_ok=True)
    with store.advance(run, Stage.WITHDRAWN) as change:
        query = f"select manifest_digest from {VERSIONS} where release_id = ?"
        row = fetch_first(change.db, query, [run.release_id])
        assert row is not None
        fields = {
            "at": format_time(monotonic_now(change.db)),
            "reason": reason,
            "by": find_current_user().name,
            "manifest": row[0],
        }
        planned = Withdrawal(run.dataset, run.release_id, notice="", **fields)
        raw = sign_notice(planned.body, home_key(change.db).signing())
        change.detail.update(fields, notice=hashlib.sha256(raw).hexdigest())


def format_time(time: datetime) -> str:
    """Return a time as a notice states it: 2026-11-17T19:40:00+00:00."""
    return time.isoformat(timespec="seconds")


def find_withdrawal(db: Transaction, release_id: str) -> Withdrawal | None:
    """Return the withdrawal of a release, or None if it was not withdrawn."""
    found = [each for each in list_withdrawals(db) if each.release_id == release_id]
    return found[0] if found else None


def list_withdrawals(db: Transaction) -> list[Withdrawal]:
    """Return all withdrawals, the oldest first."""
    rows = db.execute(
        f"select dataset, release_id, detail from {EVENTS} where kind = ? order by number",
        [Stage.WITHDRAWN],
    ).fetchall()
    return [Withdrawal(dataset, name, **json.loads(detail)) for dataset, name, detail in rows]


def find_withdrawn_bytes(db: Transaction, data_digest: str) -> str | None:
    """Return the withdrawn release that had these bytes, or None."""
    row = fetch_first(
        db,
        f"select release_id from {VERSIONS} join {RUNS} using (release_id) "
        "where data_digest = ? and stage = ?",
        [data_digest, Stage.WITHDRAWN],
    )
    return row[0] if row else None


def complete_withdrawals(store: Store) -> None:
    """Bring the published folders in line with all recorded withdrawals.

    The warehouse is held meanwhile, so that two processes do not do it at once.
    """
    home = store.home
    if not home.withdrawn.is_dir():  # made before the first withdrawal is recorded
        return
    with store.transaction("withdrawal") as db, translate_disk_errors(home.published):
        found = list_withdrawals(db)
        for withdrawal in found:
            replace_version(db, withdrawal)
        for dataset in dict.fromkeys(each.dataset for each in found):
            gone = {each.folder_name for each in found if each.dataset == dataset}
            step_back(home, dataset, gone, list_remaining(db, dataset))


def replace_version(db: Transaction, withdrawal: Withdrawal) -> None:
    """Move a version to the private folder, and write the notice in its place."""
    home = db.home
    folder = home.published / withdrawal.dataset / withdrawal.folder_name
    if folder.parent.is_symlink() or folder.is_symlink():
        return  # `history --verify` reports it
    if (folder / NAME).is_file() and file_digest(folder / NAME) == withdrawal.manifest:
        keep_folder(folder, home.withdrawn / withdrawal.release_id)
        checkpoint("version moved away")
    draft = folder.with_name(f".{folder.name}.notice.tmp")
    for leftover in (draft, hidden_folder(folder)):
        shutil.rmtree(leftover, ignore_errors=True)
    if folder.exists():  # the notice; or another folder, which `history --verify` reports
        return
    draft.mkdir(parents=True)
    raw = sign_notice(withdrawal.body, home_key(db).signing())
    (draft / NOTICE_NAME).write_bytes(raw)
    open_to_readers(home, draft)
    for path in (draft / NOTICE_NAME, draft):
        sync(path)
    checkpoint("notice written")
    draft.rename(folder)
    sync(folder.parent)
    checkpoint("notice in place")


def keep_folder(folder: Path, kept: Path) -> None:
    """Move a folder to the private one at once; copy it if that is on another disk."""
    try:
        if not kept.exists():
            folder.rename(kept)
            sync(kept.parent)
            return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        draft = kept.with_name(f".{kept.name}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(folder, draft)
        for path in (*draft.iterdir(), draft):
            sync(path)
        draft.rename(kept)
        sync(kept.parent)
    hide_folder(folder)


def list_remaining(db: Transaction, dataset: str) -> list[str]:
    """Return the folder names of the versions of a dataset that are not withdrawn, in order."""
    rows = db.execute(
        f"select v.number from {VERSIONS} v join {RUNS} r using (release_id) "
        "where v.dataset = ? and r.stage <> ? order by v.number",
        [dataset, Stage.WITHDRAWN],
    ).fetchall()
    return [f"{number:04d}" for (number,) in rows]


def step_back(home: Home, dataset: str, gone: set[str], remaining: Iterable[str]) -> None:
    """Point `latest` to the newest version that is left, if it points to a withdrawn one."""
    folder = home.published / dataset
    link = folder / LATEST
    if not link.is_symlink() or os.readlink(link) not in gone:
        return
    left = [name for name in remaining if (folder / name).is_dir()]
    if left:
        point_latest(home, dataset, left[-1])
    else:
        link.unlink()
        checkpoint("latest removed")
    sync(folder)

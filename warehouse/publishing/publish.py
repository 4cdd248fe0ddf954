"""The one door through which a release leaves.

It believes nobody: it checks the seals of the history, reads the stored verdict itself, checks that
it is a PASS, or a REVIEW that enough people approved, for exactly these bytes, this policy and this
code, and scans the bytes that leave. The folder is written under a temporary name and renamed;
`latest` moves last. Killed anywhere, the next run finishes or removes what is there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import PpdmError, Refused, Undecided
from ppdm_core.model.verdict import Review, Verdict, worst
from warehouse.approvals import standing
from warehouse.checkpoints import checkpoint
from warehouse.columns import RESERVED
from warehouse.database import Run, Store, first
from warehouse.home import Home, machine_errors, sync
from warehouse.integrity.history import check_history
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import moment, sealed_rows
from warehouse.publishing.leak_scan import Expected, check_bytes
from warehouse.publishing.manifest import NAME, file_digest, signed
from warehouse.publishing.published_rows import keep_rows
from warehouse.runs import discard, sweep, version_folder
from warehouse.sinks import SINKS
from warehouse.sql import ROW, quoted
from warehouse.stages import Stage

if TYPE_CHECKING:
    import duckdb

ORDER = f"{RESERVED}order"  # keyed: rows leave in this order


@dataclass(frozen=True, eq=False)
class Parcel:
    """What is to leave, and what the door checks it against."""

    run: Run
    sink: str
    policy_digest: str
    review: Review  # what that policy asks of people
    code_version: str  # of the code that runs now
    expected: Expected
    people: str | None  # table that tells whose row is whose, where rows belong to people
    card: str
    manifest: Mapping[str, Any]  # everything but the files


def candidate_table(run: Run) -> str:
    return f'sanitized."{run.table}_candidate"'


def write_candidate(
    db: duckdb.DuckDBPyConnection, run: Run, columns: tuple[str, ...], path: Path, sink: str
) -> str:
    """Writes the candidate in its keyed order; the digest of the file is the data's digest."""
    names = ", ".join(map(quoted, columns))
    query = f"select {names} from {candidate_table(run)} order by {ORDER}, {ROW}"
    SINKS[sink](db, query, path)
    return file_digest(path)


def read_verdict(db: duckdb.DuckDBPyConnection, release_id: str) -> Verdict | None:
    rows = db.execute(
        "select outcome, data_digest, policy_digest, code_version, findings from audit.verdict "
        "where release_id = ?",
        [release_id],
    ).fetchall()
    if len(rows) != 1:  # two are none: which of them holds cannot be told
        return None
    names = ("outcome", "data_digest", "policy_digest", "code_version", "findings")
    data = dict(zip(names, rows[0], strict=True))
    return Verdict.from_dict({**data, "findings": json.loads(data["findings"])})


def shut(run: Run, why: str) -> Refused:
    return Refused(
        f"The door stays shut for {run.release_id}: {why}",
        remedy="Run the release again; nothing was published.",
    )


def check_verdict(verdict: Verdict | None, data_digest: str, parcel: Parcel) -> Verdict:
    run = parcel.run
    if verdict is None:
        raise shut(run, "it has no verdict.")
    if verdict.outcome not in ("PASS", "REVIEW") or worst(verdict.findings) != verdict.outcome:
        raise shut(run, "its verdict is not a PASS.")
    if verdict.data_digest != data_digest:
        raise shut(run, "its data are not those that the verdict is about.")
    if verdict.policy_digest != parcel.policy_digest:
        raise shut(run, "its limits are not those that the verdict was reached by.")
    if not verdict.code_version == run.code_version == parcel.code_version:
        raise shut(run, "the code changed after the verdict.")
    return verdict


def check_approved(
    db: duckdb.DuckDBPyConnection, verdict: Verdict, parcel: Parcel, at: datetime | None = None
) -> None:
    """What the gate leaves to people needs as many of them as the policy says."""
    if verdict.outcome == "PASS":
        return
    found = standing(db, parcel.run.release_id, verdict, parcel.review, at)
    if found.missing:
        raise Undecided(
            f"The door stays shut for {parcel.run.release_id}: {found.missing} of {found.needed} "
            "approvals are missing.",
            remedy="Nothing was published; see: ppdm decide --help",
        )


def check_seals(db: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Nothing of what the door goes by was edited, added or deleted by somebody else."""
    try:
        check_history(db)
        sealed_rows(db, "audit.verdict", "release_id = ?", [run.release_id])
    except Refused as found:
        raise Refused(
            f"The door stays shut for {run.release_id}: the history of this home is not whole. "
            f"{found.message}",
            remedy=f"See: ppdm history --verify. {found.remedy}",
        ) from None


def write_manifest(db: duckdb.DuckDBPyConnection, parcel: Parcel, draft: Path) -> None:
    """Signed, and with the event that led to the door, so that the history can be held to it.

    That a killed run was continued is left out: the bytes are the same.
    """
    row = first(
        db,
        "select number, mac from meta.event where release_id = ? and kind <> 'continued' "
        "order by number desc limit 1",
        [parcel.run.release_id],
    )
    assert row is not None
    history = {"event": row[0], "mac": row[1]}
    body = {**parcel.manifest, "files": described(draft), "history": history}
    (draft / NAME).write_bytes(signed(body, home_key(db).signing()))


def publish(store: Store, parcel: Parcel) -> Path:
    """The only function that writes below ``published``."""
    run, home = parcel.run, store.home
    final = version_folder(home, run)
    with machine_errors(home.published):
        final.parent.mkdir(parents=True, exist_ok=True)
        sweep(home, run.dataset)
        draft = final.with_name(f".{final.name}.tmp")
        draft.mkdir()
    with removed_on_error(store, run, draft), store.advance(run, Stage.PUBLISHED) as change:
        checkpoint("door opened")
        check_seals(change.db, run)
        happened = moment(change.db)
        data = draft / "data.parquet"
        columns = parcel.expected.names
        data_digest = write_candidate(change.db, run, columns, data, parcel.sink)
        verdict = check_verdict(read_verdict(change.db, run.release_id), data_digest, parcel)
        check_approved(change.db, verdict, parcel, happened)
        check_bytes(data, parcel.expected)
        if parcel.people is not None:
            columns = parcel.expected.columns
            kept = keep_rows(change.db, run, candidate_table(run), columns, parcel.people)
            change.detail["rows"] = kept
        checkpoint("data written")
        (draft / "card.md").write_text(parcel.card)
        write_manifest(change.db, parcel, draft)
        settle(draft)
        checkpoint("folder complete")
        replace_folder(draft, final)
        checkpoint("folder renamed")
        manifest_digest = file_digest(final / NAME)
        digests = (data_digest, manifest_digest)
        change.db.execute(
            "insert into published.version values (?, ?, ?, ?, ?, ?)",
            [run.dataset, run.number, run.release_id, *digests, happened],
        )
        change.detail.update(data=data_digest, manifest=manifest_digest)
    with machine_errors(home.published):
        point_latest(home, run.dataset, final.name)
    return final


@contextmanager
def removed_on_error(store: Store, run: Run, draft: Path) -> Iterator[None]:
    """Without a commit there is no release: nothing of it may stay in sight."""
    try:
        with machine_errors(draft.parent):
            yield
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        if not is_recorded(store, run):  # what comes after the commit may fail, too
            discard(version_folder(store.home, run))
        raise


def is_recorded(store: Store, run: Run) -> bool:
    query = "select 1 from published.version where release_id = ?"
    with suppress(PpdmError), store.transaction(run.release_id) as db:
        return first(db, query, [run.release_id]) is not None
    return False


def described(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        path.name: {"sha256": file_digest(path), "bytes": path.stat().st_size}
        for path in sorted(folder.iterdir())
    }


def settle(folder: Path) -> None:
    """On disk before anybody can see it."""
    for path in (*folder.iterdir(), folder):
        sync(path)


def replace_folder(draft: Path, final: Path) -> None:
    """A folder that a killed run left after its rename holds the same bytes; it makes room."""
    discard(final)
    draft.rename(final)
    sync(final.parent)


def point_latest(home: Home, dataset: str, version: str) -> None:
    link = home.published / dataset / "latest"
    if link.is_symlink() and os.readlink(link) == version:
        return
    draft = link.with_name(".latest.tmp")
    draft.unlink(missing_ok=True)
    draft.symlink_to(version)
    checkpoint("before latest")
    draft.rename(link)
    checkpoint("after latest")


def latest_version(
    db: duckdb.DuckDBPyConnection, dataset: str
) -> tuple[Any, ...] | None:  # number, release id, digests of data and manifest
    return first(
        db,
        "select number, release_id, data_digest, manifest_digest from published.version "
        "where dataset = ? order by number desc limit 1",
        [dataset],
    )


def mend_latest(store: Store, dataset: str) -> None:
    """`latest` names the newest recorded version, also after a crash before the link moved."""
    with store.transaction(f"{dataset} latest") as db:
        row = latest_version(db, dataset)
    if row and (store.home.published / dataset / f"{row[0]:04d}").is_dir():
        with machine_errors(store.home.published):
            point_latest(store.home, dataset, f"{row[0]:04d}")

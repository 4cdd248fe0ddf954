"""The one door through which a release leaves.

It believes nobody: it reads the stored verdict itself, checks that it is a PASS for exactly these
bytes, this policy and this code, and scans the bytes that leave. The folder is written under a
temporary name and renamed; `latest` moves last. Killed anywhere, the next run finishes or removes
what is there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.errors import Refused
from ppdm_core.verdict import Verdict
from warehouse.checkpoints import checkpoint
from warehouse.columns import RESERVED
from warehouse.home import Home, sync
from warehouse.manifest import NAME, file_digest, seal
from warehouse.past import keep_rows
from warehouse.runs import discard, sweep, version_folder
from warehouse.scan import Expected, check_bytes
from warehouse.sinks import SINKS
from warehouse.sql import ROW, quoted
from warehouse.store import Run, Store, first, machine_errors, now

if TYPE_CHECKING:
    import duckdb

ORDER = f"{RESERVED}order"  # keyed: rows leave in this order


@dataclass(frozen=True, eq=False)
class Parcel:
    """What is to leave, and what the door checks it against."""

    run: Run
    sink: str
    policy_digest: str
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


def check_verdict(verdict: Verdict | None, data_digest: str, parcel: Parcel) -> None:
    def no(why: str) -> Refused:
        return Refused(
            f"The door stays shut for {parcel.run.release_id}: {why}",
            remedy="Run the release again; nothing was published.",
        )

    if verdict is None:
        raise no("it has no verdict.")
    if verdict.outcome != "PASS" or not verdict.findings or verdict.failures:
        raise no("its verdict is not a PASS.")
    if verdict.data_digest != data_digest:
        raise no("its data are not those that the verdict is about.")
    if verdict.policy_digest != parcel.policy_digest:
        raise no("its limits are not those that the verdict was reached by.")
    if not verdict.code_version == parcel.run.code_version == parcel.code_version:
        raise no("the code changed after the verdict.")


def publish(store: Store, parcel: Parcel) -> Path:
    """The only function that writes below ``published``."""
    run, home = parcel.run, store.home
    final = version_folder(home, run)
    with machine_errors(home.published):
        final.parent.mkdir(parents=True, exist_ok=True)
        sweep(home, run.dataset)
        draft = final.with_name(f".{final.name}.tmp")
        draft.mkdir()
    with removed_on_error(draft, final), store.advance(run, "published") as change:
        checkpoint("door opened")
        data = draft / "data.parquet"
        columns = parcel.expected.names
        data_digest = write_candidate(change.db, run, columns, data, parcel.sink)
        check_verdict(read_verdict(change.db, run.release_id), data_digest, parcel)
        check_bytes(data, parcel.expected)
        if parcel.people is not None:
            keep_rows(change.db, run, candidate_table(run), parcel.expected.columns, parcel.people)
        checkpoint("data written")
        (draft / "card.md").write_text(parcel.card)
        manifest = seal({**parcel.manifest, "files": described(draft)})
        (draft / NAME).write_bytes(manifest)
        settle(draft)
        checkpoint("folder complete")
        replace_folder(draft, final)
        checkpoint("folder renamed")
        manifest_digest = file_digest(final / NAME)
        change.db.execute(
            "insert into published.version values (?, ?, ?, ?, ?, ?)",
            [run.dataset, run.number, run.release_id, data_digest, manifest_digest, now()],
        )
        change.detail.update(data=data_digest, manifest=manifest_digest)
    with machine_errors(home.published):
        point_latest(home, run.dataset, final.name)
    return final


@contextmanager
def removed_on_error(draft: Path, final: Path) -> Iterator[None]:
    """Without a commit there is no release: nothing of it may stay in sight."""
    try:
        with machine_errors(draft.parent):
            yield
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        discard(final)
        raise


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
) -> tuple[Any, ...] | None:  # number, release id, data digest
    return first(
        db,
        "select number, release_id, data_digest from published.version where dataset = ? "
        "order by number desc limit 1",
        [dataset],
    )


def mend_latest(store: Store, dataset: str) -> None:
    """`latest` names the newest recorded version, also after a crash before the link moved."""
    with store.transaction(f"{dataset} latest") as db:
        row = latest_version(db, dataset)
    if row and (store.home.published / dataset / f"{row[0]:04d}").is_dir():
        with machine_errors(store.home.published):
            point_latest(store.home, dataset, f"{row[0]:04d}")

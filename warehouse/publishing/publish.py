"""The only code that publishes a release.

It trusts no caller: it checks the seals of the history, reads the stored verdict itself, checks
that it is a PASS, or a REVIEW with enough approvals, for exactly these bytes, this policy and this
code, and scans the bytes that are published. The folder is written under a temporary name and
renamed; `latest` moves last. After a kill at any point, the next run finishes or removes what is
there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import PpdmError, Refused, Undecided
from ppdm_core.model.manifest import NAME, sign
from ppdm_core.model.verdict import Review, Verdict, worst
from warehouse.approvals import count_approvals
from warehouse.audit_results import find_verdict
from warehouse.checkpoints import checkpoint
from warehouse.database import Run, Store, fetch_first
from warehouse.home import Home, sync, translate_disk_errors
from warehouse.integrity.history import check_history
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import monotonic_now, read_sealed_rows
from warehouse.publishing.deliveries import (
    complete_deliveries,
    describe_deliveries,
    stage_deliveries,
    store_deliveries,
    write_file_sinks,
)
from warehouse.publishing.expected_content import ExpectedContent
from warehouse.publishing.leak_scan import check_bytes
from warehouse.publishing.manifest import file_digest
from warehouse.publishing.published_rows import store_published_rows
from warehouse.publishing.version_folders import (
    hide_folder,
    open_to_readers,
    point_latest,
    remove_leftovers,
    version_folder,
)
from warehouse.publishing.withdraw import find_withdrawn_bytes
from warehouse.row_digest import digest_row_blocks
from warehouse.runs import CONTINUED
from warehouse.sanitized_tables import digest_candidate
from warehouse.sinks import Delivery, SinkSettings
from warehouse.sinks.parquet import read_tables
from warehouse.stages import Stage
from warehouse.tables import EVENTS, RUNS, VERDICTS, VERSIONS

if TYPE_CHECKING:
    import duckdb

    from warehouse.transaction import Transaction

FILES, ROWS_DIGEST = "files", "rows_digest"  # keys of the manifest
DATA, CARD, REPORT = "data.parquet", "card.md", "report.html"  # names of published files


@dataclass(frozen=True, eq=False)
class PublishRequest:
    """A candidate that is to be published, and what it is checked against."""

    run: Run
    policy_digest: str
    review: Review  # what that policy asks of reviewers
    code_version: str  # of the code that runs now
    expected: ExpectedContent
    data_digest: str  # of the candidate's file
    table_digest: str  # of the candidate's table
    is_comparable: bool  # rows belong to records that later releases can be compared with
    card: str
    report: str  # the recipients' edition, as HTML
    manifest: Mapping[str, Any]  # everything except the files
    file_sinks: tuple[SinkSettings, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


@dataclass(frozen=True)
class PublishedVersion:
    """A published version of a dataset."""

    number: int
    release_id: str
    data_digest: str
    manifest_digest: str


def build_refusal(run: Run, why: str) -> Refused:
    """Return the error of a release that must not be published."""
    return Refused(
        f"{run.release_id} cannot be published: {why}",
        remedy="Run the release again; nothing was published.",
    )


def check_verdict(verdict: Verdict | None, data_digest: str, request: PublishRequest) -> Verdict:
    """Return the verdict if it allows to publish exactly these bytes under this policy and code."""
    run = request.run
    if verdict is None:
        raise build_refusal(run, "it has no verdict.")
    if verdict.outcome not in ("PASS", "REVIEW") or worst(verdict.findings) != verdict.outcome:
        raise build_refusal(run, "its verdict is not a PASS.")
    if verdict.data_digest != data_digest:
        raise build_refusal(run, "its data are not those that the verdict is about.")
    if verdict.policy_digest != request.policy_digest:
        raise build_refusal(run, "its limits are not those that the verdict was reached by.")
    if not verdict.code_version == run.code_version == request.code_version:
        raise build_refusal(run, "the code changed after the verdict.")
    return verdict


def check_approved(
    db: Transaction, verdict: Verdict, request: PublishRequest, at: datetime | None = None
) -> None:
    """Check that a REVIEW has as many approvals as the policy asks for."""
    if verdict.outcome == "PASS":
        return
    found = count_approvals(db, request.run.release_id, verdict, request.review, at)
    if found.missing:
        raise Undecided(
            f"{request.run.release_id} cannot be published: {found.missing} of {found.needed} "
            "approvals are missing.",
            remedy="Nothing was published; see: ppdm decide --help",
        )


def check_seals(db: Transaction, run: Run) -> None:
    """Check that nothing that the decision rests on was edited, added or deleted."""
    try:
        check_history(db)
        read_sealed_rows(db, VERDICTS, "release_id = ?", [run.release_id])
    except Refused as found:
        raise Refused(
            f"{run.release_id} cannot be published: the history of this home was changed. "
            f"{found.message}",
            remedy=f"See: ppdm history --verify. {found.remedy}",
        ) from None


def check_candidate_table(db: Transaction, request: PublishRequest) -> None:
    """Check that the candidate's table is as it was when the file was written from it."""
    if digest_candidate(db, request.run) != request.table_digest:
        raise build_refusal(request.run, "its rows in the warehouse were changed.")


def check_not_withdrawn(db: Transaction, run: Run, data_digest: str) -> None:
    """Check that no person withdrew a version with the same bytes."""
    withdrawn = find_withdrawn_bytes(db, data_digest)
    if withdrawn is not None:
        raise build_refusal(
            run,
            f"its bytes are those of {withdrawn}, which was withdrawn; other bytes need another "
            "source or sanitizer.",
        )


def write_manifest(
    db: Transaction, request: PublishRequest, draft: Path, content: Mapping[str, Any]
) -> None:
    """Write the signed manifest, with the last event before publication.

    Recipients can then check that the history still holds that event. Events that a killed run was
    continued are left out, because the bytes are the same.
    """
    row = fetch_first(
        db,
        f"select number, mac from {EVENTS} where release_id = ? and kind <> ? "
        "order by number desc limit 1",
        [request.run.release_id, CONTINUED],
    )
    assert row is not None
    history = {"event": row[0], "mac": row[1]}
    places = describe_deliveries(request.deliveries)
    sinks = {"sinks": places} if places else {}
    body = {**request.manifest, **content, **sinks, "history": history}
    (draft / NAME).write_bytes(sign(body, home_key(db).signing()))


def publish_release(store: Store, request: PublishRequest) -> Path:
    """Publish a release and return its folder.

    This is the only function that writes below ``published``.
    """
    run, home = request.run, store.home
    final = version_folder(home, run)
    if final.parent.is_symlink():
        raise build_refusal(run, f"the folder published/{run.dataset} is a link.")
    with translate_disk_errors(home.published):
        final.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(home, run.dataset)
        draft = final.with_name(f".{final.name}.tmp")
        draft.mkdir()
    with remove_on_error(store, run, draft):
        checkpoint("publishing begun")
        (draft / CARD).write_text(request.card, encoding="utf-8")
        (draft / REPORT).write_text(request.report, encoding="utf-8")
        move_candidate(home, request, draft)
        if file_digest(draft / DATA) != request.data_digest:  # it may not even be a Parquet file
            raise build_refusal(run, "its data file was changed.")
        check_bytes(draft / DATA, request.expected)
        digest = digest_row_blocks(read_tables(draft / DATA))
        if request.file_sinks:
            write_file_sinks(request.file_sinks, draft, digest)
        files = describe_files(draft)
        checkpoint("data written")
        with stage_deliveries(request.deliveries, draft, digest, lambda: is_recorded(store, run)):
            record_publication(store, request, draft, {FILES: files, ROWS_DIGEST: digest})
    with translate_disk_errors(home.published):
        point_latest(home, run.dataset, final.name)
    home.candidate(run.release_id).unlink(missing_ok=True)
    if request.deliveries:
        complete_deliveries(store, run.dataset)
    return final


def move_candidate(home: Home, request: PublishRequest, draft: Path) -> None:
    """Put the candidate's file into the draft, with the permissions of the other files there.

    It is linked, so that a release that is killed before its commit still has it. Where that is
    not possible (another file system, or a file of another user) it is copied.
    """
    candidate, data = home.candidate(request.run.release_id), draft / DATA
    if candidate.is_symlink() or not candidate.is_file():
        raise build_refusal(request.run, "its data file is gone, or a link.")
    try:
        os.link(candidate, data)
        data.chmod((draft / CARD).stat().st_mode)
    except OSError:
        data.unlink(missing_ok=True)
        shutil.copyfile(candidate, data)


def record_publication(
    store: Store, request: PublishRequest, draft: Path, content: Mapping[str, Any]
) -> None:
    """Check the decision, rename the draft and record the version, all in one transaction."""
    run, final = request.run, version_folder(store.home, request.run)
    data_digest = content[FILES][DATA]["sha256"]
    with store.advance(run, Stage.PUBLISHED) as change:
        check_seals(change.db, run)
        happened = monotonic_now(change.db)
        verdict = check_verdict(find_verdict(change.db, run.release_id), data_digest, request)
        check_approved(change.db, verdict, request, happened)
        check_candidate_table(change.db, request)
        check_not_withdrawn(change.db, run, data_digest)
        if request.is_comparable:
            digest = store_published_rows(change.db, run, request.expected.columns)
            change.detail["rows"] = digest
        write_manifest(change.db, request, draft, content)
        open_to_readers(store.home, draft)
        sync_folder(draft)
        checkpoint("folder complete")
        replace_folder(draft, final)
        checkpoint("folder renamed")
        manifest_digest = file_digest(final / NAME)
        digests = (data_digest, manifest_digest)
        change.db.execute(
            f"insert into {VERSIONS} values (?, ?, ?, ?, ?, ?)",
            [run.dataset, run.number, run.release_id, *digests, happened],
        )
        change.detail.update(data=data_digest, manifest=manifest_digest)
        change.detail.update(store_deliveries(request.deliveries))


@contextmanager
def remove_on_error(store: Store, run: Run, draft: Path) -> Iterator[None]:
    """Remove what was written if no version was recorded: without a commit there is no release."""
    try:
        with translate_disk_errors(draft.parent):
            yield
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        if not is_recorded(store, run):  # what follows the commit may fail, too
            hide_folder(version_folder(store.home, run))
        raise


def is_recorded(store: Store, run: Run) -> bool:
    """Return whether the warehouse records the version of a run."""
    with suppress(PpdmError), store.transaction(run.release_id) as db:
        return find_publication_time(db, run.release_id) is not None
    return False


def find_publication_time(db: duckdb.DuckDBPyConnection, release_id: str) -> datetime | None:
    """Return when a release was published, or None if it was not."""
    query = f"select happened from {VERSIONS} where release_id = ?"
    row = fetch_first(db, query, [release_id])
    return row[0] if row else None


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return digest and size of every file in a folder."""
    return {
        path.name: {"sha256": file_digest(path), "bytes": path.stat().st_size}
        for path in sorted(folder.iterdir())
    }


def sync_folder(folder: Path) -> None:
    """Write files and folder to the disk before they become visible."""
    for path in (*folder.iterdir(), folder):
        sync(path)


def replace_folder(draft: Path, final: Path) -> None:
    """Rename the draft; a folder that a killed run left holds the same bytes and is removed."""
    hide_folder(final)
    draft.rename(final)
    sync(final.parent)


def find_latest_version(db: duckdb.DuckDBPyConnection, dataset: str) -> PublishedVersion | None:
    """Return the newest published version of a dataset that is not withdrawn, or None."""
    row = fetch_first(
        db,
        f"select v.number, release_id, data_digest, manifest_digest from {VERSIONS} v "
        f"join {RUNS} r using (release_id) where v.dataset = ? and r.stage <> ? "
        "order by v.number desc limit 1",
        [dataset, Stage.WITHDRAWN],
    )
    return PublishedVersion(*row) if row else None


def repair_latest(home: Home, dataset: str, version: PublishedVersion | None) -> bool:
    """Make `latest` name the newest recorded version; return whether it named another.

    It does after a crash before the link moved, or if somebody moved it.
    """
    if version and (home.published / dataset / f"{version.number:04d}").is_dir():
        with translate_disk_errors(home.published):
            return point_latest(home, dataset, f"{version.number:04d}")
    return False

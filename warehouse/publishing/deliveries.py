"""The sinks of a version: what is written before it is recorded, and what follows.

Everything is written first, where recipients cannot read it, and read back. The version is then
recorded as published, with the event that names its deliveries. Only after that they are made
readable. So a crash leaves nothing that recipients can read and the history does not know. Each
step can be repeated: the next release or withdrawal of the dataset completes what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError, Refused
from ppdm_core.model.manifest import NAME
from ppdm_core.model.withdrawal import sign_notice
from warehouse.checkpoints import checkpoint
from warehouse.database import Store, fetch_first
from warehouse.home import Home
from warehouse.integrity.events import append_event
from warehouse.integrity.home_key import home_key
from warehouse.publishing.manifest import file_digest
from warehouse.row_digest import digest_row_blocks
from warehouse.sinks import SINKS, Delivery, FileSink, ServerSink, SinkSettings
from warehouse.stages import Stage
from warehouse.tables import EVENTS, VERSIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from warehouse.transaction import Transaction

DELIVERIES = "deliveries"  # key in the event of a publication
DELIVERED, REMOVED = "delivered", "removed"  # kinds of events


def get_server_sink(kind: str) -> ServerSink:
    """Return a sink on a server."""
    sink = SINKS[kind]
    assert isinstance(sink, ServerSink)
    return sink


def write_file_sinks(sinks: Sequence[SinkSettings], folder: Path, digest: str) -> None:
    """Write the further files of a version, and read them back."""
    for each in sinks:
        sink = SINKS[each.kind]
        assert isinstance(sink, FileSink)
        sink.write(folder, each.options)
        checkpoint("further file written")
        check_read_back(sink.read(folder, each.options), digest, each.kind)


def check_read_back(tables: Iterable[pa.Table], digest: str, kind: str) -> None:
    """Check that what was written are the rows that the leak scan passed."""
    import pyarrow as pa

    try:
        is_same = digest_row_blocks(tables) == digest
    except pa.ArrowException:  # it is not even a table with these columns
        is_same = False
    if not is_same:
        raise Refused(
            f"The {kind} sink does not hold the rows that were audited.",
            remedy="Nothing was published; report this, a correct run does not do it.",
        )


@contextmanager
def stage_deliveries(
    deliveries: Sequence[Delivery], folder: Path, digest: str, is_recorded: Callable[[], bool]
) -> Iterator[None]:
    """Write to every server and read it back.

    If the block fails, discard it, unless the version is recorded as published.
    """
    try:
        for each in deliveries:
            sink = get_server_sink(each.kind)
            with describe_incomplete(each, "not published: it could not be written to"):
                sink.stage(each, folder)
                checkpoint("rows staged")
                check_read_back(sink.read_staged(each, folder), digest, each.kind)
        yield
    except BaseException:
        if deliveries and not is_recorded():
            for each in deliveries:
                with suppress(PpdmError):
                    get_server_sink(each.kind).discard(each)
        raise


def describe_deliveries(deliveries: Sequence[Delivery]) -> list[dict[str, Any]]:
    """Return what the manifest says of the deliveries."""
    return [get_server_sink(each.kind).describe_place(each) for each in deliveries]


def list_deliveries(db: Transaction, dataset: str) -> list[Delivery]:
    """Return every delivery of the published versions of a dataset, the oldest first."""
    rows = db.execute(
        f"select detail from {EVENTS} where dataset = ? and kind = ? order by number",
        [dataset, Stage.PUBLISHED],
    ).fetchall()
    details = [json.loads(detail).get(DELIVERIES, []) for (detail,) in rows]
    return [Delivery(**each) for found in details for each in found]


def list_pending_deliveries(db: Transaction, dataset: str) -> list[tuple[Delivery, str]]:
    """Return the deliveries that a step is missing for, with the kind of its event."""
    rows = db.execute(
        f"select release_id, kind, detail from {EVENTS} where dataset = ? and kind in (?, ?, ?)",
        [dataset, Stage.WITHDRAWN, DELIVERED, REMOVED],
    ).fetchall()
    withdrawn = {name for name, kind, _ in rows if kind == Stage.WITHDRAWN}
    done = {(name, kind, json.loads(detail).get("token")) for name, kind, detail in rows}
    pending = []
    for each in list_deliveries(db, dataset):
        kind = REMOVED if each.release_id in withdrawn else DELIVERED
        if (each.release_id, kind, each.token) not in done:
            pending.append((each, kind))
    return pending


def complete_deliveries(store: Store, dataset: str) -> None:
    """Make readable what was published, and remove what was withdrawn, on every server.

    The caller holds the lock of the dataset; the warehouse is not held meanwhile.
    """
    with store.transaction(f"{dataset} deliveries") as db:
        pending = list_pending_deliveries(db, dataset)
        documents = [
            sign_withdrawal(db, each) if kind == REMOVED else read_manifest(db, each)
            for each, kind in pending
        ]
    for (each, kind), document in zip(pending, documents, strict=True):
        sink = get_server_sink(each.kind)
        state = "withdrawn, and still in" if kind == REMOVED else "published, and not yet in"
        with describe_incomplete(each, state):
            (sink.remove if kind == REMOVED else sink.expose)(each, document)
        checkpoint("delivery changed")
        with store.transaction(each.release_id) as db:
            detail = {"sink": each.kind, "token": each.token}
            append_event(db, dataset, each.release_id, kind, detail)


@contextmanager
def describe_incomplete(delivery: Delivery, state: str) -> Iterator[None]:
    """Turn bad input into trouble: the server could take the delivery when the run began."""
    try:
        yield
    except (BadInput, MachineTrouble) as problem:
        raise MachineTrouble(
            f"{delivery.release_id} is {state} its {delivery.kind} sink. {problem.message}",
            remedy=f"{problem.remedy} Then run the same command again, which completes it.",
        ) from None


def read_manifest(db: Transaction, delivery: Delivery) -> bytes:
    """Return the manifest of a published version, if it is as it was recorded."""
    path = find_folder(db.home, delivery) / NAME
    query = f"select manifest_digest from {VERSIONS} where release_id = ?"
    row = fetch_first(db, query, [delivery.release_id])
    if row is None or not path.is_file() or file_digest(path) != row[0]:
        raise Refused(
            f"{delivery.release_id} cannot be delivered: its published manifest was changed.",
            file=str(path),
            remedy="Restore the folder from a copy.",
        )
    return path.read_bytes()


def find_folder(home: Home, delivery: Delivery) -> Path:
    """Return the published folder of a delivered version."""
    return home.published / delivery.dataset / delivery.version


def sign_withdrawal(db: Transaction, delivery: Delivery) -> bytes:
    """Return the notice of a withdrawn version."""
    from warehouse.publishing.withdraw import find_withdrawal  # which needs this module

    withdrawal = find_withdrawal(db, delivery.release_id)
    assert withdrawal is not None
    return sign_notice(withdrawal.body, home_key(db).signing())


def store_deliveries(deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """Return what the event of a publication says of its deliveries."""
    found = [{**asdict(each), "options": dict(each.options)} for each in deliveries]
    return {DELIVERIES: found} if found else {}

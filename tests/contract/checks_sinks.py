"""What every sink must do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ppdm_core.model.errors import BadInput
from warehouse.row_digest import digest_released_rows, digest_row_blocks
from warehouse.sinks import Delivery, FileSink, ServerSink

TOKEN, OTHER_TOKEN = "5f0e" * 8, "a1b2" * 8
NOTICE = b'{"withdrawn":"2026"}\n'


class Recipient(Protocol):
    """A person with the rights of a recipient, who uses another library than the product."""

    def list_tables(self) -> list[str]:
        """Return everything that the recipient can read."""

    def read_document(self) -> bytes | None:
        """Return the manifest or notice of version 0001 of t."""

    def fill_target(self) -> None:
        """Put something else where version 0001 of t will be, as an administrator."""


@dataclass(frozen=True)
class ServerCase:
    """A place on a running server."""

    options: dict[str, str]
    recipient: Recipient
    wrong: tuple[dict[str, str], ...]  # options that no delivery can be made with


def make_table() -> pa.Table:
    """Return rows with what is easily lost: all digits, small numbers, quotes, empty cells."""
    numbers = [0.1 + 0.2, 5e-324, -1.7976931348623157e308, 3.0, 0.0, 1 / 3]
    texts = ["a", 'quote " and, comma', "line\nbreak", "naïve ☃", None, "NA"]
    return pa.table({"x 1": pa.array(numbers), "group": pa.array(texts, pa.string())})


def write_folder(folder: Path) -> str:
    """Write a version to a folder; return the digest of its rows."""
    table = make_table()
    pq.write_table(table, folder / "data.parquet", store_schema=False)
    (folder / "card.md").write_text("card")
    return digest_released_rows(table)


def make_delivery(
    kind: str, options: dict[str, str], version: str = "0001", token: str = TOKEN
) -> Delivery:
    return Delivery(kind, options, "t", f"t-{version}", version, token)


def make_manifest(sink: ServerSink, delivery: Delivery) -> bytes:
    content = {"release_id": delivery.release_id, "sinks": [sink.describe_place(delivery)]}
    return json.dumps(content).encode()


def read_staged(sink: ServerSink, delivery: Delivery, folder: Path) -> pa.Table:
    return pa.concat_tables(sink.read_staged(delivery, folder))


FILE_OPTIONS = {"parquet": {"partition": "group"}}


def check_file_same_rows(sink: FileSink, folder: Path) -> None:
    digest, options = write_folder(folder), FILE_OPTIONS.get(sink.name, {})
    sink.write(folder, options)
    tables = list(sink.read(folder, options))
    assert {table.schema for table in tables} == {make_table().schema}
    assert digest_row_blocks(tables) == digest


def check_changed_file_noticed(sink: FileSink, folder: Path) -> None:
    options = FILE_OPTIONS.get(sink.name, {})
    pq.write_table(make_table().slice(1), folder / "data.parquet", store_schema=False)
    sink.write(folder, options)
    digest = write_folder(folder)
    assert digest_row_blocks(sink.read(folder, options)) != digest


def check_hidden_until_exposed(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    digest, delivery = write_folder(folder), make_delivery(sink.name, case.options)
    sink.check_target(delivery)
    sink.stage(delivery, folder)
    sink.stage(delivery, folder)  # after a crash
    assert digest_row_blocks(sink.read_staged(delivery, folder)) == digest
    assert case.recipient.list_tables() == [] and case.recipient.read_document() is None
    manifest = make_manifest(sink, delivery)
    sink.expose(delivery, manifest)
    sink.expose(delivery, manifest)
    assert case.recipient.read_document() == manifest
    assert len(case.recipient.list_tables()) == 1
    sink.check_target(make_delivery(sink.name, case.options, "0002"))


def check_removed(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    write_folder(folder)
    delivery = make_delivery(sink.name, case.options)
    sink.stage(delivery, folder)
    sink.expose(delivery, make_manifest(sink, delivery))
    assert len(case.recipient.list_tables()) == 1
    for _ in range(2):
        sink.remove(delivery, NOTICE)
        assert case.recipient.list_tables() == []
        assert case.recipient.read_document() == NOTICE


def check_removed_before_exposed(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    write_folder(folder)
    delivery = make_delivery(sink.name, case.options)
    sink.stage(delivery, folder)
    sink.remove(delivery, NOTICE)
    assert case.recipient.list_tables() == []
    with pytest.raises(BadInput):
        read_staged(sink, delivery, folder)


def check_discarded(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    write_folder(folder)
    delivery = make_delivery(sink.name, case.options)
    sink.stage(delivery, folder)
    for _ in range(2):
        sink.discard(delivery)
    with pytest.raises(BadInput):
        read_staged(sink, delivery, folder)


def check_existing_target_refused(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    case.recipient.fill_target()
    with pytest.raises(BadInput, match="exists already"):
        sink.check_target(make_delivery(sink.name, case.options))


def check_other_delivery_kept(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    """Another home may have a dataset of the same name, with the same columns, in one place."""
    write_folder(folder)
    first = make_delivery(sink.name, case.options)
    second = make_delivery(sink.name, case.options, token=OTHER_TOKEN)
    manifest = make_manifest(sink, first)
    sink.stage(first, folder)
    sink.stage(second, folder)
    sink.expose(first, manifest)
    for document in (manifest, NOTICE):
        tables = case.recipient.list_tables()
        with pytest.raises(BadInput, match="exists already"):
            sink.check_target(second)
        with pytest.raises(BadInput, match="exists already"):
            sink.expose(second, make_manifest(sink, second))
        sink.remove(second, b"other notice")
        assert case.recipient.list_tables() == tables
        assert case.recipient.read_document() == document
        with pytest.raises(BadInput):
            read_staged(sink, second, folder)
        sink.stage(second, folder)
        sink.remove(first, NOTICE)
    assert case.recipient.list_tables() == []


def check_wrong_options_refused(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    for wrong in case.wrong:
        with pytest.raises(BadInput) as caught:
            sink.check_target(make_delivery(sink.name, {**case.options, **wrong}))
        assert caught.value.remedy and caught.value.exit_code == 2


def check_place_without_server(sink: ServerSink, case: ServerCase, folder: Path) -> None:
    place: dict[str, Any] = sink.describe_place(make_delivery(sink.name, case.options))
    assert place["kind"] == sink.name
    assert "127.0.0.1" not in str(place)

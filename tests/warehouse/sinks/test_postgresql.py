from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble
from tests.contract.checks_sinks import (
    NOTICE,
    ServerCase,
    make_delivery,
    make_manifest,
    write_folder,
)
from tests.contract.test_sinks import make_database
from tests.support.servers import PASSWORD, Postgresql
from warehouse.checkpoints import LISTENERS
from warehouse.sinks import Delivery
from warehouse.sinks import postgresql as module

SINK = module.Postgresql()
ROLES = ("role_member", "role_all_data", "role_admin", "role_staging")


@pytest.fixture
def case(postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch) -> ServerCase:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return make_database(postgresql)


@pytest.fixture
def delivery(case: ServerCase, tmp_path: Path) -> Delivery:
    write_folder(tmp_path)
    return make_delivery("postgresql", case.options)


def get_database(delivery: Delivery) -> str:
    return delivery.options["url"].rpartition("/")[2]


def end_connections(postgresql: Postgresql, delivery: Delivery) -> None:
    postgresql.run(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        f"where datname = '{get_database(delivery)}' and pid <> pg_backend_pid()"
    )


@contextmanager
def call_at(point: str, work: Callable[[], Any]) -> Iterator[None]:
    def listen(name: str) -> None:
        if name == point:
            work()

    LISTENERS.append(listen)
    try:
        yield
    finally:
        LISTENERS.remove(listen)


@pytest.mark.extended
@pytest.mark.parametrize("reader", ["writer", *ROLES])
def test_check_target_reader_who_sees_staged_rows_refused(
    reader: str, case: ServerCase, delivery: Delivery, postgresql: Postgresql
) -> None:
    known = {name for (name,) in postgresql.run("select rolname from pg_roles")}
    for role in set(ROLES) - known:
        postgresql.run(f"create role {role}")
    postgresql.run(
        "grant writer to role_member",
        "grant pg_read_all_data to role_all_data",
        "alter role role_admin superuser",
    )
    if reader == "role_staging":  # which another user made
        postgresql.run(
            "create schema ppdm_staging authorization admin",
            "grant create, usage on schema ppdm_staging to writer",
            "grant usage on schema ppdm_staging to role_staging",
            database=get_database(delivery),
        )
    other = make_delivery("postgresql", {**case.options, "reader": reader})
    with pytest.raises(BadInput, match=f"role '{reader}' .* could read rows that are not"):
        SINK.check_target(other)
    if reader != "role_staging":
        SINK.check_target(delivery)


@pytest.mark.extended
def test_expose_table_made_meanwhile_refused_and_kept(
    delivery: Delivery, postgresql: Postgresql, tmp_path: Path
) -> None:
    SINK.check_target(delivery)
    SINK.stage(delivery, tmp_path)
    database = get_database(delivery)
    postgresql.run("create table open.t_0001 as select 7 as a", database=database)
    with pytest.raises(BadInput, match="exists already"):
        SINK.expose(delivery, b"{}")
    SINK.remove(delivery, NOTICE)
    assert postgresql.run("select a from open.t_0001", database=database) == [(7,)]


@pytest.mark.extended
def test_expose_reader_cannot_see_token(
    delivery: Delivery, case: ServerCase, postgresql: Postgresql, tmp_path: Path
) -> None:
    from adbc_driver_manager import Error

    SINK.stage(delivery, tmp_path)
    SINK.expose(delivery, b"{}")
    assert case.recipient.read_document() == b"{}"
    for columns in ("token", "*"):
        with pytest.raises(Error):
            postgresql.run(
                f"select {columns} from open.ppdm_manifests",
                database=get_database(delivery),
                user="reader",
            )


@pytest.mark.extended
def test_stage_server_gone_in_the_middle_is_trouble_then_completed(
    delivery: Delivery,
    case: ServerCase,
    postgresql: Postgresql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = module._stream

    def end_after_first(file: Any) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from stream(file)
            end_connections(postgresql, delivery)

        return pa.RecordBatchReader.from_batches(file.schema_arrow, batches())

    monkeypatch.setattr(module, "_stream", end_after_first)
    with pytest.raises(MachineTrouble, match="is gone") as caught:
        SINK.stage(delivery, tmp_path)
    assert caught.value.exit_code == 5
    assert case.recipient.list_tables() == []
    monkeypatch.undo()
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    complete(delivery, case, tmp_path)


def complete(delivery: Delivery, case: ServerCase, folder: Path) -> None:
    SINK.check_target(delivery)
    SINK.stage(delivery, folder)
    manifest = make_manifest(SINK, delivery)
    SINK.expose(delivery, manifest)
    assert case.recipient.list_tables() == ["open.t_0001"]
    assert case.recipient.read_document() == manifest


@pytest.mark.extended
def test_expose_server_gone_before_commit_is_trouble_then_completed(
    delivery: Delivery, case: ServerCase, postgresql: Postgresql, tmp_path: Path
) -> None:
    SINK.stage(delivery, tmp_path)
    with (
        call_at("rows moved", lambda: end_connections(postgresql, delivery)),
        pytest.raises(MachineTrouble, match="is gone"),
    ):
        SINK.expose(delivery, b"{}")
    assert case.recipient.list_tables() == [] and case.recipient.read_document() is None
    manifest = make_manifest(SINK, delivery)
    SINK.expose(delivery, manifest)
    assert case.recipient.list_tables() == ["open.t_0001"]
    assert case.recipient.read_document() == manifest


@pytest.mark.extended
def test_remove_server_gone_before_commit_is_trouble_then_completed(
    delivery: Delivery, case: ServerCase, postgresql: Postgresql, tmp_path: Path
) -> None:
    complete(delivery, case, tmp_path)
    with (
        call_at("rows removed", lambda: end_connections(postgresql, delivery)),
        pytest.raises(MachineTrouble, match="is gone"),
    ):
        SINK.remove(delivery, NOTICE)
    assert case.recipient.list_tables() == ["open.t_0001"]
    assert case.recipient.read_document() == make_manifest(SINK, delivery)
    SINK.remove(delivery, NOTICE)
    assert case.recipient.list_tables() == [] and case.recipient.read_document() == NOTICE

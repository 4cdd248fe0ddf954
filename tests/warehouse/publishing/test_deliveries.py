from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble, Refused
from tests.contract.checks_sinks import TOKEN, read_staged, write_folder
from tests.contract.test_sinks import make_database
from tests.support.sealed_home import publish
from tests.support.servers import PASSWORD, Postgresql, find_free_port
from warehouse.checkpoints import LISTENERS
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.history import check_history
from warehouse.publishing.deliveries import (
    complete_deliveries,
    get_server_sink,
    list_pending_deliveries,
    stage_deliveries,
)
from warehouse.publishing.withdraw import withdraw_version
from warehouse.sinks import Delivery

SINK = get_server_sink("postgresql")


class Killed(BaseException):
    pass


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.create()
    return Store(home)


@pytest.fixture
def delivery(postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch) -> Delivery:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    options = make_database(postgresql).options
    return Delivery("postgresql", options, "wine", "wine-0001", "0001", TOKEN)


@pytest.fixture
def staged(delivery: Delivery, tmp_path: Path) -> tuple[Delivery, Path, str]:
    """A delivery, its files, and the digest of their rows."""
    folder = tmp_path / "files"
    folder.mkdir()
    return delivery, folder, write_folder(folder)


def kill_at(point: str, work: Callable[[], None]) -> None:
    def listen(name: str) -> None:
        if name == point:
            raise Killed

    LISTENERS.append(listen)
    try:
        with pytest.raises(Killed):
            work()
    finally:
        LISTENERS.remove(listen)


def list_steps(store: Store) -> list[str]:
    with store.transaction("tests") as db:
        check_history(db)
        rows = db.execute("select kind from meta.event order by number").fetchall()
    return [kind for (kind,) in rows if kind in ("published", "delivered", "withdrawn", "removed")]


def list_pending(store: Store) -> list[str]:
    with store.transaction("tests") as db:
        return [kind for _, kind in list_pending_deliveries(db, "wine")]


def can_read(postgresql: Postgresql, delivery: Delivery) -> bool:
    from adbc_driver_manager import Error

    database = delivery.options["url"].rpartition("/")[2]
    try:
        postgresql.run("select * from open.wine_0001", database=database, user="reader")
    except Error:
        return False
    return True


@pytest.mark.slow
def test_complete_killed_after_the_server_done_once(
    store: Store, staged: tuple[Delivery, Path, str], postgresql: Postgresql
) -> None:
    delivery, folder, _ = staged
    SINK.stage(delivery, folder)
    publish(store, deliveries=(delivery,))
    assert list_pending(store) == ["delivered"] and not can_read(postgresql, delivery)
    kill_at("delivery changed", lambda: complete_deliveries(store, "wine"))
    assert list_pending(store) == ["delivered"] and can_read(postgresql, delivery)
    for _ in range(2):
        complete_deliveries(store, "wine")
    assert list_pending(store) == []
    kill_at("delivery changed", lambda: withdraw_version(store, "wine-0001", "a mistake") and None)
    assert list_pending(store) == ["removed"] and not can_read(postgresql, delivery)
    withdraw_version(store, "wine-0001", "a mistake")
    assert list_steps(store) == ["published", "delivered", "withdrawn", "removed"]


@pytest.mark.extended
def test_complete_server_gone_trouble_then_completed(
    store: Store,
    staged: tuple[Delivery, Path, str],
    postgresql: Postgresql,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delivery, folder, _ = staged
    SINK.stage(delivery, folder)
    publish(store, deliveries=(delivery,))
    monkeypatch.setenv("PGPASSWORD", "CANARYwrong")
    with pytest.raises(MachineTrouble, match="is published, and not yet in its") as caught:
        complete_deliveries(store, "wine")
    assert "CANARY" not in str(caught.value) and caught.value.remedy
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    complete_deliveries(store, "wine")
    assert can_read(postgresql, delivery)


@pytest.mark.extended
def test_complete_changed_manifest_not_delivered(
    store: Store, staged: tuple[Delivery, Path, str], postgresql: Postgresql
) -> None:
    delivery, folder, _ = staged
    SINK.stage(delivery, folder)
    (publish(store, deliveries=(delivery,)) / "manifest.json").write_text("{}")
    with pytest.raises(Refused, match="manifest was changed"):
        complete_deliveries(store, "wine")
    assert not can_read(postgresql, delivery)


@pytest.mark.extended
@pytest.mark.parametrize("is_recorded", [False, True])
def test_stage_failed_block_discards_unless_recorded(
    is_recorded: bool, staged: tuple[Delivery, Path, str]
) -> None:
    delivery, folder, digest = staged

    def fail() -> None:
        with stage_deliveries((delivery,), folder, digest, lambda: is_recorded):
            raise Killed

    with pytest.raises(Killed):
        fail()
    if is_recorded:
        assert read_staged(SINK, delivery, folder).num_rows == 6
    else:
        with pytest.raises(BadInput):
            read_staged(SINK, delivery, folder)


@pytest.mark.extended
def test_stage_other_rows_refused(staged: tuple[Delivery, Path, str]) -> None:
    delivery, folder, _ = staged
    with (
        pytest.raises(Refused, match="does not hold the rows that were audited"),
        stage_deliveries((delivery,), folder, "another digest", lambda: False),
    ):
        pass
    with pytest.raises(BadInput):
        read_staged(SINK, delivery, folder)


@pytest.mark.extended
def test_stage_unreachable_server_nothing_done(staged: tuple[Delivery, Path, str]) -> None:
    delivery, folder, digest = staged
    url = f"postgresql://writer@127.0.0.1:{find_free_port()}/d"
    other = Delivery(**{**vars(delivery), "options": {**delivery.options, "url": url}})
    with (
        pytest.raises(MachineTrouble, match=r"wine-0001 is not published.*cannot be reached"),
        stage_deliveries((delivery, other), folder, digest, lambda: False),
    ):
        pytest.fail("nothing may be recorded")
    with pytest.raises(BadInput):
        read_staged(SINK, delivery, folder)

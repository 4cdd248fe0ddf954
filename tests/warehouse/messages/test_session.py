"""Messages between parties: exchanged once, in order, and only between them."""

from __future__ import annotations

import json
import resource
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError
from ppdm_core.model.manifest import canonical_json
from tests.support.parties import Parties
from warehouse.messages import envelope
from warehouse.messages.envelope import (
    StrayFile,
    encode_message,
    parse_message,
    seal_message,
    signed_text,
)
from warehouse.messages.payloads import Bounds, End, OrderKey, Selection
from warehouse.messages.roll import CENTRE
from warehouse.messages.session import Session

BOUNDS = Bounds(low=[0.0, 0.25], high=[0.5, 1.0])
FIRST = "000-north-centre.msg"


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    return Parties(tmp_path)


@pytest.fixture
def sessions(parties: Parties) -> dict[str, Session]:
    return parties.begin()


def test_session_message_is_received_once_and_in_order(sessions: dict[str, Session]):
    north, centre = sessions["north"], sessions[CENTRE]
    assert centre.receive("north", "bounds") is None
    north.send(CENTRE, "bounds", lambda: BOUNDS)
    found = centre.receive("north", "bounds")
    assert found is not None and found.payload == BOUNDS
    centre.send("north", "selection", lambda: Selection(kept=[1]))
    reply = north.receive(CENTRE, "selection", "end")
    assert reply is not None and reply.kind == "selection"
    assert centre.receive("north", "rows") is None


def test_session_content_is_not_readable_in_the_shared_folder(
    parties: Parties, sessions: dict[str, Session]
):
    key = "7" * 64
    sessions["east"].send("north", "order", lambda: OrderKey(key=key))
    raw = parties.find_file("000-east-north.msg").read_bytes()
    assert key.encode() not in raw
    found = sessions["north"].receive("east", "order")
    assert found is not None and found.payload == OrderKey(key=key)


def test_session_centre_cannot_open_a_message_between_sites(
    parties: Parties, sessions: dict[str, Session]
):
    sessions["east"].send("north", "order", lambda: OrderKey(key="7" * 64))
    name = "000-east-north.msg"
    header, _, _ = parse_message(name, parties.find_file(name).read_bytes())
    with pytest.raises(BadInput, match="is not encrypted to 'north'"):
        envelope.open_message(
            name,
            parties.find_file(name).read_bytes(),
            header,
            ("order",),
            parties.keys["east"].public_key(),
            sessions[CENTRE].exchange,
        )


def test_session_new_process_repeats_nothing_and_continues(
    parties: Parties, sessions: dict[str, Session]
):
    sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    raw = parties.find_file(FIRST).read_bytes()
    again = parties.resume("north")
    parties.find_file(FIRST).unlink()  # killed between storing and sending
    again.send(CENTRE, "bounds", lambda: pytest.fail("it was made a second time"))
    assert parties.find_file(FIRST).read_bytes() == raw
    sessions[CENTRE].receive("north", "bounds")
    parties.find_file(FIRST).unlink()
    found = parties.resume(CENTRE).receive("north", "bounds")
    assert found is not None and found.payload == BOUNDS


def test_session_changed_file_after_acceptance_is_not_read(
    parties: Parties, sessions: dict[str, Session]
):
    sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    sessions[CENTRE].receive("north", "bounds")
    parties.find_file(FIRST).write_bytes(b"{}")
    found = parties.resume(CENTRE).receive("north", "bounds")
    assert found is not None and found.payload == BOUNDS


def resign(parties: Parties, raw: bytes, signer: str = "north", **changes: object) -> bytes:
    """Return the message with another header, signed again by its sender."""
    header, body, _ = parse_message("m", raw)
    header = replace(header, **changes)
    return encode_message(header, body, parties.keys[signer].sign(signed_text(header, body)).hex())


BAD_HEADERS = {
    "version": ({"version": 2}, "has version 2; this program reads version 1"),
    "dataset": ({"dataset": "clinic"}, "is of dataset 'clinic', not of 'ward'"),
    "session": ({"session": "0002"}, "is of release 0002, not of 0001"),
    "receiver": ({"receiver": "south"}, "is for 'south', not for 'centre'"),
    "sender": ({"sender": "east"}, "is from 'east', not from 'north'"),
    "roll": ({"roll": "0" * 64}, "is bound to another roll of sites"),
    "kind": ({"kind": "moments"}, "is a 'moments', and a 'bounds' comes next"),
    "number": ({"number": 1}, "is number 1, and number 0 comes next"),
    "transcript": ({"transcript": "0" * 64}, "follows other messages"),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", BAD_HEADERS)
def test_receive_signed_message_with_another_header_refused(
    parties: Parties, sessions: dict[str, Session], case: str
):
    sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    changes, words = BAD_HEADERS[case]
    path = parties.find_file(FIRST)
    path.write_bytes(resign(parties, path.read_bytes(), **changes))
    with pytest.raises(PpdmError, match=words) as error:
        sessions[CENTRE].receive("north", "bounds")
    belongs_here = case in ("kind", "transcript")  # only its sender can have put it there
    assert isinstance(error.value, StrayFile) != belongs_here
    assert error.value.exit_code == 2
    assert error.value.file == FIRST and error.value.remedy
    assert not sessions[CENTRE].has_next("north")


def flip_body(raw: bytes) -> bytes:
    found = json.loads(raw)
    found["body"] = ("B" if found["body"][0] != "B" else "C") + found["body"][1:]
    return f"{canonical_json(found)}\n".encode()


def flip_signature(raw: bytes) -> bytes:
    found = json.loads(raw)
    found["signature"] = found["signature"][::-1]
    return f"{canonical_json(found)}\n".encode()


CHANGED = {
    "body": (flip_body, "was changed, or 'north' did not sign it"),
    "signature": (flip_signature, "was changed, or 'north' did not sign it"),
    "spaces": (lambda raw: raw.replace(b",", b", "), "does not have the form of a message"),
    "no JSON": (lambda raw: raw[:-40], "does not have the form of a message"),
    "a list": (lambda raw: b"[]\n", "does not have the form of a message"),
    "empty": (lambda raw: b"", "does not have the form of a message"),
    "extra field": (
        lambda raw: raw.replace(b'"header":{', b'"header":{"added":1,'),
        "does not have the form of a message",
    ),
    "number as text": (
        lambda raw: raw.replace(b'"number":0', b'"number":"0"'),
        "does not have the form of a message",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", CHANGED)
def test_receive_changed_bytes_refused(parties: Parties, sessions: dict[str, Session], case: str):
    sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    change, words = CHANGED[case]
    path = parties.find_file(FIRST)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(StrayFile, match=words):
        sessions[CENTRE].receive("north", "bounds")


def test_receive_message_of_another_site_in_its_place_refused(
    parties: Parties, sessions: dict[str, Session]
):
    sessions["east"].send(CENTRE, "bounds", lambda: BOUNDS)
    shutil.copy(parties.find_file("000-east-centre.msg"), parties.find_file(FIRST))
    with pytest.raises(StrayFile, match="is from 'east', not from 'north'"):
        sessions[CENTRE].receive("north", "bounds")


def test_receive_message_that_another_site_signed_refused(
    parties: Parties, sessions: dict[str, Session]
):
    sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    path = parties.find_file(FIRST)
    path.write_bytes(resign(parties, path.read_bytes(), signer="south"))
    with pytest.raises(StrayFile, match="'north' did not sign it"):
        sessions[CENTRE].receive("north", "bounds")


def test_receive_replay_of_an_earlier_message_refused(
    parties: Parties, sessions: dict[str, Session]
):
    north, centre = sessions["north"], sessions[CENTRE]
    north.send(CENTRE, "bounds", lambda: BOUNDS)
    centre.receive("north", "bounds")
    shutil.copy(parties.find_file(FIRST), parties.find_file("001-north-centre.msg"))
    with pytest.raises(StrayFile, match="number 0, and number 1 comes next"):
        centre.receive("north", "bounds")


def test_receive_replay_of_an_earlier_session_refused(tmp_path: Path):
    first = Parties(tmp_path / "a")
    sessions = first.begin()
    sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    second = Parties(tmp_path / "b", keys=first.keys)  # the same keys, a new release
    later = second.begin()
    shutil.copy(first.find_file(FIRST), second.find_file(FIRST))
    with pytest.raises(StrayFile, match="another roll"):
        later[CENTRE].receive("north", "bounds")


def test_receive_payload_of_another_type_refused(parties: Parties, sessions: dict[str, Session]):
    sessions["north"].send(CENTRE, "bounds", lambda: End(outcome="refused"))
    with pytest.raises(BadInput, match="does not hold what a 'bounds' holds"):
        sessions[CENTRE].receive("north", "bounds")


@pytest.mark.parametrize(
    "text",
    [
        '{"low":[0.1],"high":[2.0]}',  # no share
        '{"low":[0.1],"high":["0.2"]}',
        '{"low":[0.1],"high":[0.2],"rows":[[1.5]]}',
        '{"low":[0.1]}',
        '{"low":[NaN],"high":[0.2]}',
    ],
)
def test_parse_payload_wrong_content_refused(text: str):
    with pytest.raises(BadInput, match="does not hold what a 'bounds' holds"):
        envelope.parse_payload("m", "bounds", text.encode())


def test_receive_message_encrypted_to_another_site_refused(
    parties: Parties, sessions: dict[str, Session]
):
    sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    path = parties.find_file(FIRST)
    header, _, _ = parse_message(FIRST, path.read_bytes())
    other = sessions[CENTRE].roll.find("south").encryption_key()
    path.write_bytes(seal_message(header, BOUNDS, parties.keys["north"], other))
    with pytest.raises(BadInput, match="is not encrypted to 'centre'"):
        sessions[CENTRE].receive("north", "bounds")


def test_receive_huge_file_refused(
    parties: Parties, sessions: dict[str, Session], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("warehouse.messages.shared_folder.MAX_MESSAGE_BYTES", 1 << 20)
    parties.find_file(FIRST).write_bytes(b" " * (1 + (1 << 20)))
    with pytest.raises(StrayFile, match="is larger than 1 MB"):
        sessions[CENTRE].receive("north", "bounds")


def test_receive_link_refused(parties: Parties, sessions: dict[str, Session], tmp_path: Path):
    (tmp_path / "private").write_text("{}")
    parties.find_file(FIRST).symlink_to(tmp_path / "private")
    with pytest.raises(StrayFile, match="is a link or a folder"):
        sessions[CENTRE].receive("north", "bounds")


def test_send_place_taken_by_another_file_refused(parties: Parties, sessions: dict[str, Session]):
    parties.find_file(FIRST).write_bytes(b"{}")
    with pytest.raises(StrayFile, match="in the shared folder already"):
        sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)


def test_session_shared_folder_gone_then_back_continues(
    parties: Parties, sessions: dict[str, Session]
):
    away = parties.shared.with_name("away")
    parties.shared.rename(away)
    with pytest.raises(MachineTrouble, match="is not there") as error:
        sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS)
    assert error.value.exit_code == 5
    away.rename(parties.shared)
    parties.resume("north").send(CENTRE, "bounds", lambda: pytest.fail("made twice"))
    assert sessions[CENTRE].receive("north", "bounds") is not None


def test_session_shared_folder_not_mounted_then_back_continues(
    parties: Parties, sessions: dict[str, Session]
):
    """The folder below which another one was mounted is there, and empty."""
    away = parties.shared.with_name("away")
    parties.shared.rename(away)
    parties.shared.mkdir()
    for step in (
        lambda: sessions["north"].send(CENTRE, "bounds", lambda: BOUNDS),
        lambda: sessions[CENTRE].receive("north", "bounds"),
        lambda: parties.resume("north"),
    ):
        with pytest.raises(MachineTrouble, match="lacks the files of release 0001") as error:
            step()
        assert error.value.exit_code == 5
    assert list(parties.shared.iterdir()) == []
    parties.shared.rmdir()
    away.rename(parties.shared)
    parties.resume("north").send(CENTRE, "bounds", lambda: pytest.fail("made twice"))
    assert sessions[CENTRE].receive("north", "bounds") is not None


def test_put_full_disk_leaves_no_part(parties: Parties, sessions: dict[str, Session]):
    """Files of more bytes than the limit of the process cannot be written, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    shared = sessions["north"].shared
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        with pytest.raises(MachineTrouble, match="Cannot write below"):
            shared.put("000-north-centre.msg", b"x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(shared.folder.glob(".*"))
    assert shared.find("000-north-centre.msg") is None


def test_session_message_between_earlier_ones_changes_every_later_transcript(
    parties: Parties, sessions: dict[str, Session]
):
    """A site that saw another message than the centre sent cannot go on unnoticed."""
    north, centre = sessions["north"], sessions[CENTRE]
    north.send(CENTRE, "bounds", lambda: BOUNDS)
    centre.receive("north", "bounds")
    centre.send("north", "selection", lambda: Selection(kept=[1]))
    name = "001-centre-north.msg"
    header, _, _ = parse_message(name, parties.find_file(name).read_bytes())
    other = seal_message(
        header, Selection(kept=[0]), parties.keys[CENTRE], north.roll.find("north").encryption_key()
    )
    parties.find_file(name).write_bytes(other)  # the centre says one thing and stores another
    assert north.receive(CENTRE, "selection") is not None
    north.send(CENTRE, "rows", lambda: End(outcome="refused"))
    with pytest.raises(BadInput, match="follows other messages"):
        centre.receive("north", "rows")

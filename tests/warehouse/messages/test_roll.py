"""The roll: who takes part, with which keys, and what a site refuses."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import key_fingerprint
from tests.support.parties import TERMS, Parties
from warehouse import checkpoints
from warehouse.messages.membership import Membership, check_pins, store_membership
from warehouse.messages.roll import (
    CENTRE,
    NUMBER_NAME,
    ROLL_NAME,
    Hello,
    Roll,
    encode_hello,
    encode_number,
    encode_roll,
    name_hello,
    parse_roll,
    sign_hello,
    sign_number,
    sign_roll,
)


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    """All parties have said hello, and the centre has signed the roll."""
    parties = Parties(tmp_path)
    parties.enter(CENTRE).say_hello()
    for name in parties.sites:
        parties.enter(name).accept_roll(TERMS)
    assert parties.enter(CENTRE).issue_roll(TERMS) is not None
    return parties


def read_roll(parties: Parties) -> Roll:
    return parse_roll(parties.find_file(ROLL_NAME).read_bytes())


def write_roll(
    parties: Parties, hellos: tuple[Hello, ...], terms: Any = None, **changes: Any
) -> None:
    """Put another roll into the shared folder, correctly signed by the centre."""
    roll = read_roll(parties)
    found = sign_roll(terms or roll.terms, hellos, parties.keys[CENTRE])
    parties.find_file(ROLL_NAME).write_bytes(encode_roll(replace(found, **changes)))


def test_roll_sound_begins_a_session_for_every_party(parties: Parties):
    sessions = {name: parties.resume(name) for name in (CENTRE, *parties.sites)}
    assert len({session.roll.digest for session in sessions.values()}) == 1
    assert sessions["east"].roll.sites == ("east", "north", "south")


def test_issue_roll_waits_for_every_site(tmp_path: Path):
    parties = Parties(tmp_path)
    assert parties.enter(CENTRE).issue_roll(TERMS) is None
    for name in ("north", "east"):
        parties.enter(name).say_hello()
    assert parties.enter(CENTRE).issue_roll(TERMS) is None
    parties.enter("south").say_hello()
    assert parties.enter(CENTRE).issue_roll(TERMS) is not None


def test_accept_roll_swapped_exchange_key_refused(parties: Parties):
    """A centre in the middle puts a key of its own into the hello of a site."""
    centre, east, north, south = read_roll(parties).parties
    own = X25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    write_roll(parties, (centre, replace(east, exchange=own), north, south))
    with pytest.raises(BadInput, match="was changed, or 'east' did not sign it"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_swapped_signing_key_refused(parties: Parties):
    """A centre in the middle signs the hello of a site with a key of its own."""
    centre, east, north, south = read_roll(parties).parties
    mine = Ed25519PrivateKey.generate()
    forged = sign_hello("ward", "0001", "east", east.exchange, mine)
    write_roll(parties, (centre, forged, north, south))
    words = f"has the key {key_fingerprint(mine.public_key())} of 'east', and .* is pinned"
    with pytest.raises(BadInput, match=words):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_smaller_one_refused(parties: Parties):
    centre, _, north, south = read_roll(parties).parties
    write_roll(parties, (centre, north, south))
    with pytest.raises(BadInput, match="leaves out 'east'"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_larger_one_refused(parties: Parties):
    other = sign_hello("ward", "0001", "west", "1" * 64, Ed25519PrivateKey.generate())
    write_roll(parties, (*read_roll(parties).parties, other))
    with pytest.raises(BadInput, match="has 'west', which is not pinned"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_site_twice_refused(parties: Parties):
    centre, east, north, south = read_roll(parties).parties
    write_roll(parties, (centre, east, east, north, south))
    with pytest.raises(BadInput, match="names a site twice"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_one_key_under_two_names_refused(parties: Parties):
    centre, east, north, _ = read_roll(parties).parties
    copied = sign_hello("ward", "0001", "south", east.exchange, parties.keys["east"])
    write_roll(parties, (centre, east, north, copied))
    with pytest.raises(BadInput, match="two parties with the same key"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_old_hello_of_this_site_refused(parties: Parties):
    centre, east, _, south = read_roll(parties).parties
    old = sign_hello("ward", "0001", "north", "2" * 64, parties.keys["north"])
    write_roll(parties, (centre, east, old, south))
    with pytest.raises(BadInput, match="does not hold the hello of this site"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_hello_of_another_session_refused(parties: Parties):
    centre, east, north, south = read_roll(parties).parties
    late = sign_hello("ward", "0002", "east", east.exchange, parties.keys["east"])
    write_roll(parties, (centre, late, north, south))
    with pytest.raises(BadInput, match="is of ward 0002, not of ward 0001"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_not_signed_by_the_centre_refused(parties: Parties):
    roll = read_roll(parties)
    found = sign_roll(roll.terms, roll.parties, parties.keys["south"])
    parties.find_file(ROLL_NAME).write_bytes(encode_roll(found))
    with pytest.raises(BadInput, match="the centre did not sign it"):
        parties.enter("north").accept_roll(TERMS)


def test_accept_roll_another_version_refused(parties: Parties):
    write_roll(parties, read_roll(parties).parties, version=2)
    with pytest.raises(BadInput, match="has version 2; this program reads version 1"):
        parties.enter("north").accept_roll(TERMS)


@pytest.mark.parametrize("exchange", ["00" * 32, "01" + "00" * 31])
def test_find_hello_key_that_shares_no_secret_refused(tmp_path: Path, exchange: str):
    """Points of small order give the same secret to everybody."""
    parties = Parties(tmp_path)
    parties.enter(CENTRE).say_hello()
    hello = sign_hello("ward", "0001", "east", exchange, parties.keys["east"])
    parties.find_file(name_hello("east")).write_bytes(encode_hello(hello))
    with pytest.raises(BadInput, match="has an X25519 key of 'east' that shares no secret"):
        parties.enter(CENTRE).issue_roll(TERMS)


@pytest.mark.parametrize(
    "changes",
    [{"exchange": "zz" * 32}, {"exchange": "1"}, {"public": "zz"}, {"name": ["east"]}],
)
def test_hello_without_its_form_refused(parties: Parties, changes: dict[str, Any]):
    roll = read_roll(parties)
    centre, east, *others = roll.parties
    bad = replace(east, **changes)
    parties.find_file(name_hello("east")).write_bytes(encode_hello(bad))
    with pytest.raises(BadInput, match="does not have the form of a hello"):
        parties.enter(CENTRE).find_hello("east")
    write_roll(parties, (centre, bad, *others))
    with pytest.raises(BadInput, match="does not have the form of a roll"):
        parties.enter("north").accept_roll(TERMS)


@pytest.mark.parametrize("columns", [["name"], [{"name": ["x"]}], [{}], 5, None])
def test_roll_columns_without_their_form_refused(parties: Parties, columns: Any):
    write_roll(parties, read_roll(parties).parties, {**TERMS, "columns": columns})
    with pytest.raises(BadInput, match="does not have the form of a roll"):
        parties.enter("north").accept_roll(TERMS)


@pytest.mark.extended
@pytest.mark.parametrize("raw", [b"", b"{}\n", b"[]\n", b'{"parties":[]}\n', b"\xff"])
def test_accept_roll_not_a_roll_refused(parties: Parties, raw: bytes):
    parties.find_file(ROLL_NAME).write_bytes(raw)
    with pytest.raises(BadInput, match="does not have the form of a roll"):
        parties.enter("north").accept_roll(TERMS)


def change(path: str, value: Any) -> dict[str, Any]:
    """Return the terms with one value changed, or removed for None."""
    terms = copy.deepcopy(TERMS)
    *names, last = (int(name) if name.isdigit() else name for name in path.split("/"))
    part = terms
    for name in names:
        part = part[name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return terms


OTHER_TERMS = {
    "bounds": ("columns/0/high", 2.0, "another 'high' of column 'x'"),
    "role": ("columns/1/role", "label", "another 'role' of column 'y'"),
    "column missing": ("columns/1", None, "other columns than the release file: 'y'"),
    "column renamed": ("columns/1/name", "z", "other columns than the release file: 'y'"),
    "method": ("method", "dct_fuzzy", "another method than the release file"),
    "a parameter": ("parameters/bandwidth", "paper", r"another 'bandwidth' in \[sanitizer\]"),
    "a parameter more": ("parameters/floor", 0.5, r"another 'floor' in \[sanitizer\]"),
    "no parameters": ("parameters", "none", "another parameters than the release file"),
    "a partition": ("partition", "columns", r"another use of 'others' in \[sanitizer\]"),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", OTHER_TERMS)
def test_accept_roll_other_terms_refused(parties: Parties, case: str):
    path, value, words = OTHER_TERMS[case]
    with pytest.raises(BadInput, match=words):
        parties.enter("north").accept_roll(change(path, value))


def test_accept_roll_other_columns_order_refused(parties: Parties):
    swapped = {**TERMS, "columns": TERMS["columns"][::-1]}
    with pytest.raises(BadInput, match="other columns"):
        parties.enter("north").accept_roll(swapped)


def test_find_hello_fingerprint_that_is_not_pinned_refused(tmp_path: Path):
    parties = Parties(tmp_path)
    other = Ed25519PrivateKey.generate()
    hello = sign_hello("ward", "0001", CENTRE, "3" * 64, other)
    parties.enter(CENTRE).announce("0001")
    parties.find_file("x").parent.mkdir(parents=True)
    parties.find_file(name_hello(CENTRE)).write_bytes(encode_hello(hello))
    with pytest.raises(BadInput, match="is pinned") as error:
        parties.enter("north").accept_roll(TERMS)
    assert "telephone" in str(error.value.remedy)
    assert not parties.find_file(name_hello("north")).exists()


def join_later(parties: Parties) -> Parties:
    """End the release at all parties, and let a new site join the next one."""
    parties.enter(CENTRE).announce_next()
    for name in (CENTRE, *parties.sites):
        parties.enter(name).end({"outcome": "published"})
    return Parties(parties.folder, (*parties.sites, "west"), keys=parties.keys)


def test_site_that_joins_later_enters_the_session_of_the_centre(parties: Parties):
    more = join_later(parties)
    sessions = more.begin()
    assert {session.roll.session for session in sessions.values()} == {"0002"}
    assert len({session.roll.digest for session in sessions.values()}) == 1
    assert more.enter("west").session == "0002"  # also in a later process


def test_site_that_joins_later_waits_for_the_centre(parties: Parties):
    """Roll and hellos of the last session are still in the shared folder."""
    more = join_later(parties)
    assert more.enter("west").accept_roll(TERMS) is None
    assert not more.find_file(name_hello("west")).exists()


def test_site_that_gave_up_alone_follows_the_centre(parties: Parties):
    """One party never received the end, and its session was given up by hand."""
    parties.enter(CENTRE).announce_next()
    for name in (CENTRE, "east", "south"):
        parties.enter(name).end({"outcome": "refused"})
    shutil.rmtree(parties.enter("north").folder)
    sessions = parties.begin()
    assert {session.roll.session for session in sessions.values()} == {"0002"}


def test_site_that_ended_the_session_of_the_centre_refuses(parties: Parties):
    parties.enter("north").end({"outcome": "refused"})
    with pytest.raises(BadInput, match="begins release 0001, and this site has ended it"):
        parties.enter("north").accept_roll(TERMS)


NUMBERS: dict[str, tuple[dict[str, Any], str]] = {
    "another number": ({"session": "0009"}, "was changed, or 'centre' did not sign it"),
    "another dataset": ({"dataset": "wing"}, "is of wing, not of ward"),
    "another version": ({"version": 2}, "has version 2"),
    "another key": ({"public": "1" * 64}, "is pinned"),
    "no key": ({"public": "z"}, "is pinned"),
    "no number": ({"session": "../1"}, "does not have the form of a number"),
    "no text": ({"session": 1}, "does not have the form of a number"),
    "a number as key": ({"public": 7}, "does not have the form of a number"),
    "nothing as key": ({"public": None}, "does not have the form of a number"),
    "a list as signature": ({"ed25519": []}, "does not have the form of a number"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_number_of_the_session_that_the_centre_did_not_sign_refused(tmp_path: Path, case: str):
    changes, words = NUMBERS[case]
    parties = Parties(tmp_path)
    number = sign_number("ward", "0001", parties.keys[CENTRE])
    path = parties.shared / "ward" / NUMBER_NAME
    path.parent.mkdir()
    path.write_bytes(encode_number(replace(number, **changes)))
    with pytest.raises(BadInput, match=words):
        parties.enter("north").accept_roll(TERMS)


def test_store_membership_before_the_roll_is_accepted_changes_a_wrong_pin(parties: Parties):
    """A site that pinned a wrong fingerprint refuses the roll, and can join again."""
    right = parties.pins
    parties.join("north", {**right, "south": "0" * 32})
    with pytest.raises(BadInput, match="is pinned"):
        parties.enter("north").accept_roll(TERMS)
    parties.join("north", right)
    assert parties.enter("north").accept_roll(TERMS) is not None


def test_release_given_up_by_all_parties_begins_again(parties: Parties):
    sessions = {name: parties.resume(name) for name in (CENTRE, *parties.sites)}
    digest = sessions[CENTRE].roll.digest
    for session in sessions.values():
        shutil.rmtree(session.folder)
    shutil.rmtree(parties.shared / "ward" / "0001")
    parties.enter(CENTRE).say_hello()
    for name in parties.sites:
        parties.enter(name).accept_roll(TERMS)
    again = parties.enter(CENTRE).issue_roll(TERMS)
    assert again is not None and again.roll.digest != digest


def test_store_membership_during_a_session_refused(parties: Parties):
    parties.resume("north")
    with pytest.raises(BadInput, match="under way"):
        parties.join("north", {**parties.pins, "west": "0" * 32})


def test_store_membership_after_the_end_accepted(parties: Parties):
    parties.enter("north").end({"outcome": "refused"})
    assert parties.enter("north").session == "0002"
    membership = Membership("north", "ward", str(parties.shared), {"north": "0" * 32})
    store_membership(parties.home("north"), membership)


def test_end_forgets_the_exchange_key(parties: Parties):
    folder = parties.enter("north").folder
    assert (folder / "exchange.key").exists()
    parties.enter("north").end({"outcome": "refused"})
    assert not (folder / "exchange.key").exists()


def test_end_killed_before_the_key_is_forgotten_next_start_forgets_it(
    parties: Parties, monkeypatch: pytest.MonkeyPatch
):
    class Killed(BaseException): ...

    def kill(point: str) -> None:
        if point == "end recorded":
            raise Killed

    folder = parties.enter("north").folder
    (folder / "work").mkdir()
    monkeypatch.setattr(checkpoints, "LISTENERS", [kill])
    with pytest.raises(Killed):
        parties.enter("north").end({"outcome": "refused"})
    assert (folder / "exchange.key").exists() and (folder / "ended.json").exists()
    parties.enter("north")
    assert not (folder / "exchange.key").exists() and not (folder / "work").exists()


@pytest.mark.parametrize(
    ("pins", "words"),
    [
        ([("North", "0" * 32)], "cannot be the name"),
        ([("north", "0" * 31)], "32 hexadecimal digits"),
        ([("north", "0" * 32), ("north", "1" * 32)], "is given twice"),
        ([("north", "0" * 32), ("south", "0" * 32)], "is that of another party"),
    ],
)
def test_check_pins_bad_ones_refused(pins: list[tuple[str, str]], words: str):
    with pytest.raises(BadInput, match=words):
        check_pins(pins)

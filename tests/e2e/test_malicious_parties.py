"""A malicious centre or site, against the commands of honest parties in processes of their own.

The test signs with the key of the malicious party, which an honest party has pinned. Every case
ends with one sentence, exit code 2 and no traceback, and the honest party sends nothing more.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ppdm_core.numerics.masks import sum_masked, unpack_values
from tasks.sites.exchange import Exchange
from tasks.sites.fit import mask
from tests.support.forkserver import Result
from tests.support.party_processes import KILLED, PartyProcesses
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.home_key import home_key
from warehouse.messages.envelope import Header, encode_message, parse_message
from warehouse.messages.membership import Entry, read_membership
from warehouse.messages.payloads import Basis, Bounds, End, MaskedSums, Selection, decode_bytes
from warehouse.messages.roll import (
    CENTRE,
    ROLL_NAME,
    Roll,
    encode_hello,
    encode_roll,
    name_hello,
    parse_roll,
    sign_hello,
    sign_roll,
)
from warehouse.messages.session import Session

pytestmark = pytest.mark.slow
Maker = Callable[..., Small]
SIZES = {"east": 40, "north": 40, "south": 40}


class Attacked:
    """A common release whose parties have exchanged the roll."""

    def __init__(self, parties: PartyProcesses) -> None:
        self.parties = parties
        self.folder = parties.shared / "ward" / "0001"

    def open_entry(self, name: str) -> Entry:
        home = Home(self.parties.parties[name].home)
        return Entry(home, read_membership(home, "ward", ""), self.sign_key(name))

    def sign_key(self, name: str) -> Any:
        with Store(Home(self.parties.parties[name].home)).transaction("tests") as db:
            return home_key(db).signing()

    @property
    def roll(self) -> Roll:
        return parse_roll((self.folder / ROLL_NAME).read_bytes())

    def write_roll(self, roll: Roll) -> None:
        (self.folder / ROLL_NAME).write_bytes(encode_roll(roll))

    def open_session(self, name: str) -> Session:
        entry, terms = self.open_entry(name), self.roll.terms
        found = entry.issue_roll(terms) if name == CENTRE else entry.accept_roll(terms)
        assert found is not None
        return found

    def run(self, name: str, wait: float = 0.0) -> Result:
        return self.parties.start(name, wait=wait).wait(300)

    def list_messages(self, sender: str) -> list[str]:
        return sorted(path.name for path in self.folder.glob(f"*-{sender}-*.msg"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> PartyProcesses:
    """Hellos of all parties and the roll, made by their commands; to be copied."""
    parties = PartyProcesses(tmp_path_factory.mktemp("m") / "x", release_in, "dct_fuzzy", SIZES)
    parties.join()
    for name in (CENTRE, *SIZES, CENTRE):
        assert parties.start(name, wait=0.0).wait(300).exit_code == 5  # it waits for the others
    return parties


@pytest.fixture
def attacked(begun: PartyProcesses, tmp_path: Path) -> Iterator[Attacked]:
    """The same parties and folder, as they were; what one test changes is put back."""
    shutil.copytree(begun.folder, tmp_path / "kept", symlinks=True)
    found = Attacked(begun)
    yield found
    shutil.rmtree(begun.folder)
    shutil.copytree(tmp_path / "kept", begun.folder, symlinks=True)


def swap_exchange_key(attacked: Attacked) -> None:
    """The centre puts an X25519 key of its own into the hello of the south."""
    roll, own = attacked.roll, X25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    *others, south = roll.parties
    swapped = (*others, replace(south, exchange=own))
    attacked.write_roll(sign_roll(roll.terms, swapped, attacked.sign_key(CENTRE)))


def swap_signing_key(attacked: Attacked) -> None:
    """The centre signs a hello in the name of the south with its own key."""
    roll, own = attacked.roll, X25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    hello = sign_hello("ward", "0001", "south", own, attacked.sign_key(CENTRE))
    forged = (*roll.parties[:-1], hello)
    attacked.write_roll(sign_roll(roll.terms, forged, attacked.sign_key(CENTRE)))


def leave_out_a_site(attacked: Attacked) -> None:
    roll = attacked.roll
    attacked.write_roll(sign_roll(roll.terms, roll.parties[:-1], attacked.sign_key(CENTRE)))


def name_a_site_twice(attacked: Attacked) -> None:
    roll = attacked.roll
    twice = (*roll.parties, roll.parties[-1])
    attacked.write_roll(sign_roll(roll.terms, twice, attacked.sign_key(CENTRE)))


def use_another_version(attacked: Attacked) -> None:
    attacked.write_roll(replace(attacked.roll, version=2))


def widen_the_bounds(attacked: Attacked) -> None:
    roll = attacked.roll
    terms = json.loads(json.dumps(dict(roll.terms)))
    next(each for each in terms["columns"] if each["name"] == "iron")["high"] = 1000.0
    attacked.write_roll(sign_roll(terms, roll.parties, attacked.sign_key(CENTRE)))


def leave_out_a_column(attacked: Attacked) -> None:
    roll = attacked.roll
    terms = json.loads(json.dumps(dict(roll.terms)))
    terms["columns"] = [each for each in terms["columns"] if each["name"] != "iron"]
    attacked.write_roll(sign_roll(terms, roll.parties, attacked.sign_key(CENTRE)))


ROLLS: dict[str, tuple[Callable[[Attacked], None], str]] = {
    "swapped exchange key": (swap_exchange_key, "was changed, or 'south' did not sign it"),
    "swapped signing key": (swap_signing_key, "two parties with the same key"),
    "smaller roll": (leave_out_a_site, "leaves out 'south', which is pinned"),
    "a site twice": (name_a_site_twice, "names a site twice"),
    "another version": (use_another_version, "has version 2"),
    "other bounds": (widen_the_bounds, "another 'high' of column 'iron'"),
    "other columns": (leave_out_a_column, "other columns than the release file: 'iron'"),
}


def check_refused(result: Result, words: str) -> None:
    """One sentence, exit code 2, and no traceback."""
    assert result.exit_code == 2, result
    error = json.loads(result.stdout)["error"]
    assert words in error["message"] and error["remedy"], error
    assert "Traceback" not in result.stdout + result.stderr


@pytest.mark.parametrize("case", ROLLS)
def test_malicious_centre_roll_refused_by_the_command(attacked: Attacked, case: str):
    change, words = ROLLS[case]
    entry = attacked.open_entry("north")
    (entry.folder / ROLL_NAME).unlink(missing_ok=True)  # it has accepted no roll yet
    change(attacked)
    check_refused(attacked.run("north"), words)
    assert attacked.list_messages("north") == []


def forge(attacked: Attacked, name: str, **changes: Any) -> None:
    """Put a message under a name that another one should have, with a changed header."""
    path = attacked.folder / name
    header, body, signature = parse_message(path.name, path.read_bytes())
    path.write_bytes(encode_message(Header(**{**vars(header), **changes}), body, signature))


def test_malicious_site_message_of_another_site_refused(attacked: Attacked):
    """The south puts its own message in the place of the north's."""
    south = attacked.open_session("south")
    south.send(CENTRE, "bounds", lambda: Bounds(low=[0.0] * 4, high=[1.0] * 4))
    (attacked.folder / "000-south-centre.msg").rename(attacked.folder / "000-east-centre.msg")
    check_refused(attacked.run(CENTRE), "is from 'south', not from 'east'")


def test_malicious_site_message_under_another_name_refused(attacked: Attacked):
    """The south signs a message that says to be from the east."""
    south = attacked.open_session("south")
    south.send(CENTRE, "bounds", lambda: Bounds(low=[0.0] * 4, high=[1.0] * 4))
    forge(attacked, "000-south-centre.msg", sender="east")
    (attacked.folder / "000-south-centre.msg").rename(attacked.folder / "000-east-centre.msg")
    check_refused(attacked.run(CENTRE), "'east' did not sign it")


def test_malicious_site_bounds_of_other_columns_refused(attacked: Attacked):
    for site in SIZES:
        count = 3 if site == "north" else 4
        bounds = Bounds(low=[0.0] * count, high=[1.0] * count)
        attacked.open_session(site).send(CENTRE, "bounds", lambda bounds=bounds: bounds)
    check_refused(attacked.run(CENTRE), "do not fit the 4 columns")
    ends = list(attacked.folder.glob("*-centre-*.msg"))
    assert len(ends) == len(SIZES)  # all sites learn that it ended


def test_malicious_centre_message_of_another_round_refused(attacked: Attacked):
    """The centre sends a pool to a site that waits for the selection."""
    centre = attacked.open_session(CENTRE)
    centre.position["east"] = 1  # as if the bounds had come
    path = centre._path("east", 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}")
    centre.send("east", "selection", lambda: Selection(kept=[0]))
    result = attacked.run("east")
    check_refused(result, "follows other messages than those that were exchanged")


def test_malicious_centre_late_message_refused(attacked: Attacked):
    """A message of an earlier session is put into the folder of this one."""
    centre = attacked.open_session(CENTRE)
    centre.send("east", "selection", lambda: Selection(kept=[0]))
    first = attacked.folder / "000-centre-east.msg"
    forge(attacked, first.name, session="0000")
    first.rename(attacked.folder / "001-centre-east.msg")
    check_refused(attacked.run("east"), "is of release 0000, not of 0001")


HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "another dataset": ({"dataset": "wing"}, "is of dataset 'wing', not of 'ward'"),
    "another version": ({"version": 2}, "has version 2"),
    "for another party": ({"receiver": "north"}, "is for 'north', not for 'centre'"),
    "another roll": ({"roll": "0" * 64}, "is bound to another roll of sites"),
    "another kind": ({"kind": "rows"}, "'east' did not sign it"),
    "another number": ({"number": 1}, "is number 1, and number 0 comes next"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_message_with_another_header_refused(attacked: Attacked, case: str):
    changes, words = HEADERS[case]
    attacked.open_session("east").send(
        CENTRE, "bounds", lambda: Bounds(low=[0.0] * 4, high=[1.0] * 4)
    )
    forge(attacked, "000-east-centre.msg", **changes)
    check_refused(attacked.run(CENTRE), words)


def test_message_changed_refused(attacked: Attacked):
    attacked.open_session("east").send(
        CENTRE, "bounds", lambda: Bounds(low=[0.0] * 4, high=[1.0] * 4)
    )
    path = attacked.folder / "000-east-centre.msg"
    header, body, signature = parse_message(path.name, path.read_bytes())
    path.write_bytes(encode_message(header, body[::-1], signature))
    check_refused(attacked.run(CENTRE), "was changed, or 'east' did not sign it")


def test_file_of_nobody_ends_no_release(attacked: Attacked):
    """Somebody who can write into the shared folder puts a file in the place of a message."""
    sent = Bounds(low=[0.0] * 4, high=[1.0] * 4)
    for site in SIZES:
        attacked.open_session(site).send(CENTRE, "bounds", lambda: sent)
    path = attacked.folder / "000-north-centre.msg"
    raw = path.read_bytes()
    path.write_bytes(b"{}")
    check_refused(attacked.run(CENTRE), "does not have the form of a message")
    assert attacked.list_messages(CENTRE) == []
    path.unlink()
    attacked.open_session("north").send(CENTRE, "bounds", lambda: pytest.fail("made twice"))
    assert path.read_bytes() == raw
    assert attacked.run(CENTRE).exit_code == 5
    assert len(attacked.list_messages(CENTRE)) == len(SIZES)  # all have their selection


def test_message_replayed_refused(attacked: Attacked):
    """The bounds of the east come a second time, in the place of its next message."""
    sent = Bounds(low=[0.0] * 4, high=[1.0] * 4)
    for site in SIZES:
        attacked.open_session(site).send(CENTRE, "bounds", lambda: sent)
    assert attacked.run(CENTRE).exit_code == 5  # it waits for the rows
    again = attacked.folder / "002-east-centre.msg"
    again.write_bytes((attacked.folder / "000-east-centre.msg").read_bytes())
    check_refused(attacked.run(CENTRE), "is number 0, and number 2 comes next")


def test_site_without_a_class_of_the_roll_refused(attacked: Attacked):
    party = attacked.parties.parties["north"]
    rows, party.rows = party.rows, [row for row in party.rows if row["mood"] == "calm"]
    party.write()
    try:
        check_refused(attacked.run("north"), "is the label and has fewer than 2 classes")
    finally:
        party.rows = rows
    assert attacked.list_messages("north") == []


def test_site_with_fewer_rows_than_the_method_needs_refused(
    tmp_path: Path, release_in: Maker
) -> None:
    sizes = {"east": 40, "north": 6, "south": 40}  # one in five is set aside, at random
    parties = PartyProcesses(tmp_path / "x", release_in, "pca_laplace", sizes)
    parties.join()
    for name in (CENTRE, *sizes, CENTRE):
        assert parties.start(name, wait=0.0).wait(300).exit_code == 5
    result = parties.start("north", wait=0.0).wait(300)
    check_refused(result, "needs more than 4 set-aside records of every site")
    assert not list(parties.shared.rglob("*-north-*.msg"))


@pytest.fixture(scope="module")
def begun_with_moments(
    tmp_path_factory: pytest.TempPathFactory, release_in: Maker
) -> PartyProcesses:
    """Hellos and roll of a release with a common basis; to be copied."""
    sizes = dict.fromkeys(SIZES, 80)
    parties = PartyProcesses(tmp_path_factory.mktemp("p") / "x", release_in, "pca_laplace", sizes)
    parties.join()
    for name in (CENTRE, *sizes, CENTRE):
        assert parties.start(name, wait=0.0).wait(300).exit_code == 5
    return parties


@pytest.fixture
def with_moments(begun_with_moments: PartyProcesses, tmp_path: Path) -> Iterator[Attacked]:
    shutil.copytree(begun_with_moments.folder, tmp_path / "kept", symlinks=True)
    yield Attacked(begun_with_moments)
    shutil.rmtree(begun_with_moments.folder)
    shutil.copytree(tmp_path / "kept", begun_with_moments.folder, symlinks=True)


def test_malicious_site_huge_moments_end_the_release_without_a_name(with_moments: Attacked):
    exchange = Exchange(with_moments.open_entry("north"), with_moments.roll.terms, 0.0)
    exchange.begin()
    huge = [16, *[2**90] * 4, *[2**100] * 10]
    exchange.session.send(CENTRE, "moments", lambda: mask(exchange, "moments", huge))
    for site in ("east", "south"):
        assert with_moments.run(site).exit_code == 5  # it waits for the basis
    result = with_moments.run(CENTRE)
    check_refused(result, "cannot be that of records within their bounds")
    said = json.dumps(json.loads(result.stdout)["error"])
    assert not any(site in said for site in SIZES)
    for site in SIZES:
        assert (with_moments.folder / f"001-centre-{site}.msg").exists()
        path = with_moments.open_entry(site).folder / "messages" / CENTRE / "001.msg"
        if site != "north":
            result = with_moments.run(site)
            assert result.exit_code == 3 and path.exists()
            assert "The centre ended the common release" in result.stdout


BAD_BASES: dict[str, tuple[dict[str, Any], str]] = {
    "ragged": ({"loadings": [[1.0], [0.0, 1.0], [0.0], [0.0]]}, "does not hold what a 'basis'"),
    "far mean": ({"mean": [1e30] * 4}, "a mean outside the bounds"),
}


@pytest.mark.parametrize("case", BAD_BASES)
def test_malicious_centre_bad_basis_refused(with_moments: Attacked, case: str):
    changes, words = BAD_BASES[case]
    assert with_moments.run("east").exit_code == 5
    centre = with_moments.open_session(CENTRE)
    assert centre.receive("east", "moments") is not None
    fields = {"loadings": [[1.0], [0.0], [0.0], [0.0]], "mean": [0.0] * 4, **changes}
    centre.send("east", "basis", lambda: Basis.model_construct(**fields))
    check_refused(with_moments.run("east"), words)
    assert with_moments.list_messages("east") == ["000-east-centre.msg"]  # no scores


def test_malicious_centre_another_basis_for_one_site_learns_no_sum(with_moments: Attacked):
    """One site gets a single loading, and all others loadings that leave no rest of a record."""
    for site in SIZES:
        assert with_moments.run(site).exit_code == 5
    centre = with_moments.open_session(CENTRE)
    complete = np.eye(4).tolist()
    narrow = [row[:1] for row in complete]
    for site in SIZES:
        assert centre.receive(site, "moments") is not None
        basis = Basis(loadings=narrow if site == "east" else complete, mean=[0.0] * 4)
        centre.send(site, "basis", lambda basis=basis: basis)
    answers = []
    for site in SIZES:
        assert with_moments.run(site).exit_code == 5  # it waits for the fit
        message = centre.receive(site, "scores")
        assert message is not None and isinstance(message.payload, MaskedSums)
        answers.append(unpack_values(decode_bytes(message.payload.values))[:2])
    total, squares = sum_masked(answers)
    assert abs(total) > 2**60 and abs(squares) > 2**80  # no sum of so few records


def test_malicious_site_key_that_shares_no_secret_refused(attacked: Attacked):
    """With it, everybody could compute the masks of a pair of sites."""
    (attacked.folder / ROLL_NAME).unlink()
    (attacked.open_entry(CENTRE).folder / ROLL_NAME).unlink(missing_ok=True)
    hello = sign_hello("ward", "0001", "south", "00" * 32, attacked.sign_key("south"))
    (attacked.folder / name_hello("south")).write_bytes(encode_hello(hello))
    check_refused(attacked.run(CENTRE), "an X25519 key of 'south' that shares no secret")


def test_fingerprint_that_is_not_pinned_refused(attacked: Attacked):
    """Another party puts a hello with its own key in the place of the south's."""
    (attacked.folder / ROLL_NAME).unlink()
    centre = attacked.open_entry(CENTRE)
    (centre.folder / ROLL_NAME).unlink(missing_ok=True)
    own = X25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    hello = sign_hello("ward", "0001", "south", own, attacked.sign_key("north"))
    (attacked.folder / name_hello("south")).write_bytes(encode_hello(hello))
    check_refused(attacked.run(CENTRE), "is pinned")


@pytest.mark.parametrize("point", ["message accepted", "end recorded"])
def test_site_killed_at_the_end_says_so_and_forgets_the_key(attacked: Attacked, point: str):
    assert attacked.run("east").exit_code == 5  # it waits for the selection
    centre = attacked.open_session(CENTRE)
    assert centre.receive("east", "bounds") is not None
    centre.send("east", "end", lambda: End(outcome="refused"))
    folder = attacked.open_entry("east").folder
    entry = "tests.support.entries:killed"
    assert attacked.parties.start("east", point, 0.0, entry).wait(300).exit_code == KILLED
    assert (folder / "exchange.key").exists()
    assert (folder / "ended.json").exists() == (point == "end recorded")
    if point == "message accepted":
        result = attacked.run("east")
        assert result.exit_code == 3, result
        error = json.loads(result.stdout)["error"]
        assert "The centre ended the common release" in error["message"]
        assert (folder / "ended.json").exists()
    attacked.open_entry(CENTRE).announce_next()
    assert attacked.run("east").exit_code == 5  # it waits for the next release
    assert not (folder / "exchange.key").exists()

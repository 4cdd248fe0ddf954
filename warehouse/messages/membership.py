"""What a party stores of a common release: its name, the shared folder, the pinned fingerprints."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import canonical_json
from warehouse.checkpoints import checkpoint
from warehouse.home import DATASET_NAME, Home, translate_disk_errors
from warehouse.integrity.key_files import read_key, write_atomically, write_key
from warehouse.messages.envelope import refuse
from warehouse.messages.roll import (
    CENTRE,
    NUMBER_NAME,
    ROLL_NAME,
    Hello,
    Roll,
    check_hello,
    check_number,
    check_roll,
    encode_hello,
    encode_number,
    encode_roll,
    name_hello,
    parse_hello,
    parse_number,
    parse_roll,
    sign_hello,
    sign_number,
    sign_roll,
)
from warehouse.messages.session import Session
from warehouse.messages.shared_folder import SharedFolder

RELEASE_FILE = "release.txt"  # in the folder of a session: the release of this site

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

FINGERPRINT = "[0-9a-f]{32}"
ENDED = "ended.json"
KEY = "exchange.key"


@dataclass(frozen=True)
class Membership:
    """How a party takes part in the releases of a dataset."""

    name: str  # CENTRE, or that of the site
    dataset: str
    shared: str  # path of the shared folder
    pins: Mapping[str, str]  # fingerprints of all parties, also its own
    test_file: str = ""  # a site's test rows; "": it has none
    intersects: bool = False  # parties with other columns find their common persons privately

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.pins) - {CENTRE}))


def check_pins(pins: list[tuple[str, str]]) -> dict[str, str]:
    """Return fingerprints by name; raise BadInput for a bad name or a site that is given twice."""
    found: dict[str, str] = {}
    for name, fingerprint in pins:
        role = CENTRE if name == CENTRE else "site"
        if name == CENTRE and CENTRE in found:
            raise BadInput(
                f"No site can have the name '{CENTRE}'.", remedy="Give the site another name."
            )
        if not re.fullmatch(DATASET_NAME, name):
            raise BadInput(
                f"'{name}' cannot be the name of a site.",
                remedy="Use lower-case letters, digits and '_', beginning with a letter.",
            )
        if not re.fullmatch(FINGERPRINT, fingerprint):
            raise BadInput(
                f"The fingerprint of '{name}' does not have 32 hexadecimal digits.",
                remedy=f"Ask for what `ppdm {role} status FILE` prints at that party.",
            )
        if name in found:
            raise BadInput(f"The site '{name}' is given twice.", remedy="Name each site once.")
        if fingerprint in found.values():
            raise BadInput(
                f"The fingerprint of '{name}' is that of another party.",
                remedy="Every party has its own home and its own key.",
            )
        found[name] = fingerprint
    return found


def tell_how_to_give_up(member: Membership, session: str) -> str:
    """Return what people do by hand to end a release that cannot be completed."""
    return (
        f"remove the folder {session} below private/exchanges/{member.dataset} of every home and "
        f"below {member.dataset} of the shared folder"
    )


def store_membership(home: Home, membership: Membership) -> None:
    """Store how this home takes part; refuse to change it after the roll was signed or accepted."""
    folder = exchange_folder(home, membership.dataset)
    known = find_membership(home, membership.dataset)
    if known == membership:
        return
    session = find_session(home, membership.dataset)
    if known is not None and (folder / session / ROLL_NAME).exists():
        raise BadInput(
            f"A common release of '{membership.dataset}' is under way with other settings.",
            remedy=f"Complete it first. To give it up, {tell_how_to_give_up(membership, session)}.",
        )
    with translate_disk_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(folder / "membership.json", canonical_json(asdict(membership)))


def find_membership(home: Home, dataset: str) -> Membership | None:
    """Return how this home takes part in common releases of a dataset, or None."""
    path = exchange_folder(home, dataset) / "membership.json"
    return Membership(**json.loads(path.read_text())) if path.exists() else None


def read_membership(home: Home, dataset: str, remedy: str) -> Membership:
    """Return how this home takes part; raise BadInput if it does not."""
    found = find_membership(home, dataset)
    if found is None:
        raise BadInput(
            f"This home takes no part in a common release of '{dataset}'.", remedy=remedy
        )
    return found


def exchange_folder(home: Home, dataset: str) -> Path:
    """Return the private folder of the common releases of a dataset."""
    return home.private / "exchanges" / dataset


def belongs_to_common_release(home: Home, dataset: str, release_id: str) -> bool:
    """Return whether a release of this home is its part of a common release."""
    files = exchange_folder(home, dataset).glob(f"*/{RELEASE_FILE}")
    return any(path.read_text() == release_id for path in files)


def find_session(home: Home, dataset: str) -> str:
    """Return the number of the session that is under way, or of the next one."""
    folder = exchange_folder(home, dataset)
    begun = sorted(path.name for path in folder.glob("[0-9]" * 4))
    if not begun:
        return format_session(1)
    is_ended = (folder / begun[-1] / ENDED).exists()
    return format_session(int(begun[-1]) + is_ended)


def format_session(number: int) -> str:
    """Return the number of a session as text."""
    return f"{number:04d}"


def forget_keys(home: Home, dataset: str) -> None:
    """Remove what a process that was killed at the end of a session left of its secrets."""
    for path in exchange_folder(home, dataset).glob(f"*/{ENDED}"):
        clear_secrets(path.parent)


def clear_secrets(folder: Path) -> None:
    """Remove the key of a session, and its working files."""
    (folder / KEY).unlink(missing_ok=True)
    shutil.rmtree(folder / "work", ignore_errors=True)


def find_ended(home: Home, dataset: str, session: str) -> dict[str, Any] | None:
    """Return how a session ended, or None if it has not."""
    path = exchange_folder(home, dataset) / session / ENDED
    return json.loads(path.read_text()) if path.exists() else None


class Entry:
    """The beginning of a session: the hellos and the roll, until messages can be exchanged.

    The centre counts the sessions, and tells the sites the number of the next one: a site that
    joins later, or that gave up a session alone, has not counted all of them.
    """

    def __init__(self, home: Home, membership: Membership, signing: Ed25519PrivateKey) -> None:
        self.membership, self.signing = membership, signing
        self.private = exchange_folder(home, membership.dataset)
        self.root = Path(membership.shared)
        self.session = find_session(home, membership.dataset)
        self.has_number = membership.name == CENTRE or (self.folder / ROLL_NAME).exists()
        forget_keys(home, membership.dataset)

    @property
    def folder(self) -> Path:
        return self.private / self.session

    @property
    def shared(self) -> SharedFolder:
        return SharedFolder(self.root, self.membership.dataset, self.session)

    def announce(self, session: str) -> None:
        """Tell the sites the number of the session that is under way, or of the next one."""
        number = sign_number(self.membership.dataset, session, self.signing)
        folder = SharedFolder(self.root, self.membership.dataset, "")
        folder.put(NUMBER_NAME, encode_number(number), replaces=True)

    def find_number(self) -> bool:
        """Take the number of the session from the centre; return whether it is there."""
        if self.has_number:
            return True
        member = self.membership
        raw = SharedFolder(self.root, member.dataset, "").find(NUMBER_NAME)
        if raw is None:
            return False
        number = parse_number(raw)
        check_number(number, member.dataset, member.pins[CENTRE])
        if number.session < self.session:
            raise refuse(
                NUMBER_NAME,
                f"says that the centre begins release {number.session}, and this site has ended it",
                "Ask the centre why. To begin that number again, every party removes its folder "
                f"below private/exchanges/{member.dataset}, and one below {member.dataset} of the "
                "shared folder.",
            )
        self.session, self.has_number = number.session, True
        return True

    def say_hello(self) -> Hello:
        """Put the hello of this party into the shared folder; it is made once."""
        path = self.folder / name_hello(self.membership.name)
        if self.membership.name == CENTRE and not (self.folder / ROLL_NAME).exists():
            self.announce(self.session)
        if not path.exists():
            with translate_disk_errors(path):
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                exchange = self._read_exchange_key().public_key().public_bytes_raw().hex()
                member = self.membership
                hello = sign_hello(
                    member.dataset, self.session, member.name, exchange, self.signing
                )
                write_atomically(path, encode_hello(hello).decode())
        if (self.folder / ROLL_NAME).exists():
            self.shared.check_begun()
        raw = path.read_bytes()
        self.shared.put(path.name, raw)
        return parse_hello(path.name, raw)

    def find_hello(self, party: str) -> Hello | None:
        """Return the checked hello of another party, or None if it is not there yet."""
        name = name_hello(party)
        raw = self.shared.find(name)
        if raw is None:
            return None
        hello, member = parse_hello(name, raw), self.membership
        check_hello(name, hello, party, member.pins[party], member.dataset, self.session)
        return hello

    def issue_roll(self, terms: Mapping[str, Any]) -> Session | None:
        """Sign the roll when all sites have said hello, and begin; None if one is missing."""
        path = self.folder / ROLL_NAME
        me = self.say_hello()
        if not path.exists():
            found = [self.find_hello(site) for site in self.membership.sites]
            sites = tuple(hello for hello in found if hello is not None)
            if len(sites) < len(found):
                return None
            roll = sign_roll(terms, (me, *sites), self.signing)
            with translate_disk_errors(path):
                write_atomically(path, encode_roll(roll).decode())
        self.shared.put(ROLL_NAME, path.read_bytes())
        return self._begin(parse_roll(path.read_bytes()))

    def accept_roll(self, terms: Mapping[str, Any]) -> Session | None:
        """Check the roll of the centre and begin; None if it is not there yet."""
        if not self.find_number():
            return None
        path = self.folder / ROLL_NAME
        if self.find_hello(CENTRE) is None and not path.exists():
            return None
        me = self.say_hello()
        raw = path.read_bytes() if path.exists() else self.shared.find(ROLL_NAME)
        if raw is None:
            return None
        roll = parse_roll(raw)
        check_roll(roll, self.membership.pins, me, terms)
        if not path.exists():
            with translate_disk_errors(path):
                write_atomically(path, raw.decode())
        return self._begin(roll)

    def announce_next(self) -> None:
        """Tell the sites that the next session is another one, before this one ends for them."""
        self.announce(format_session(int(self.session) + 1))

    def end(self, outcome: Mapping[str, Any]) -> None:
        """Record the end, and forget the key that decrypts the messages of this session."""
        with translate_disk_errors(self.folder):
            write_atomically(self.folder / ENDED, canonical_json(dict(outcome)))
            checkpoint("end recorded")
            clear_secrets(self.folder)

    def _begin(self, roll: Roll) -> Session:
        name = self.membership.name
        return Session(
            self.folder, self.shared, roll, name, self.signing, self._read_exchange_key()
        )

    def _read_exchange_key(self) -> X25519PrivateKey:
        """Return the X25519 key of this party for this session; it is made once."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        path = self.folder / KEY
        if not path.exists():
            write_key(path, X25519PrivateKey.generate().private_bytes_raw())
        return X25519PrivateKey.from_private_bytes(read_key(path, "this exchange"))

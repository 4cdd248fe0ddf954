"""Who takes part in a common release, with which keys, and what is agreed beforehand.

Every party writes a hello: its name with a new X25519 key, signed with the key of its home. The
centre collects them in the roll, unchanged, and signs it. A site accepts the roll only if it holds
exactly the parties whose fingerprints it pinned: the centre can neither swap a key nor leave out a
site.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ppdm_core.model.manifest import canonical_json
from ppdm_core.model.statement import Signature, is_signed, sign_statement
from warehouse.messages.envelope import VERSION, refuse

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

CENTRE = "centre"  # the name of the centre; no site may have it
HELLO = b"ppdm hello 1\n"
ROLL = b"ppdm roll 1\n"
NUMBER = b"ppdm session 1\n"
ROLL_NAME = "roll.json"
NUMBER_NAME = "session.json"
PARTITION, COLUMNS = "partition", "columns"  # a term: each party has other columns
COMPARE = "Compare the fingerprints with all parties by telephone, and join again."


@dataclass(frozen=True)
class Hello:
    """A party of one release with its keys, as hexadecimal digits."""

    version: int
    dataset: str
    session: str
    name: str
    exchange: str  # its X25519 key for this release
    public: str  # its Ed25519 key
    ed25519: str  # signature of all other fields

    @property
    def signature(self) -> Signature:
        return Signature(self.public, self.ed25519)

    @property
    def fingerprint(self) -> str:
        return self.signature.key

    def verifier(self) -> Ed25519PublicKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public))

    def encryption_key(self) -> X25519PublicKey:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        return X25519PublicKey.from_public_bytes(bytes.fromhex(self.exchange))


@dataclass(frozen=True)
class SessionNumber:
    """The number of the next release of a dataset, or of the one under way, by the centre."""

    version: int
    dataset: str
    session: str
    public: str  # the centre's Ed25519 key
    ed25519: str  # signature of all other fields


@dataclass(frozen=True)
class Roll:
    """The parties of one release and its terms, signed by the centre."""

    version: int
    dataset: str
    session: str
    terms: Mapping[str, Any]  # columns with their bounds, method and parameters
    parties: tuple[Hello, ...]  # the centre first, then the sites by name
    ed25519: str  # the centre's signature of all other fields

    @cached_property
    def digest(self) -> str:
        """The digest that every message is bound to."""
        return hashlib.sha256(encode_roll(self)).hexdigest()

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(party.name for party in self.parties[1:])

    def find(self, name: str) -> Hello:
        """Return the party with this name."""
        return next(party for party in self.parties if party.name == name)


def name_hello(party: str) -> str:
    """Return the name of the file of a hello."""
    return f"{party}.hello.json"


def sign_hello(
    dataset: str, session: str, name: str, exchange: str, key: Ed25519PrivateKey
) -> Hello:
    """Return the signed hello of a party."""
    body = {"version": VERSION, "dataset": dataset, "session": session}
    body |= {"name": name, "exchange": exchange}
    signature = sign_statement(HELLO, body, key)
    return Hello(**body, public=signature.public, ed25519=signature.ed25519)  # type: ignore[arg-type]


def sign_number(dataset: str, session: str, key: Ed25519PrivateKey) -> SessionNumber:
    """Return the signed number of a release."""
    body: dict[str, Any] = {"version": VERSION, "dataset": dataset, "session": session}
    signature = sign_statement(NUMBER, body, key)
    return SessionNumber(**body, public=signature.public, ed25519=signature.ed25519)


def sign_roll(terms: Mapping[str, Any], parties: tuple[Hello, ...], key: Ed25519PrivateKey) -> Roll:
    """Return the roll of these parties, signed by the first of them."""
    first = parties[0]
    roll = Roll(VERSION, first.dataset, first.session, dict(terms), parties, "")
    return Roll(**{**vars_of(roll), "ed25519": sign_statement(ROLL, body_of(roll), key).ed25519})


def vars_of(roll: Roll) -> dict[str, Any]:
    """Return the fields of a roll."""
    names = ("version", "dataset", "session", "terms", "parties", "ed25519")
    return {name: getattr(roll, name) for name in names}


def body_of(roll: Roll) -> dict[str, Any]:
    """Return what the centre signs."""
    body = {**vars_of(roll), "parties": [asdict(party) for party in roll.parties]}
    return {name: value for name, value in body.items() if name != "ed25519"}


def encode_hello(hello: Hello) -> bytes:
    """Return the only bytes of a hello."""
    return f"{canonical_json(asdict(hello))}\n".encode()


def encode_number(number: SessionNumber) -> bytes:
    """Return the only bytes of the number of a release."""
    return f"{canonical_json(asdict(number))}\n".encode()


def encode_roll(roll: Roll) -> bytes:
    """Return the only bytes of a roll."""
    return f"{canonical_json({**body_of(roll), 'ed25519': roll.ed25519})}\n".encode()


def parse_hello(name: str, raw: bytes) -> Hello:
    """Return the hello in a file; refuse one that is not in canonical form."""
    try:
        hello = Hello(**json.loads(raw))
        is_sound = encode_hello(hello) == raw and has_form(hello)
    except (ValueError, TypeError, RecursionError):
        is_sound = False
    if not is_sound:
        raise refuse(name, "was changed: it does not have the form of a hello")
    return hello


def parse_number(raw: bytes) -> SessionNumber:
    """Return the number of a release in a file; refuse one that is not in canonical form."""
    try:
        number = SessionNumber(**json.loads(raw))
        is_sound = encode_number(number) == raw
        texts = (number.dataset, number.session, number.public, number.ed25519)
        is_sound = is_sound and all(isinstance(text, str) for text in texts)
        is_sound = is_sound and re.fullmatch("[0-9]{4}", number.session) is not None
    except (ValueError, TypeError, RecursionError):
        is_sound = False
    if not is_sound:
        raise refuse(NUMBER_NAME, "was changed: it does not have the form of a number")
    return number


def check_number(number: SessionNumber, dataset: str, pinned: str) -> None:
    """Raise BadInput unless the number of a release is that of the pinned centre."""
    check_version(NUMBER_NAME, number.version)
    if number.dataset != dataset:
        raise refuse(NUMBER_NAME, f"is of {number.dataset}, not of {dataset}")
    signature = Signature(number.public, number.ed25519)
    if signature.key != pinned:
        raise refuse(
            NUMBER_NAME,
            f"has the key {signature.key} of '{CENTRE}', and {pinned} is pinned",
            COMPARE,
        )
    body = asdict(number)
    del body["public"], body["ed25519"]
    if not is_signed(NUMBER, body, signature):
        raise refuse(NUMBER_NAME, f"was changed, or '{CENTRE}' did not sign it")


def has_form(hello: Hello) -> bool:
    """Return whether the fields of a hello have their types, and its keys their lengths."""
    texts = [value for name, value in asdict(hello).items() if name != "version"]
    is_sound = isinstance(hello.version, int) and all(isinstance(text, str) for text in texts)
    return is_sound and all(
        re.fullmatch("[0-9a-f]{64}", key) is not None for key in (hello.exchange, hello.public)
    )


def parse_roll(raw: bytes) -> Roll:
    """Return the roll in a file; refuse one that is not in canonical form."""
    try:
        found: dict[str, Any] = json.loads(raw)
        parties = tuple(Hello(**party) for party in found.pop("parties"))
        roll = Roll(**found, parties=parties)
        is_sound = encode_roll(roll) == raw and len(parties) > 0 and all(map(has_form, parties))
        columns = roll.terms["columns"]
        is_sound = is_sound and all(isinstance(column["name"], str) for column in columns)
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        is_sound = False
    if not is_sound:
        raise refuse(ROLL_NAME, "was changed: it does not have the form of a roll")
    return roll


def check_hello(
    file: str, hello: Hello, name: str, pinned: str, dataset: str, session: str
) -> None:
    """Raise BadInput unless a hello is of this party, with the pinned key, for this release."""
    check_version(file, hello.version)
    if (hello.dataset, hello.session) != (dataset, session):
        raise refuse(file, f"is of {hello.dataset} {hello.session}, not of {dataset} {session}")
    if hello.name != name:
        raise refuse(file, f"is of '{hello.name}', not of '{name}'")
    if hello.fingerprint != pinned:
        raise refuse(
            file, f"has the key {hello.fingerprint} of '{name}', and {pinned} is pinned", COMPARE
        )
    body = asdict(hello)
    del body["public"], body["ed25519"]
    if not is_signed(HELLO, body, hello.signature):
        raise refuse(file, f"was changed, or '{name}' did not sign it")
    if not can_exchange(hello):
        raise refuse(file, f"has an X25519 key of '{name}' that shares no secret")


def can_exchange(hello: Hello) -> bool:
    """Return whether the X25519 key of a party is none of the few that give no secret."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    try:
        X25519PrivateKey.generate().exchange(hello.encryption_key())
    except ValueError:
        return False
    return True


def check_roll(roll: Roll, pins: Mapping[str, str], me: Hello, terms: Mapping[str, Any]) -> None:
    """Raise BadInput unless a site may take part by this roll.

    ``pins`` are the fingerprints of the centre and of all sites, ``me`` the hello of this site.
    """
    check_version(ROLL_NAME, roll.version)
    names = [party.name for party in roll.parties]
    if len(set(names)) < len(names):
        raise refuse(ROLL_NAME, "names a site twice", COMPARE)
    if len({party.public for party in roll.parties}) < len(names):
        raise refuse(ROLL_NAME, "has two parties with the same key", COMPARE)
    missing, unknown = sorted(set(pins) - set(names)), sorted(set(names) - set(pins))
    if missing:
        raise refuse(ROLL_NAME, f"leaves out '{missing[0]}', which is pinned", COMPARE)
    if unknown:
        raise refuse(ROLL_NAME, f"has '{unknown[0]}', which is not pinned", COMPARE)
    if names != [CENTRE, *sorted(set(names) - {CENTRE})]:
        raise refuse(ROLL_NAME, "does not list the centre first and then the sites by name")
    for party in roll.parties:
        check_hello(ROLL_NAME, party, party.name, pins[party.name], me.dataset, me.session)
    if roll.find(me.name) != me:
        raise refuse(ROLL_NAME, "does not hold the hello of this site")
    if (roll.dataset, roll.session) != (me.dataset, me.session):
        raise refuse(ROLL_NAME, f"is of {roll.dataset} {roll.session}")
    signature = Signature(roll.parties[0].public, roll.ed25519)
    if not is_signed(ROLL, body_of(roll), signature):
        raise refuse(ROLL_NAME, "was changed, or the centre did not sign it")
    check_terms(roll.terms, terms)


def check_terms(found: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise BadInput unless columns, bounds and method of the roll are those of the site."""
    remedy = "Agree on one release file; only [source], limits and attacker may differ."
    for part in sorted({*found, *own} - {"columns"}):
        if found.get(part) != own.get(part):
            what = name_difference(part, found.get(part), own.get(part))
            raise refuse(ROLL_NAME, f"has another {what} than the release file", remedy)
    others = {column["name"]: column for column in found["columns"]}
    columns = {column["name"]: column for column in own["columns"]}
    if own.get(PARTITION) == COLUMNS:  # those of other parties are not known here
        others = {name: column for name, column in others.items() if name in columns}
        columns = dict(sorted(columns.items(), key=lambda item: [*others, item[0]].index(item[0])))
    if list(others) != list(columns):
        missing = sorted(set(columns) ^ set(others))
        which = f": '{missing[0]}'" if missing else ""
        raise refuse(ROLL_NAME, f"has other columns than the release file{which}", remedy)
    for name, column in columns.items():
        for part in sorted({*column, *others[name]}):
            if column.get(part) != others[name].get(part):
                what = f"has another '{part}' of column '{name}' than the release file"
                raise refuse(ROLL_NAME, what, remedy)


def name_difference(part: str, theirs: Any, own: Any) -> str:
    """Return what of the terms differs: a part, or a parameter of the method."""
    if part == PARTITION:
        return "use of 'others' in [sanitizer]"
    if not isinstance(theirs, Mapping) or not isinstance(own, Mapping):
        return part
    names = (name for name in sorted({*theirs, *own}) if theirs.get(name) != own.get(name))
    return f"'{next(names, part)}' in [sanitizer]"


def check_version(file: str, version: int) -> None:
    """Raise BadInput if a file is of another version."""
    if version != VERSION:
        raise refuse(
            file,
            f"has version {version}; this program reads version {VERSION}",
            "Install the same version of ppdm at the centre and at all sites.",
        )

"""A centre and some sites with homes of their own, which exchange messages in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ppdm_core.model.manifest import key_fingerprint
from warehouse.home import Home
from warehouse.messages.membership import Entry, Membership, store_membership
from warehouse.messages.roll import CENTRE
from warehouse.messages.session import Session

TERMS: dict[str, Any] = {
    "method": "kde_resample",
    "parameters": {"bandwidth": "corrected"},
    "columns": [
        {"name": "x", "role": "feature", "type": "numeric", "low": 0.0, "high": 1.0},
        {"name": "y", "role": "feature", "type": "numeric", "low": 0.0, "high": 2.0},
    ],
}
SITES = ("east", "north", "south")


@dataclass
class Parties:
    """The parties of one common release; ``folder`` holds their homes and the shared folder."""

    folder: Path
    sites: Sequence[str] = SITES
    dataset: str = "ward"
    keys: dict[str, Ed25519PrivateKey] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shared = self.folder / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)
        for name in (CENTRE, *self.sites):
            self.keys.setdefault(name, Ed25519PrivateKey.generate())
            Home(self.folder / name).create()
        for name in (CENTRE, *self.sites):
            self.join(name)

    @property
    def pins(self) -> dict[str, str]:
        return {name: key_fingerprint(key.public_key()) for name, key in self.keys.items()}

    def home(self, name: str) -> Home:
        return Home(self.folder / name)

    def join(self, name: str, pins: Mapping[str, str] | None = None) -> None:
        membership = Membership(name, self.dataset, str(self.shared), pins or self.pins)
        store_membership(self.home(name), membership)

    def enter(self, name: str) -> Entry:
        """Return the entry of a party, as a new process makes it."""
        from warehouse.messages.membership import read_membership

        home = self.home(name)
        return Entry(home, read_membership(home, self.dataset, ""), self.keys[name])

    def begin(self, terms: Mapping[str, Any] = TERMS) -> dict[str, Session]:
        """Exchange hellos and the roll; return the session of each party."""
        self.enter(CENTRE).say_hello()
        for name in self.sites:
            assert self.enter(name).accept_roll(terms) is None
        return {name: self.resume(name, terms) for name in (CENTRE, *self.sites)}

    def resume(self, name: str, terms: Mapping[str, Any] = TERMS) -> Session:
        """Return the session of a party whose roll is there, as a new process makes it."""
        entry = self.enter(name)
        found = entry.issue_roll(terms) if name == CENTRE else entry.accept_roll(terms)
        assert found is not None
        return found

    def find_file(self, name: str) -> Path:
        return self.shared / self.dataset / "0001" / name

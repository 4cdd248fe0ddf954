"""The session of this party, and waiting for the messages of the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ppdm_core.model.errors import BadInput, MachineTrouble, Refused
from ppdm_core.sanitizers._basis import BasisDraft
from tasks.context import ReleaseContext
from tasks.progress import log_progress
from tasks.sites.terms import check_common_release, describe_terms
from warehouse.integrity.home_key import home_key
from warehouse.messages.envelope import Message
from warehouse.messages.membership import Entry, Membership, read_membership
from warehouse.messages.payloads import End, Payload
from warehouse.messages.roll import CENTRE
from warehouse.messages.session import Session

T = TypeVar("T")
P = TypeVar("P", bound=Payload)
FIRST_DELAY, MAX_DELAY = 0.05, 1.0  # seconds between two looks into the shared folder
ASK_SENDER = "Nothing was published. Ask that party what it sent, and begin a new release."
JOIN = "Join it first: ppdm site join FILE --help"
INIT = "Prepare it first: ppdm centre init FILE --help"


class StillWaiting(MachineTrouble):
    """Another party has not sent its message yet."""


class EndedByCentre(Refused):
    """The centre ended the release without a publication."""


class Exchange:
    """The session of this party in one common release."""

    def __init__(self, entry: Entry, terms: Mapping[str, Any], limit: float) -> None:
        self.entry, self.member, self.terms, self.limit = entry, entry.membership, terms, limit
        self._session: Session | None = None
        self.end: End | None = None  # how the release ended, once that is known
        # At the centre, between two rounds: the common basis, and of how many records it is.
        self.draft: tuple[BasisDraft, int] | None = None
        # At the centre of parties with other columns: kept coefficients, columns of each party.
        self.kept: list[int] = []
        self.columns: dict[str, list[str]] = {}

    def __repr__(self) -> str:
        return f"Exchange({self.member.name})"

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    def begin(self) -> None:
        """Exchange hellos and the roll; wait for the other parties."""
        terms, entry = self.terms, self.entry
        if self.member.name == CENTRE:
            entry.say_hello()
            self._session = self.wait(lambda: entry.issue_roll(terms), "the hellos of all sites")
        else:
            self._session = self.wait(lambda: entry.accept_roll(terms), "the roll of the centre")

    def receive(self, sender: str, kind: str, payload: type[P]) -> P:
        """Wait for the next message of a party; raise EndedByCentre if the centre ends it."""
        found = self.receive_any(sender, kind)
        assert isinstance(found.payload, payload)
        return found.payload

    def receive_any(self, sender: str, kind: str) -> Message:
        """Wait for a message of a kind; the centre may end the release instead."""
        kinds = (kind, "end") if sender == CENTRE and kind != "end" else (kind,)
        found = self.wait(
            lambda: self.session.receive(sender, *kinds), f"the '{kind}' of '{sender}'"
        )
        if found.kind == "end" and kind != "end":
            assert isinstance(found.payload, End)
            self.end = found.payload
            raise EndedByCentre(
                "The centre ended the common release: it was not published.",
                remedy="Ask the centre; a later run of the same command begins a new one.",
            )
        return found

    def close(self) -> None:
        """Record how the release ended, if it did, and forget the keys of this session.

        It is the last step of a flow: a process that is killed before runs the session again to
        its end, and says how it ended.
        """
        if self.end is not None:
            self.entry.end(self.end.model_dump())

    def wait(self, look: Callable[[], T | None], what: str) -> T:
        """Return what ``look`` finds; raise StillWaiting if it finds nothing in time."""
        start, delay = time.monotonic(), FIRST_DELAY
        is_reported = False
        while (found := look()) is None:
            if time.monotonic() - start >= self.limit:
                raise StillWaiting(
                    f"Still waiting for {what}.",
                    remedy="Run the same command again later: it continues.",
                )
            if not is_reported:
                log_progress(f"wait for {what}")
                is_reported = True
            time.sleep(min(delay, self.limit))
            delay = min(2 * delay, MAX_DELAY)
        return found


def read_party(context: ReleaseContext, *, is_centre: bool) -> Membership:
    """Return how this home takes part; raise BadInput if it cannot, in this role."""
    member = read_membership(
        context.open_store().home, context.dataset, INIT if is_centre else JOIN
    )
    if is_centre != (member.name == CENTRE):
        role = CENTRE if member.name == CENTRE else "site"
        raise BadInput(
            f"This home takes part as '{member.name}'.", remedy=f"Use ppdm {role} run FILE."
        )
    check_common_release(context, len(member.sites), is_centre=is_centre)
    return member


def open_exchange(context: ReleaseContext, limit: float, *, is_centre: bool) -> Exchange:
    """Return the exchange of this home, if it takes part; ``limit`` is for each message."""
    member, store = read_party(context, is_centre=is_centre), context.open_store()
    with store.transaction("common release") as db:
        signing = home_key(db).signing()
    return Exchange(Entry(store.home, member, signing), describe_terms(context), limit)

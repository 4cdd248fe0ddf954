"""A party with other columns of the same persons: alignment, and its part of each coefficient.

The parties agree among themselves on the persons, on their order and on the order of the columns.
The centre learns how many persons there are, bounds of energy shares, and sums over all parties.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.masks import add_masks, mask_array, pack_values
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.private_intersection import (
    blind,
    hash_id,
    match_points,
    pack_points,
    unpack_points,
)
from ppdm_core.numerics.rounding import round_outward
from ppdm_core.sanitizers._column_parts import ColumnPart, measure_loss, sum_energy
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tasks.sites.exchange import ASK_SENDER, Exchange
from tasks.sites.fit import agree_on_order
from warehouse.messages.envelope import OtherKind
from warehouse.messages.membership import tell_how_to_give_up
from warehouse.messages.payloads import (
    BlindedIds,
    Bounds,
    Coefficients,
    Roster,
    Selection,
    decode_bytes,
    encode_bytes,
)
from warehouse.messages.roll import CENTRE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

Alignment = Literal["shared_id", "intersection"]
MIN_PERSONS = 20  # among fewer, the bounds are nearly the shares of each person


@dataclass(frozen=True)
class AlignedPersons:
    """The persons that all parties have, and the key of the column order."""

    places: list[int]  # in the table of this party, in an order that all parties share
    key: bytes  # the centre does not learn it


def align_persons(exchange: Exchange, ids: Sequence[str], alignment: Alignment) -> AlignedPersons:
    """Return the common persons in one order for all parties."""
    if len(set(ids)) < len(ids):
        raise BadInput(
            "An id occurs twice, so that its person cannot be aligned.",
            remedy="Keep one record of each person.",
        )
    key = agree_on_order(exchange)
    by_ids = alignment == "shared_id"
    try:
        places = (
            align_by_ids(exchange, ids, key) if by_ids else align_by_intersection(exchange, ids)
        )
    except OtherKind:
        given, not_given = ("without", "with") if by_ids else ("with", "without")
        raise BadInput(
            f"This party joined {given} --intersection, and another one {not_given} it.",
            remedy=f"{advise_giving_up(exchange)} Then let all parties join in the same way.",
        ) from None
    if len(places) < MIN_PERSONS:
        count = "no person" if not places else f"{len(places)} person"
        raise BadInput(
            f"The parties have {count} in common; at least {MIN_PERSONS} are needed.",
            remedy="Check that record_id holds the same ids at all parties.",
        )
    return AlignedPersons(places, key)


def advise_giving_up(exchange: Exchange) -> str:
    """Return how people end a release whose parties do not agree."""
    how = tell_how_to_give_up(exchange.member, exchange.session.roll.session)
    return f"Give this release up: {how}."


def align_by_ids(exchange: Exchange, ids: Sequence[str], key: bytes) -> list[int]:
    """Return an order of the persons, who must be the same at all parties.

    Each party sends the others the number of its persons and one keyed digest of all ids.
    """
    session = exchange.session
    marks = [hmac.digest(key, each.encode(), "sha256") for each in ids]  # they stay here
    digest = hmac.digest(key, b"".join(sorted(marks)), "sha256").hex()
    roster = Roster(count=len(ids), digest=digest)
    earlier = [other for other in list_others(exchange) if other < session.name]
    later = [other for other in list_others(exchange) if other > session.name]
    for other in later:  # of two parties, the first by name speaks first
        session.send(other, "roster", lambda: roster)
    found = {}
    for other in earlier:
        found[other] = exchange.receive(other, "roster", Roster)
        session.send(other, "roster", lambda: roster)
    found |= {other: exchange.receive(other, "roster", Roster) for other in later}
    for other, theirs in found.items():
        if theirs != roster:
            raise BadInput(
                f"The persons of '{other}' are not those of this party: it has {theirs.count}, "
                f"this party {roster.count}.",
                remedy=f"{advise_giving_up(exchange)} Then release the same persons, or let both "
                "parties join with --intersection.",
            )
    return sorted(range(len(ids)), key=lambda place: marks[place])


def align_by_intersection(exchange: Exchange, ids: Sequence[str]) -> list[int]:
    """Return the places of the persons that two parties have in common, in one order for both.

    Each party sends the points of its ids, ordered by point, and gets them back raised to the power
    of the other party, too.
    """
    others = list_others(exchange)
    (other,), power = others, make_power(exchange)
    own = blind([hash_id(each, exchange.session.roll.digest) for each in ids], power)
    order = sorted(range(len(own)), key=lambda place: own[place])
    points = [own[place] for place in order]
    if exchange.session.name < other:
        send_points(exchange, other, points)
        theirs = receive_points(exchange, other)
        back = receive_points(exchange, other)
        answer = blind_points(theirs, power, other)
        send_points(exchange, other, answer)
    else:
        theirs = receive_points(exchange, other)
        send_points(exchange, other, points)
        answer = blind_points(theirs, power, other)
        send_points(exchange, other, answer)
        back = receive_points(exchange, other)
    if len(back) != len(ids):
        raise BadInput(
            f"'{other}' answered with {len(back)} points to {len(ids)}.", remedy=ASK_SENDER
        )
    return [order[place] for place in match_points(back, answer)]


def send_points(exchange: Exchange, other: str, points: Sequence[bytes]) -> None:
    """Send points of ids to another party."""
    payload = BlindedIds(points=encode_bytes(pack_points(points)))
    exchange.session.send(other, "blinded", lambda: payload)


def make_power(exchange: Exchange) -> X25519PrivateKey:
    """Return the secret power of this party, the same in every process of the session."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(exchange.session.derive_key("intersection"))


def receive_points(exchange: Exchange, other: str) -> list[bytes]:
    """Return the points in the next message of a party."""
    try:
        return unpack_points(decode_bytes(exchange.receive(other, "blinded", BlindedIds).points))
    except ValueError:
        raise BadInput(
            f"'{other}' sent points of ids that are incomplete or not on the curve.",
            remedy=ASK_SENDER,
        ) from None


def blind_points(points: list[bytes], key: X25519PrivateKey, other: str) -> list[bytes]:
    """Return the points of the other party raised to the power of this one."""
    try:
        return blind(points, key)
    except ValueError:
        raise BadInput(
            f"'{other}' sent points of ids that reveal the power of a key.", remedy=ASK_SENDER
        ) from None


def list_others(exchange: Exchange) -> list[str]:
    """Return the names of all other parties with columns."""
    return [site for site in exchange.session.roll.sites if site != exchange.session.name]


def agree_by_columns(
    exchange: Exchange,
    sanitizer: DctFuzzy,
    own: Sequence[str],
    X: Floats,
    key: bytes,
    *,
    has_label: bool = False,
) -> dict[str, Any]:
    """Send the bounds of this party's columns, and return the fit that all parties share.

    ``X`` are its scaled columns ``own``, of the common persons, and ``key`` is that of the order.
    """
    part = sanitizer.make_part(own)
    bounds = part.measure_bounds(X)
    low, high = bounds.low.tolist(), bounds.high.tolist()
    payload = Bounds(low=low, high=high, columns=list(own), has_label=has_label)
    exchange.session.send(CENTRE, "bounds", lambda: payload)
    kept = exchange.receive(CENTRE, "selection", Selection).kept
    if kept != sorted(set(kept)) or not kept or kept[-1] >= len(part.schema.numeric):
        raise BadInput("The centre selected coefficients that do not exist.", remedy=ASK_SENDER)
    order = order_columns(key, kept).tolist()
    return {"kept": kept, "order": order, "without_energy": bounds.skipped}


def mask_part(
    exchange: Exchange,
    part: ColumnPart,
    X: Floats,
    Y: Floats,
    kept: Sequence[int],
    label: Sequence[int] = (),
) -> Coefficients:
    """Return the coefficients of a part, and the energy of all coefficients, under masks.

    ``X`` are the scaled columns of this party, and ``Y`` is its part as its gate judged it, both of
    the common persons in their common order. The masks of all parties cancel if the centre sent all
    of them one selection.
    """
    session = exchange.session
    steps = part.round_coefficients(X)
    secrets = {other: session.share_secret(other) for other in list_others(exchange)}
    context = (session.roll.digest, "coefficients", *map(str, kept))
    masked = mask_array(part.count_steps(Y), session.name, secrets, context)
    total = sum_energy(steps)
    energy = add_masks([total], session.name, secrets, (*context, "energy"))
    loss = measure_loss(sum_energy(steps[:, list(kept)]), total)
    return Coefficients(
        outcome="PASS",
        rows=len(X),
        values=encode_bytes(masked.astype("<u8").tobytes()),
        energy=encode_bytes(pack_values(energy)),
        loss=min(1.0, round_outward(loss)),
        label=list(label),
    )


def order_columns(key: bytes, kept: Sequence[int]) -> Ints:
    """Return the kept coefficients in the secret order that the parties share."""
    found: Ints = Noise(key).generator("column order").permutation(np.array(kept, dtype=np.int64))
    return found

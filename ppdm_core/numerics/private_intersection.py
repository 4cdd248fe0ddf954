"""Private set intersection of ids by Diffie-Hellman keys.

Each of two parties raises the hashes of its ids to a secret power, and the other raises them to its
own. Powers commute: an id that both hold ends as the same point at both, and the points of all
other ids look random to a party that does not know both powers. What is learned is who is at both
parties, and how many ids the other party has. A hash of ids under a key that both share would let
each of them test any id, at any time; here a test needs the other party.

The points are u-coordinates of Curve25519. Every 32 bytes are one, on the curve or on its twist,
and both have subgroups of a size that is almost a prime; X25519 clears the small factors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

POINT_BYTES = 32


def hash_id(identifier: str, context: str) -> bytes:
    """Return the point of an id; ``context`` separates releases."""
    found = hashlib.sha512(f"ppdm-id-1\0{context}\0{identifier}".encode())
    return found.digest()[:POINT_BYTES]


def blind(points: Iterable[bytes], key: X25519PrivateKey) -> list[bytes]:
    """Return the points raised to a secret power, in the same order.

    Raise ValueError for a point that is none, or whose power is the same for all keys.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    return [key.exchange(X25519PublicKey.from_public_bytes(point)) for point in points]


def match_points(own: Sequence[bytes], others: Iterable[bytes]) -> list[int]:
    """Return the places in ``own`` of points that the other party has, too, ordered by point.

    Both parties come to the same order, which says nothing about the ids.
    """
    known = set(others)
    places = [place for place, point in enumerate(own) if point in known]
    return sorted(places, key=lambda place: own[place])


def pack_points(points: Iterable[bytes]) -> bytes:
    """Return points as bytes."""
    return b"".join(points)


def unpack_points(raw: bytes) -> list[bytes]:
    """Return the points in bytes; raise ValueError if they are incomplete."""
    if len(raw) % POINT_BYTES:
        raise ValueError("The bytes do not hold complete points.")
    return [raw[start : start + POINT_BYTES] for start in range(0, len(raw), POINT_BYTES)]

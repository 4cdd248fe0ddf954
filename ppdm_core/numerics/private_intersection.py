"""Private set intersection of ids by Diffie-Hellman keys.

Each of two parties raises the hashes of its ids to a secret power, and the other raises them to its
own. Powers commute: an id that both hold ends as the same point at both, and the points of all
other ids look random to a party that does not know both powers. What is learned is who is at both
parties, and how many ids the other party has. A hash of ids under a key that both share would let
each of them test any id, at any time; here a test needs the other party.

The points are u-coordinates on Curve25519. Half of all numbers are on its twist instead, and X25519
keeps a point where it is: on which of both the hash of an id lies would be a bit that both parties'
powers leave as it is. So ids are hashed until the point is on the curve, and points of others that
are not are refused. X25519 clears the small factor of the order of the curve.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

POINT_BYTES = 32
PRIME = 2**255 - 19
CURVE_A = 486662  # v^2 = u^3 + A u^2 + u


def hash_id(identifier: str, context: str) -> bytes:
    """Return the point of an id, on the curve; ``context`` separates releases."""
    for counter in itertools.count():  # two tries on average
        text = f"ppdm-id-2\0{context}\0{counter}\0{identifier}"
        u = int.from_bytes(hashlib.sha512(text.encode()).digest()) % PRIME
        if is_on_curve(u):
            break
    return u.to_bytes(POINT_BYTES, "little")


def is_on_curve(u: int) -> bool:
    """Return whether a point of the curve has this u-coordinate; one of its twist has, otherwise.

    That is so if the right side of the equation is a square (Euler's criterion). Points whose
    v-coordinate is 0 are left out.
    """
    return pow(u * (u * u + CURVE_A * u + 1), (PRIME - 1) // 2, PRIME) == 1


def check_points(points: Iterable[bytes]) -> None:
    """Raise ValueError for a point that is not on the curve, or is not written in one way only."""
    for point in points:
        u = int.from_bytes(point, "little")
        if u >= PRIME or not is_on_curve(u):
            raise ValueError("A point is not on the curve.")


def blind(points: Iterable[bytes], key: X25519PrivateKey) -> list[bytes]:
    """Return the points raised to a secret power, in the same order.

    Raise ValueError for a point whose power is the same for all keys.
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
    """Return the points in bytes; raise ValueError if they are incomplete or not on the curve."""
    if len(raw) % POINT_BYTES:
        raise ValueError("The bytes do not hold complete points.")
    points = [raw[start : start + POINT_BYTES] for start in range(0, len(raw), POINT_BYTES)]
    check_points(points)
    return points

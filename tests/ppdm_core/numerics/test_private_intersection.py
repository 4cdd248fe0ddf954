"""Private set intersection: the common ids, in one order at both parties, and nothing else."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ppdm_core.numerics.private_intersection import (
    CURVE_A,
    PRIME,
    blind,
    hash_id,
    is_on_curve,
    match_points,
    pack_points,
    unpack_points,
)


def intersect(ids: list[str], others: list[str]) -> tuple[list[str], list[str]]:
    """Return what each party finds to be common, in its order."""
    a, b = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    first = blind([hash_id(each, "c") for each in ids], a)
    second = blind([hash_id(each, "c") for each in others], b)
    both_first, both_second = blind(first, b), blind(second, a)
    return (
        [ids[place] for place in match_points(both_first, both_second)],
        [others[place] for place in match_points(both_second, both_first)],
    )


@pytest.mark.parametrize("shared", [0, 1, 7])
def test_intersection_both_parties_find_the_same_ids_in_the_same_order(shared: int):
    common = [f"p{i}" for i in range(shared)]
    ids, others = [*(f"a{i}" for i in range(9)), *common], [*common, *(f"b{i}" for i in range(5))]
    first, second = intersect(ids, others)
    assert first == second and sorted(first) == sorted(common)


def test_blinded_ids_cannot_be_tested_without_the_key():
    """The points of two runs with other keys share nothing, and do not contain the hash."""
    points = [hash_id(f"p{i}", "c") for i in range(50)]
    one, two = (blind(points, X25519PrivateKey.generate()) for _ in range(2))
    assert not set(one) & (set(two) | set(points))
    bits = np.unpackbits(np.frombuffer(b"".join(one), dtype=np.uint8))
    assert abs(bits.mean() - 0.5) < 0.05


def square_root(x: int) -> int | None:
    """Return a root modulo 2^255 - 19, None if there is none (Atkin's formula for 5 modulo 8)."""
    for root in (r := pow(x, (PRIME + 3) // 8, PRIME), r * pow(2, (PRIME - 1) // 4, PRIME) % PRIME):
        if root * root % PRIME == x % PRIME:
            return root
    return None


def is_on_twist(point: bytes) -> bool:
    u = int.from_bytes(point, "little")
    return square_root(u**3 + CURVE_A * u**2 + u) is None


def test_hash_id_all_points_are_on_the_curve():
    """Which points lie on the twist would be one bit of each id that no power changes."""
    points = [hash_id(f"p{i}", "c") for i in range(200)]
    assert not any(map(is_on_twist, points))
    raised = blind(points, X25519PrivateKey.generate())
    assert not any(map(is_on_twist, raised))


def test_blind_keeps_a_point_where_it_is():
    """The reason for the test above: of other points half are on the twist, and stay there."""
    points = [hashlib.sha256(bytes([i])).digest() for i in range(200)]
    points = [each[:-1] + bytes([each[-1] & 127]) for each in points]
    sides = [is_on_twist(each) for each in points]
    assert 60 < sum(sides) < 140
    assert [is_on_twist(each) for each in blind(points, X25519PrivateKey.generate())] == sides
    assert [not is_on_curve(int.from_bytes(each, "little")) for each in points] == sides


def test_hash_id_of_another_release_is_another_point():
    assert hash_id("p", "one") != hash_id("p", "two")


@pytest.mark.parametrize("u", [0, 1])
def test_blind_point_of_small_order_refused(u: int):
    """Its power is the same for all keys, so that it would come back as a mark."""
    with pytest.raises(ValueError, match=r"."):
        blind([u.to_bytes(32, "little")], X25519PrivateKey.generate())


def test_unpack_points_round_trip_and_incomplete_refused():
    points = [hash_id(f"p{i}", "c") for i in range(4)]
    assert unpack_points(pack_points(points)) == points
    with pytest.raises(ValueError, match="complete"):
        unpack_points(pack_points(points)[:-1])


@pytest.mark.parametrize(
    "u",
    [2, 0, PRIME - 1, 9 + PRIME, 9 + 2**255],
    ids=["twist", "order 2", "order 4 on the twist", "not reduced", "high bit"],
)
def test_unpack_points_off_the_curve_or_written_twice_refused(u: int):
    with pytest.raises(ValueError, match="not on the curve"):
        unpack_points((9).to_bytes(32, "little") + u.to_bytes(32, "little"))

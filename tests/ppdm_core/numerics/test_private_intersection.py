"""Private set intersection: the common ids, in one order at both parties, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ppdm_core.numerics.private_intersection import (
    blind,
    hash_id,
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


def test_hash_id_of_another_release_is_another_point():
    assert hash_id("p", "one") != hash_id("p", "two")


def test_blind_point_of_small_order_refused():
    with pytest.raises(ValueError, match=r"."):
        blind([bytes(32)], X25519PrivateKey.generate())


def test_unpack_points_round_trip_and_incomplete_refused():
    points = [bytes([i]) * 32 for i in range(4)]
    assert unpack_points(pack_points(points)) == points
    with pytest.raises(ValueError, match="complete"):
        unpack_points(bytes(33))

"""Masks cancel in the sum over all sites, and hide everything else."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.numerics.masks import (
    MODULUS,
    add_masks,
    expand_mask,
    hide_flags,
    mask_array,
    pack_values,
    sum_masked,
    sum_masked_arrays,
    unpack_values,
)

CONTEXT = ("roll", "moments")
Numbers = st.integers(-(2**126) // 4, 2**126 // 4)


def make_secrets(sites: tuple[str, ...]) -> dict[str, dict[str, bytes]]:
    pairs = {pair: os.urandom(32) for pair in itertools.combinations(sorted(sites), 2)}
    return {
        own: {other: pairs[min(own, other), max(own, other)] for other in sites if other != own}
        for own in sites
    }


@given(st.lists(st.tuples(Numbers, Numbers), min_size=3, max_size=5))
def test_sum_masked_all_sites_gives_the_exact_sum(values):
    sites = tuple("abcde"[: len(values)])
    secrets = make_secrets(sites)
    masked = [
        add_masks(own, site, secrets[site], CONTEXT)
        for site, own in zip(sites, values, strict=True)
    ]
    assert sum_masked(masked) == [sum(column) for column in zip(*values, strict=True)]


def test_sum_masked_one_site_missing_gives_noise():
    sites = ("a", "b", "c")
    secrets = make_secrets(sites)
    masked = [add_masks([0] * 200, site, secrets[site], CONTEXT) for site in sites]
    partial = sum_masked(masked[:2])
    high_bits = np.array([value >> 120 for value in partial])  # uniform over 256 values
    assert len(set(high_bits.tolist())) > 100


def test_masked_numbers_of_one_site_are_uniform():
    secrets = make_secrets(("a", "b", "c"))
    masked = add_masks([12345] * 4000, "a", secrets["a"], CONTEXT)
    bits = np.array([[value >> k & 1 for k in range(128)] for value in masked])
    assert abs(bits.mean(axis=0) - 0.5).max() < 0.05


@pytest.mark.parametrize("other", [("other roll", "moments"), ("roll", "scores")])
def test_masks_of_another_roll_or_round_do_not_cancel(other):
    secrets = make_secrets(("a", "b", "c"))
    masked = [
        add_masks([1], site, secrets[site], other if site == "b" else CONTEXT) for site in "abc"
    ]
    assert abs(sum_masked(masked)[0]) > 2**64


def test_expand_mask_known_bytes():
    """Golden: sites of different versions must compute the same masks."""
    found = expand_mask(b"\x01" * 32, 2, ("roll", "moments", "a", "b"))
    assert found == [
        229802517392706131770511384019734708757,
        167174046305650180662860039655815733779,
    ]


def test_pack_values_round_trip_and_wrong_length():
    values = [0, 1, MODULUS - 1]
    assert unpack_values(pack_values(values)) == values
    with pytest.raises(ValueError, match="complete numbers"):
        unpack_values(b"\x00" * 17)


def test_hide_flags_sum_shows_only_whether_any_is_true():
    flags = [(False, False, False), (True, False, False), (True, True, True)]
    parts = [hide_flags([row[site] for row in flags], os.urandom(48)) for site in range(3)]
    totals = sum_masked(parts)
    assert totals[0] == 0
    assert totals[1] != 0 and totals[2] != 0


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_mask_array_sum_of_all_parties_is_exact(parties: int):
    sites = tuple("abcde"[:parties])
    secrets, rng = make_secrets(sites), np.random.default_rng(parties)
    values = [rng.integers(-(2**60), 2**60, (30, 4)) for _ in sites]
    masked = [
        mask_array(own, site, secrets[site], CONTEXT)
        for site, own in zip(sites, values, strict=True)
    ]
    assert np.array_equal(sum_masked_arrays(masked), np.sum(values, axis=0))


def test_mask_array_of_one_party_is_uniform():
    secrets = make_secrets(("a", "b"))
    masked = mask_array(np.full((4000, 2), 12345), "a", secrets["a"], CONTEXT)
    bits = (masked[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert abs(bits.mean(axis=0) - 0.5).max() < 0.05
    other = mask_array(np.full((4000, 2), 12345), "a", secrets["a"], ("roll", "another round"))
    assert not np.any(masked == other)

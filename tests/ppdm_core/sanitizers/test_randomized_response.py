from __future__ import annotations

import hashlib
import json
import math
import struct
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.model.errors import Defect
from ppdm_core.model.release import Released, Response
from ppdm_core.model.rows import make_position_keys
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.randomized_response import (
    DRAW_COUNT,
    RandomizedResponse,
    count_wrong_draws,
    describe_mechanism,
    select_responses,
)
from tests.support.response_tables import ANSWER, COLOUR, KEY, released, table

NAME = "randomized_response"


# An unchanged cell must keep its response: a change of these values needs a new scheme.
GOLDEN_BITS = ["5cceb5195bcc3b91f3c36b23034a9cdf", "4d9e96a5cb18b317a6b622735e07eb20"]
GOLDEN_COLOURS = [0, 1, 0, 0, 1, 2, 2, 1, 2, 2, 2, 2]
GOLDEN_ANSWERS = [1, 0, 1, -1, -1, -1, -1, 1, 0, -1, 1, 1]


def make_mixed_rows(n: int) -> np.ndarray:
    return np.column_stack([np.arange(n) % 3, np.arange(n) % 3 - 1])


def test_response_bits_match_scheme_per_cell():
    def frame(*parts: bytes) -> bytes:
        return b"".join(struct.pack("<Q", len(part)) + part for part in parts)

    keys, codes = make_position_keys(5) + np.uint8(7), np.array([0, 2, -1, 1, 0], dtype=np.int32)
    bits = Noise(KEY).response_bits(keys, codes, "law", b"mechanism")
    purpose = frame(b"ppdm-noise-1", b"response", b"law")
    subkey = hashlib.blake2b(purpose, key=KEY, digest_size=32).digest()
    for key, code, found in zip(keys, codes.tolist(), bits, strict=True):
        text = frame(b"law", b"mechanism") + frame(bytes(key) + struct.pack("<i", code))
        expected = hashlib.blake2b(text, key=subkey, digest_size=16).digest()
        assert found.tobytes() == expected


def test_sanitize_golden_responses():
    bits = Noise(KEY).response_bits(make_position_keys(2), np.array([0, -1]), "law", b"mechanism")
    assert [row.tobytes().hex() for row in bits] == GOLDEN_BITS
    found = released(table(make_mixed_rows(12), COLOUR, ANSWER), attribute=3)
    assert found.T.tolist() == [GOLDEN_COLOURS, GOLDEN_ANSWERS]


def test_sanitize_responses_match_scheme_per_cell():
    """The scheme in integers: the first draws are the wrong responses, sorted by name."""
    C, by_name = make_mixed_rows(60)[:, :1], ["blue", "green", "red"]
    found = released(table(C, COLOUR), attribute=3)[:, 0]
    response = Response(COLOUR, 3.0)
    plain = json.dumps(["colour", by_name, False, str(-(-DRAW_COUNT // 5))]).encode()
    fingerprint = hashlib.blake2b(plain, digest_size=32).digest()
    for i, code in enumerate(C[:, 0].tolist()):
        truth = COLOUR.categories[code]
        place = np.array([by_name.index(truth)])
        bits = Noise(KEY).response_bits(make_position_keys(60)[i : i + 1], place, NAME, fingerprint)
        high, low = bits[0].tolist()
        wrong = [name for name in by_name if name != truth]
        answer = [*wrong, truth][min(((high << 64) + low) // count_wrong_draws(response), 2)]
        assert COLOUR.categories[found[i]] == answer


@given(
    gamma=st.floats(1.001, 1e9),
    k=st.integers(2, 300),
    limit=st.integers(0, 299),
    off=st.integers(-2, 2),
    anywhere=st.integers(0, DRAW_COUNT - 1),
)
def test_select_responses_equals_integer_division(
    gamma: float, k: int, limit: int, off: int, anywhere: int
):
    share = count_wrong_draws(Response(Categorical("c", ("",) * k), gamma))
    near = min(max(share * min(limit, k - 1) + off, 0), DRAW_COUNT - 1)
    for U in (near, anywhere, 0, DRAW_COUNT - 1):
        bits = np.array([[U >> 64, U & (2**64 - 1)]], dtype=np.uint64)
        assert select_responses(bits, share, k).tolist() == [min(U // share, k - 1)]


@given(gamma=st.floats(1.001, 1e9), k=st.integers(2, 10_000))
def test_count_wrong_draws_rounds_up_by_less_than_one(gamma: float, k: int):
    share = count_wrong_draws(Response(Categorical("c", ("",) * k), gamma))

    def ratio(wrong: int) -> Fraction:
        return Fraction(DRAW_COUNT - (k - 1) * wrong, wrong)

    assert 1 < ratio(share) <= Fraction(gamma) < ratio(share - 1)
    assert share > 2**64  # what the comparison of two words relies on


@pytest.mark.parametrize("code", [0, 1, -1])
def test_sanitize_responses_follow_their_distribution(code: int):
    from scipy.stats import chisquare

    n, gamma = 20_000, 3.0
    found = released(table(np.full((n, 1), code), ANSWER), attribute=gamma)[:, 0]
    counts = [int(np.sum(found == answer)) for answer in (0, 1, -1)]
    chances = [gamma if answer == code else 1.0 for answer in (0, 1, -1)]
    expected = n * np.array(chances) / sum(chances)
    assert sum(counts) == n
    assert chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.slow
def test_sampler_meets_gamma_and_test_detects_3_percent():
    """A million draws at each of two inputs; 99.9 % lower bound of the ratio of probabilities."""
    n, gamma = 1_000_000, 3.0

    def lower_bound(used: float) -> float:
        hits = [
            int(np.sum(released(table(np.full((n, 1), code), COLOUR), attribute=used) == 0))
            for code in (0, 1)
        ]
        spread = math.sqrt(sum(1 / hit - 1 / n for hit in hits))
        return hits[0] / hits[1] * math.exp(-3.09 * spread)

    assert lower_bound(gamma) <= gamma
    assert lower_bound(gamma * 1.03) > gamma


def test_sanitize_change_elsewhere_keeps_response():
    C = make_mixed_rows(300)
    before = released(table(C, COLOUR, ANSWER), attribute=3)
    changed = C.copy()
    changed[:, 0] = (C[:, 0] + 1) % 3
    after = released(table(changed, COLOUR, ANSWER), attribute=3)
    assert np.array_equal(before[:, 1], after[:, 1])
    assert not np.array_equal(before[:, 0], after[:, 0])
    other = released(table(C, COLOUR, ANSWER), attribute={"colour": 9, "answer": 3})
    assert np.array_equal(before[:, 1], other[:, 1])
    assert not np.array_equal(before[:, 0], other[:, 0])


def test_sanitize_equal_columns_get_independent_responses():
    C = np.zeros((300, 2), dtype=np.int32)
    found = released(table(C, COLOUR, replace(COLOUR, name="hue")), attribute=3)
    assert 0.2 < np.mean(found[:, 0] == found[:, 1]) < 0.6  # 0.44 if they are independent


def test_sanitize_reordered_categories_give_same_words():
    order = [2, 0, 1]
    listed = replace(COLOUR, categories=tuple(COLOUR.categories[i] for i in order))
    C = make_mixed_rows(300)[:, :1]
    one = released(table(C, COLOUR), attribute=3)[:, 0]
    two = released(table(np.argsort(order)[C], listed), attribute=3)[:, 0]
    assert [COLOUR.categories[i] for i in one] == [listed.categories[i] for i in two]


def test_sanitize_missing_is_response_only_if_kept():
    found = released(table(make_mixed_rows(2000), COLOUR, ANSWER), attribute=1.5)
    assert set(found[:, 0]) == {0, 1, 2}
    assert set(found[:, 1]) == {-1, 0, 1}


@pytest.mark.parametrize("code", [-1, 3])
def test_sanitize_code_without_category_raises_defect(code: int):
    with pytest.raises(Defect, match="'colour' holds a code without a category"):
        released(table([[0], [code]], COLOUR), attribute=3)


def test_public_parameters_hold_responses():
    sanitizer = RandomizedResponse(gamma={"attribute": 3})
    rows = table(make_mixed_rows(30), COLOUR, ANSWER)
    answer: Released = sanitizer.sanitize(rows, Noise(KEY), {})
    assert answer.public.names == ("colour", "answer")
    assert [(r.column.k, r.gamma, r.keep_probability) for r in answer.public.responses] == [
        (3, 3.0, 0.6)
    ] * 2
    assert answer.atom == 0.6
    assert sanitizer.mechanism(rows.schema, {}) == [
        describe_mechanism(r) for r in answer.public.responses
    ]


def test_sanitize_one_category_and_missing_are_two_cells():
    column = Categorical("c", ("seen",), missing=True)
    found = released(table(np.full((100, 1), -1), column), attribute=2)
    assert set(found[:, 0]) == {-1, 0}

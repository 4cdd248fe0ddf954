from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Response
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.randomized_response import (
    DRAW_COUNT,
    RandomizedResponse,
    count_wrong_draws,
)
from tests.support.response_tables import ANSWER, COLOUR, KEY, table


def test_guarantee_gammas_match_brute_force():
    gammas = {"colour": 2.0, "answer": 5.0}
    columns = (COLOUR, ANSWER)
    promise = RandomizedResponse(gamma={"attribute": gammas}).guarantee(Schema((), columns), {})

    def chances(column: Categorical) -> np.ndarray:  # (true, released)
        share = count_wrong_draws(Response(column, gammas[column.name])) / DRAW_COUNT
        return np.full((3, 3), share) + np.eye(3) * (1 - 3 * share)

    one, two = map(chances, columns)
    worst = max(
        one[a, x] * two[b, y] / (one[c, x] * two[d, y])
        for a, b, c, d, x, y in itertools.product(range(3), repeat=6)
    )
    assert promise.kind == "bounded"
    assert math.exp(promise.ln_record) == pytest.approx(worst, rel=1e-12)
    assert promise.ln_attribute == promise.ln_component == math.log(5.0)


@given(record=st.floats(1.001, 1e9), c=st.integers(1, 200))
def test_gamma_of_record_is_split_and_met(record: float, c: int):
    columns = tuple(replace(COLOUR, name=f"c{j}") for j in range(c))
    promise = RandomizedResponse(gamma={"record": record}).guarantee(Schema((), columns), {})
    assert promise.ln_record <= math.log(record)
    assert promise.ln_record == pytest.approx(math.log(record), rel=1e-6)
    assert promise.ln_attribute == pytest.approx(math.log(record) / c, rel=1e-6)


@pytest.mark.parametrize(
    "gamma",
    [
        3,
        {},
        {"column": 3},
        {"attribute": 3, "record": 9},
        {"attribute": 1.0},
        {"attribute": True},
        {"attribute": {}},
        {"attribute": {"colour": "3"}},
        {"record": math.inf},
        {"record": 2e9},
        {"record": {"colour": 3}},
    ],
)
def test_parameters_invalid_raise(gamma: Any):
    with pytest.raises(BadInput, match="The 'gamma' parameter of RandomizedResponse must be"):
        RandomizedResponse(gamma=gamma)


@pytest.mark.parametrize(
    ("gamma", "columns", "sentence"),
    [
        ({"record": 9}, (replace(COLOUR, categories=("red",)),), "'colour' has one category"),
        ({"record": 9}, (), "has no feature to release"),
        ({"attribute": {"colour": 3}}, (COLOUR, ANSWER), "'answer' has no gamma of its own"),
        ({"attribute": {"colour": 3, "hue": 3}}, (COLOUR,), "names 'hue', which is not"),
    ],
)
def test_sanitize_infeasible_column_raises(gamma: Any, columns: Any, sentence: str):
    rows = table(np.zeros((3, len(columns))), *columns)
    with pytest.raises(BadInput, match=sentence):
        RandomizedResponse(gamma=gamma).sanitize(rows, Noise(KEY), {})
    with pytest.raises(BadInput, match=sentence):
        RandomizedResponse(gamma=gamma).guarantee(rows.schema, {})

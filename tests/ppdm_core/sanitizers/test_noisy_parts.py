"""Noise of a party on its own part: its range, its bound, and the bound of the sum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.sanitizers._column_parts import bound_sum
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy

NAMES = [f"x{j}" for j in range(6)]
OWN, KEPT = NAMES[:3], [0, 2, 3]
SCHEMA = Schema(tuple(Numeric(name, 0.0, 1.0) for name in OWN))
FIT = {"kept": KEPT, "order": [3, 0, 2], "without_energy": 0}


def make_method(noise_scale: float | None = 0.5, **given: bool) -> DctFuzzy:
    return DctFuzzy(scale="minmax", order=NAMES, others=NAMES[3:], noise_scale=noise_scale, **given)


@pytest.mark.parametrize("centre", [False, True])
def test_make_mechanism_ranges_hold_all_records(centre: bool):
    part = make_method(centre=centre).make_part(OWN)
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T
    scores = part.compute_coefficients(corners)[:, KEPT]
    ranges = part.make_mechanism(KEPT).ranges
    assert np.allclose(scores.min(axis=0), ranges[:, 0])
    assert np.allclose(scores.max(axis=0), ranges[:, 1])


def test_guarantee_of_a_noisy_part_is_the_largest_ratio_of_two_records():
    """By hand: the L1 distance of two parts over the scale, for the farthest two corners."""
    method = make_method()
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T
    scores = method.make_part(OWN).compute_coefficients(corners)[:, KEPT]
    far = max(float(np.abs(a - b).sum()) for a in scores for b in scores) / 0.5
    found = method.guarantee(SCHEMA, FIT)
    assert found.kind == "bounded_given_basis"
    assert far <= found.ln_record <= far + 3 * 0.001 + 1e-6  # one grid step per column
    assert found.ln_attribute < found.ln_record and math.isfinite(found.ln_component)


def test_bound_sum_adds_the_bounds_of_all_parties():
    method = make_method()
    parts = [method.make_part(OWN), method.make_part(NAMES[3:])]
    each = [part.make_mechanism(KEPT).compute_ln_gammas() for part in parts]
    component, attribute, record = bound_sum(parts, KEPT)
    assert record == each[0][2] + each[1][2] and attribute == max(each[0][1], each[1][1])
    assert component == each[0][0] + each[1][0]


def test_guarantee_without_noise_has_no_bound():
    assert math.isinf(make_method(None).guarantee(SCHEMA, FIT).ln_record)


def test_noise_scale_wrong_value_refused():
    with pytest.raises(BadInput, match="'noise_scale' parameter of DctFuzzy must be"):
        make_method(-1.0)
    with pytest.raises(BadInput, match="left out unless 'others'"):
        DctFuzzy(noise_scale=0.5)


def test_noise_scale_too_small_names_the_parameter():
    from ppdm_core.model.rows import ArrayRows
    from ppdm_core.numerics.noise import Noise

    rows = ArrayRows(SCHEMA, np.full((4, 3), 0.5))
    with pytest.raises(BadInput) as raised:
        make_method(0.001).sanitize(rows, Noise(b"k" * 32), FIT)
    assert "Raise 'noise_scale' to" in str(raised.value.remedy)

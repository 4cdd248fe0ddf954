"""The three figures of a real release, against all pairs of corners of the column box."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ppdm_core.numerics.grid_noise import grid_ranges
from ppdm_core.sanitizers._mechanism import Mechanism
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.tables import fit_sanitizer, make_table, scale_rows


def compute_ln_ratios(m: Mechanism) -> np.ndarray:
    """ln gamma between the corners of the unit box, per component; (corners, corners, s).

    Corner numbers that differ in one bit are corners that differ in one column.
    """
    X = np.array(list(itertools.product((-0.5, 0.5), repeat=len(m.widths))))
    low, high = grid_ranges(m.ranges, m.g).T
    steps = np.clip(np.rint(X @ m.loadings / m.g), low, high)
    return m.distribution.ln_gamma(np.abs(steps[:, None] - steps[None]) * (m.g / m.b))


SHAPES: dict[str, dict[str, Any]] = {
    "isotropic": {"noise_shape": "isotropic"},
    "per_component": {"noise_shape": "per_component"},
    "private ranges": {"noise_shape": "per_component", "basis": "private"},
}
LAWS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "logistic": {"law": "logistic"},
    "student_t": {"law": "student_t", "nu": 3},
    "cauchy": {"law": "student_t", "nu": 1},
}


@pytest.mark.extended
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("d", "s"), [(1, 1), (2, 1), (2, 2), (4, 3), (6, 1), (6, 4), (6, 6)])
def test_guarantee_every_pair_of_corners_within_figures(d: int, s: int, shape: str, law: str):
    rows = make_table(300, d)
    sanitizer = PcaLaplace(components=s, b=0.3, **SHAPES[shape], **LAWS[law])
    fitted = fit_sanitizer(sanitizer, rows)
    schema = scale_rows(rows, fitted).schema
    found = compute_ln_ratios(sanitizer._mechanism(schema, fitted))
    guarantee = sanitizer.guarantee(schema, fitted)
    corner = np.arange(2**d)
    one_column = np.bitwise_count(corner[:, None] ^ corner[None]) == 1
    record, attribute = found.sum(axis=2).max(), found.sum(axis=2)[one_column].max()
    assert record <= guarantee.ln_record
    assert attribute <= guarantee.ln_attribute <= guarantee.ln_record
    assert found.max() <= guarantee.ln_component <= guarantee.ln_record
    # A step of the grid is at most a thousandth of the scale, and both ends may be off by one.
    rounding = 0.002 * (2 if law == "student_t" else 1)
    assert guarantee.ln_component <= found.max() + rounding
    if shape == "isotropic":
        assert guarantee.ln_attribute <= attribute + s * rounding
    if shape == "isotropic" and law in ("laplace", "logistic"):
        assert guarantee.ln_record <= record + s * rounding


@pytest.mark.parametrize("basis", ["sample", "private"])
@pytest.mark.parametrize("s", [1, 3])
def test_guarantee_clipped_scores_equals_range_figures(s: int, basis: str):
    rows, ranges = make_table(300), [[-0.25, 0.25], [0.0, 0.125], [-0.5, 0.25]][:s]
    sanitizer = PcaLaplace(
        components=s, b=0.3, noise_shape="per_component", basis=basis, score_ranges=ranges
    )
    fitted = fit_sanitizer(sanitizer, rows)
    guarantee = sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)
    # The ranges are multiples of their grids, so that nothing is widened. E5: e^(s/b).
    assert s / 0.3 < guarantee.ln_record < s / 0.3 + 1e-6
    assert 1 / 0.3 < guarantee.ln_component < 1 / 0.3 + 1e-6

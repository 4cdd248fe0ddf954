"""Parts of attacks where all records are equal: nothing overflows, and nothing is infinite."""

from __future__ import annotations

import numpy as np

from ppdm_core.attacks._column_matching import transport_costs
from ppdm_core.attacks._noise_shape import fit_noise_shape


def test_fit_noise_shape_no_noise_finite_weights() -> None:
    zeros, known = np.zeros((12, 1)), np.arange(9)
    shape = fit_noise_shape(zeros, zeros, known, known)
    assert all(np.isfinite(part).all() for part in vars(shape).values())


def test_transport_costs_constant_columns_finite() -> None:
    F, Y = np.full((30, 2), 0.5), np.full((30, 2), 0.75)
    assert np.isfinite(transport_costs(F, Y)).all()

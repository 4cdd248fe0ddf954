from __future__ import annotations

import math

import pytest

from ppdm_core.numerics.amplification import format_gamma


@pytest.mark.parametrize(
    ("ln_gamma", "text"),
    [
        (math.log(2.5), "2.5"),
        (1 / 0.3, "28"),
        (math.log(99.0), "99"),
        (math.log(99.1), "99 (no useful worst-case bound)"),
        (math.log(1000.0), "1,000 (no useful worst-case bound)"),
        (80.0, "e^80.0 (no useful worst-case bound)"),
        (800.0, "e^800.0 (no useful worst-case bound)"),
        (math.inf, "unbounded"),
    ],
)
def test_format_gamma_values_expected_words(ln_gamma, text):
    assert format_gamma(ln_gamma) == text


def test_format_gamma_not_a_number_not_useful():
    assert "no useful" in format_gamma(math.nan)

"""Rounding of published figures of private data to two significant digits."""

from __future__ import annotations

import math


def round_outward(value: float, *, up: bool = True) -> float:
    """Return the value rounded up (or down) to two significant digits."""
    if value == 0.0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    steps = value / step
    return float(f"{(math.ceil(steps - 1e-9) if up else math.floor(steps + 1e-9)) * step:.6g}")

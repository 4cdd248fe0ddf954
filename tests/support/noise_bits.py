"""Bits of many records, and the sampler that turns them into noise."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.model.rows import Block
from ppdm_core.numerics.grid_noise import GridNoise
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.noise_distributions import Logistic, NoiseDistribution, StudentT


def drawn_bits(n: int, columns: int, key: bytes = bytes(range(32))) -> np.ndarray:
    """Bits of n different records under one key: never flaky."""
    rows = Block(
        X=np.arange(n, dtype=np.float64)[:, None],
        C=np.zeros((n, 0), dtype=np.int32),
        label=np.zeros(n, dtype=np.int32),
        key=np.zeros((n, 16), dtype=np.uint8),
        record=np.arange(n),
        start=0,
    )
    return Noise(key).bits(rows, "law", columns, b"mechanism")


def as_bits(k: int, negative: bool = False) -> np.ndarray:
    """U = (k + 1/2) / 2^127 and a sign, as the cipher would deliver them."""
    high = (k >> 64) | (int(negative) << 63)
    return np.array([high, k & (2**64 - 1)], dtype=np.uint64)


def sampler(distribution: NoiseDistribution, ratio: float) -> GridNoise:
    """Noise of one component on the grid of whole numbers, over a domain of no width."""
    return GridNoise(distribution, np.array([1 / ratio]), np.ones(1), np.zeros((1, 2)))


ROUNDED = [Logistic(), StudentT(1.0), StudentT(3.0), StudentT(20.0)]
each_rounded = pytest.mark.parametrize("distribution", ROUNDED, ids=str)

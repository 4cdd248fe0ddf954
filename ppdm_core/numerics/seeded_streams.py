"""First numbers of common random generators, for all small seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats

SEEDS = 10_000  # seeds below it are tried
_R_SCALE = 2.3283064365386963e-10  # 2^-32, as R writes it
_R_BIG = 2.0**27  # of R's normal numbers


def draw_numpy_normal(seed: int, length: int) -> Floats:
    """Return normal numbers of numpy's ``default_rng``."""
    return np.random.default_rng(seed).standard_normal(length)


def draw_numpy_laplace(seed: int, length: int) -> Floats:
    """Return Laplace numbers of numpy's ``default_rng``."""
    return np.random.default_rng(seed).laplace(size=length)


def draw_numpy_uniform(seed: int, length: int) -> Floats:
    """Return uniform numbers of numpy's ``default_rng``."""
    return np.random.default_rng(seed).random(length)


def draw_legacy_normal(seed: int, length: int) -> Floats:
    """Return normal numbers of numpy's ``RandomState``."""
    return np.asarray(np.random.RandomState(seed).standard_normal(length))


def draw_legacy_laplace(seed: int, length: int) -> Floats:
    """Return Laplace numbers of numpy's ``RandomState``."""
    return np.asarray(np.random.RandomState(seed).laplace(size=length))


def draw_legacy_uniform(seed: int, length: int) -> Floats:
    """Return uniform numbers of numpy's ``RandomState``."""
    return np.asarray(np.random.RandomState(seed).random_sample(length))


def draw_python_normal(seed: int, length: int) -> Floats:
    """Return ``random.gauss`` of Python."""
    generator = random.Random(seed)
    return np.array([generator.gauss(0.0, 1.0) for _ in range(length)])


def draw_python_uniform(seed: int, length: int) -> Floats:
    """Return ``random.random`` of Python."""
    generator = random.Random(seed)
    return np.array([generator.random() for _ in range(length)])


def draw_r_uniform(seed: int, length: int) -> Floats:
    """Return ``runif`` of R after ``set.seed``."""
    generator = np.random.MT19937()
    state = {"key": _scramble_r_seed(seed), "pos": 624}
    generator.state = {"bit_generator": "MT19937", "state": state}
    uniform = generator.random_raw(length) * _R_SCALE
    return np.clip(uniform, 0.5 * _R_SCALE, 1.0 - 0.5 * _R_SCALE)


def draw_r_normal(seed: int, length: int) -> Floats:
    """Return ``rnorm`` of R after ``set.seed``: two uniform numbers each, by inversion."""
    from scipy.special import ndtri

    uniform = draw_r_uniform(seed, 2 * length)
    return np.asarray(ndtri((np.floor(_R_BIG * uniform[0::2]) + uniform[1::2]) / _R_BIG))


def _scramble_r_seed(seed: int) -> NDArray[np.uint32]:
    """Return the state that R makes of a seed by a linear congruential generator."""
    factors, sums = _list_r_steps()
    return factors * np.uint32(seed) + sums


@cache
def _list_r_steps() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return factor and sum after 52 to 675 steps: fifty steps are thrown away, one is a position."""
    factor, total, found = 1, 0, []
    for step in range(50 + 625):
        factor, total = factor * 69069 % 2**32, (total * 69069 + 1) % 2**32
        if step > 50:
            found.append((factor, total))
    factors, sums = np.array(found, dtype=np.uint32).T
    return factors, sums


STREAMS: dict[str, Callable[[int, int], Floats]] = {
    "numpy default_rng, normal": draw_numpy_normal,
    "numpy default_rng, Laplace": draw_numpy_laplace,
    "numpy default_rng, uniform": draw_numpy_uniform,
    "numpy RandomState, normal": draw_legacy_normal,
    "numpy RandomState, Laplace": draw_legacy_laplace,
    "numpy RandomState, uniform": draw_legacy_uniform,
    "Python random, normal": draw_python_normal,
    "Python random, uniform": draw_python_uniform,
    "R, normal": draw_r_normal,
    "R, uniform": draw_r_uniform,
}


@cache
def draw_all_seeds(name: str, length: int) -> NDArray[np.float32]:
    """Return the first numbers of a stream for every seed; (seeds, length)."""
    draw = STREAMS[name]
    return np.array([draw(seed, length) for seed in range(SEEDS)], dtype=np.float32)

"""First numbers of common random generators, for all small seeds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
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


def draw_numpy_uniform(seed: int, length: int) -> Floats:
    """Return uniform numbers of numpy's ``default_rng``."""
    return np.random.default_rng(seed).random(length)


def draw_legacy_normal(seed: int, length: int) -> Floats:
    """Return normal numbers of numpy's ``RandomState``."""
    return np.asarray(_seed_legacy(seed).standard_normal(length))


def draw_legacy_uniform(seed: int, length: int) -> Floats:
    """Return uniform numbers of numpy's ``RandomState``."""
    return np.asarray(_seed_legacy(seed).random_sample(length))


def _seed_legacy(seed: int) -> np.random.RandomState:
    """Return a generator in the state of ``RandomState(seed)``; to make a new one is slow."""
    generator = _reuse_legacy()
    generator.seed(seed)
    return generator


@cache
def _reuse_legacy() -> np.random.RandomState:
    return np.random.RandomState(0)


@cache
def _reuse_twister() -> np.random.MT19937:
    return np.random.MT19937(0)


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
    generator = _reuse_twister()
    generator.state = {
        "bit_generator": "MT19937",
        "state": {"key": _scramble_r_seed(seed), "pos": 624},
    }
    uniform = generator.random_raw(length) * _R_SCALE
    return np.clip(uniform, 0.5 * _R_SCALE, 1.0 - 0.5 * _R_SCALE)


def _scramble_r_seed(seed: int) -> NDArray[np.uint32]:
    """Return the state that R makes of a seed by a linear congruential generator."""
    factors, sums = _list_r_steps()
    return factors * np.uint32(seed) + sums


@cache
def _list_r_steps() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return factor and sum after 52 to 675 steps: R throws fifty away, and one is a position."""
    factor, total, found = 1, 0, []
    for step in range(50 + 625):
        factor, total = factor * 69069 % 2**32, (total * 69069 + 1) % 2**32
        if step > 50:
            found.append((factor, total))
    factors, sums = np.array(found, dtype=np.uint32).T
    return factors, sums


GENERATORS: dict[str, Callable[[int, int], Floats]] = {
    "numpy default_rng, normal": draw_numpy_normal,
    "numpy default_rng, uniform": draw_numpy_uniform,
    "numpy RandomState, normal": draw_legacy_normal,
    "numpy RandomState, uniform": draw_legacy_uniform,
    "Python random, normal": draw_python_normal,
    "Python random, uniform": draw_python_uniform,
    "R, uniform": draw_r_uniform,
}


def invert_laplace(uniform: Floats) -> Floats:
    """Return Laplace numbers from uniform ones, as numpy makes them."""
    low = np.log(np.maximum(uniform + uniform, 1e-300))
    return np.where(uniform < 0.5, low, -np.log(np.maximum(2.0 - uniform - uniform, 1e-300)))


def invert_normal(uniform: Floats) -> Floats:
    """Return normal numbers from uniform ones, two for each, as R makes them."""
    from scipy.special import ndtri

    mixed = np.floor(_R_BIG * uniform[:, 0::2]) + uniform[:, 1::2]
    return np.asarray(ndtri(np.clip(mixed / _R_BIG, 1e-12, 1.0 - 1e-12)))


# How numbers of other distributions are made from those of a generator: how many, and by what.
DERIVED: dict[str, tuple[str, int, Callable[[Floats], Floats]]] = {
    "numpy default_rng, Laplace": ("numpy default_rng, uniform", 1, invert_laplace),
    "numpy RandomState, Laplace": ("numpy RandomState, uniform", 1, invert_laplace),
    "R, normal": ("R, uniform", 2, invert_normal),
}
STREAMS = (*GENERATORS, *DERIVED)


def draw_stream(name: str, seeds: Sequence[int], length: int) -> Floats:
    """Return the first numbers of a stream for some seeds; (seeds, length)."""
    if name in DERIVED:
        source, factor, make = DERIVED[name]
        return make(draw_stream(source, seeds, factor * length))
    draw = GENERATORS[name]
    return np.array([draw(seed, length) for seed in seeds])


@cache
def draw_generator(name: str, length: int) -> NDArray[np.float32]:
    """Return the first numbers of a generator for every seed; (seeds, length)."""
    return draw_stream(name, range(SEEDS), length).astype(np.float32)


def draw_all_seeds(name: str, length: int) -> Floats:
    """Return the first numbers of a stream for every seed; (seeds, length)."""
    if name not in DERIVED:
        return draw_generator(name, 2 * length)[:, :length].astype(np.float64)
    source, factor, make = DERIVED[name]
    return make(draw_generator(source, 2 * length)[:, : factor * length].astype(np.float64))

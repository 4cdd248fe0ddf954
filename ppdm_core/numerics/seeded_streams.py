"""First numbers of common random generators, for many seeds at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics import mersenne_twister

SEEDS = 10_000  # seeds below it are tried
MAX_LENGTH = 32  # of streams that are drawn for every seed
_R_SCALE = 2.3283064365386963e-10  # 2^-32, as R writes it
_R_BIG = 2.0**27  # of R's normal numbers
Seeds = NDArray[np.uint32]


def draw_numpy_normal(seeds: Seeds, length: int) -> Floats:
    """Return normal numbers of numpy's ``default_rng``; (seeds, length)."""
    return np.array([np.random.default_rng(seed).standard_normal(length) for seed in seeds])


def draw_numpy_uniform(seeds: Seeds, length: int) -> Floats:
    """Return uniform numbers of numpy's ``default_rng``; (seeds, length)."""
    return np.array([np.random.default_rng(seed).random(length) for seed in seeds])


def draw_legacy_uniform(seeds: Seeds, length: int) -> Floats:
    """Return uniform numbers of numpy's ``RandomState``; (seeds, length)."""
    return mersenne_twister.draw_uniform(mersenne_twister.seed_numpy(seeds), length).T


def draw_legacy_normal(seeds: Seeds, length: int) -> Floats:
    """Return normal numbers of numpy's ``RandomState``: the polar method; (seeds, length)."""
    pairs = math.ceil(length / 2)
    tries = 2 * pairs + 60  # 79 of 100 points are in the circle: they always suffice
    uniform = mersenne_twister.draw_uniform(mersenne_twister.seed_numpy(seeds), 2 * tries)
    x, y = 2.0 * uniform[0::2] - 1.0, 2.0 * uniform[1::2] - 1.0  # (tries, seeds)
    square = x * x + y * y
    is_inside = (square < 1.0) & (square > 0.0)
    chosen = np.argsort(~is_inside, axis=0, kind="stable")[:pairs]  # the first ones inside
    x, y, square = (np.take_along_axis(each, chosen, axis=0) for each in (x, y, square))
    factor = np.sqrt(-2.0 * np.log(square) / square)
    both = np.stack([factor * y, factor * x], axis=1)  # (pairs, 2, seeds)
    return both.reshape(2 * pairs, -1)[:length].T


def draw_python_uniform(seeds: Seeds, length: int) -> Floats:
    """Return ``random.random`` of Python; (seeds, length)."""
    return mersenne_twister.draw_uniform(mersenne_twister.seed_python(seeds), length).T


def draw_python_normal(seeds: Seeds, length: int) -> Floats:
    """Return ``random.gauss`` of Python; (seeds, length)."""
    pairs = math.ceil(length / 2)
    uniform = draw_python_uniform(seeds, 2 * pairs)
    angle, radius = 2.0 * np.pi * uniform[:, 0::2], np.sqrt(-2.0 * np.log(1.0 - uniform[:, 1::2]))
    both = np.stack([np.cos(angle) * radius, np.sin(angle) * radius], axis=2)
    return both.reshape(len(seeds), -1)[:, :length]


def draw_r_uniform(seeds: Seeds, length: int) -> Floats:
    """Return ``runif`` of R after ``set.seed``; (seeds, length)."""
    words = mersenne_twister.draw_words(mersenne_twister.seed_r(seeds), length)
    uniform: Floats = np.clip(words * _R_SCALE, 0.5 * _R_SCALE, 1.0 - 0.5 * _R_SCALE)
    return uniform.T


GENERATORS: dict[str, Callable[[Seeds, int], Floats]] = {
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
    return GENERATORS[name](np.asarray(seeds, dtype=np.uint32), length)


@cache
def draw_generator(name: str) -> NDArray[np.float32]:
    """Return the first numbers of a generator for every seed; (seeds, 2 MAX_LENGTH)."""
    return draw_stream(name, range(SEEDS), 2 * MAX_LENGTH).astype(np.float32)


def draw_all_seeds(name: str, length: int) -> Floats:
    """Return the first numbers, at most MAX_LENGTH, of a stream for every seed; (seeds, length)."""
    if name not in DERIVED:
        return draw_generator(name)[:, :length].astype(np.float64)
    source, factor, make = DERIVED[name]
    return make(draw_generator(source)[:, : factor * length].astype(np.float64))

"""Streams of many seeds at once are those of the libraries, number by number."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from ppdm_core.numerics.seeded_streams import SEEDS, STREAMS, draw_all_seeds, draw_stream

TRIED_SEEDS = (0, 1, 42, SEEDS - 1, 2**32 - 1)
LENGTH = 1_301  # more than one state of the Mersenne Twister, and odd


def repeat_python(draw: Callable[[random.Random], float]) -> Callable[[int], list[float]]:
    def repeat(seed: int) -> list[float]:
        generator = random.Random(seed)
        return [draw(generator) for _ in range(LENGTH)]

    return repeat


LIBRARIES: dict[str, Callable[[int], np.ndarray | list[float]]] = {
    "numpy default_rng, normal": lambda seed: np.random.default_rng(seed).normal(size=LENGTH),
    "numpy default_rng, uniform": lambda seed: np.random.default_rng(seed).random(LENGTH),
    "numpy default_rng, Laplace": lambda seed: np.random.default_rng(seed).laplace(size=LENGTH),
    "numpy RandomState, normal": lambda seed: np.random.RandomState(seed).normal(size=LENGTH),
    "numpy RandomState, uniform": lambda seed: np.random.RandomState(seed).random_sample(LENGTH),
    "numpy RandomState, Laplace": lambda seed: np.random.RandomState(seed).laplace(size=LENGTH),
    "Python random, normal": repeat_python(lambda generator: generator.gauss(0.0, 1.0)),
    "Python random, uniform": repeat_python(lambda generator: generator.random()),
}


@pytest.mark.extended
@pytest.mark.parametrize("name", LIBRARIES)
def test_draw_stream_equals_the_library(name: str) -> None:
    found = draw_stream(name, TRIED_SEEDS, LENGTH)
    for seed, numbers in zip(TRIED_SEEDS, found, strict=True):
        assert numbers == pytest.approx(LIBRARIES[name](seed), rel=1e-14, abs=1e-15), seed


def test_draw_stream_equals_r() -> None:
    # set.seed(42); rnorm(3); set.seed(42); runif(2) in R 4
    normal = draw_stream("R, normal", [42], 3)[0]
    assert normal == pytest.approx([1.37095845, -0.56469817, 0.36312841], abs=1e-7)
    uniform = draw_stream("R, uniform", [42], 2)[0]
    assert uniform == pytest.approx([0.9148060, 0.9370754], abs=1e-7)


def test_draw_all_seeds_agrees_with_single_streams() -> None:
    for name in STREAMS:
        assert draw_all_seeds(name, 4)[9] == pytest.approx(draw_stream(name, [9], 4)[0], abs=1e-4)

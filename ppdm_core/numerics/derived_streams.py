"""First numbers of numpy's generators in less direct ways, for seeds that people often take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.seeded_streams import invert_laplace

COMMON_SEEDS = (
    *range(100),
    *(111, 123, 222, 256, 314, 321, 333, 420, 444, 512, 555, 666, 777, 888, 999, 1000, 1001, 1024),
    *(1111, 1234, 1337, 2048, 2222, 2718, 3141, 3333, 4096, 4242, 4321, 5678, 6789, 7777, 9999),
    *range(2000, 2031),
)
CHILDREN = 12  # of each seed
LATE_LENGTH = 64
_CHILD_LENGTH = 32
_MAX_EARLIER_CELLS = 50_000  # of a table that was drawn first

# The entropy of a child: seed sequences that are spawned, and pairs of seed and number.
_FAMILIES: dict[str, Callable[[int, int], np.random.SeedSequence]] = {
    "spawned": lambda seed, k: np.random.SeedSequence(seed, spawn_key=(k,)),
    "seed and number": lambda seed, k: np.random.SeedSequence([seed, k]),
    "number and seed": lambda seed, k: np.random.SeedSequence([k, seed]),
}
_BIT_GENERATORS = (
    np.random.MT19937,
    np.random.PCG64DXSM,
    np.random.Philox,
    np.random.SFC64,
)


@cache
def draw_children() -> Floats:
    """Return the first numbers of the children of each seed; (streams, CHILDREN, length).

    A stream is a family of children, a seed and a distribution: normal, uniform or Laplace.
    """
    found = []
    for make in _FAMILIES.values():
        for seed in COMMON_SEEDS:
            children = [make(seed, k) for k in range(CHILDREN)]
            normal, uniform = zip(
                *(draw_both(np.random.default_rng(child), _CHILD_LENGTH) for child in children),
                strict=True,
            )
            found += list_streams(np.array(normal), np.array(uniform))
    return np.array(found)


@lru_cache(maxsize=4)
def draw_late_streams(n: int, d: int) -> Floats:
    """Return numbers that follow others which a table of this size may need; (streams, length).

    First come a permutation of the rows, a number for each row, or numbers for a table.
    """
    found: list[Floats] = []
    for seed in COMMON_SEEDS:
        for start in (np.random.default_rng, np.random.RandomState):
            for generator in draw_first(start, seed, n, d):
                found += list_streams(*draw_both(generator, LATE_LENGTH))
        for kind in _BIT_GENERATORS:
            generator = np.random.Generator(kind(seed))
            found += list_streams(*draw_both(generator, LATE_LENGTH))
    return np.array(found)


def draw_first(
    start: Callable[[int], np.random.Generator | np.random.RandomState], seed: int, n: int, d: int
) -> Iterator[np.random.Generator | np.random.RandomState]:
    """Yield generators that have drawn something for a table of n rows and d columns."""
    for count in (n, n * d) if n * d <= _MAX_EARLIER_CELLS else (n,):
        for draw in ("standard_normal", "random_sample"):
            generator = start(seed)
            getattr(generator, draw if hasattr(generator, draw) else "random")(count)
            yield generator
    generator = start(seed)
    generator.permutation(n)
    yield generator


def draw_both(
    generator: np.random.Generator | np.random.RandomState, length: int
) -> tuple[Floats, Floats]:
    """Return the next normal numbers of a generator, and the next uniform ones instead."""
    if isinstance(generator, np.random.RandomState):
        known = generator.get_state()
        normal = generator.standard_normal(length)
        generator.set_state(known)
        return normal, generator.random_sample(length)
    state = generator.bit_generator.state
    normal = generator.standard_normal(length)
    generator.bit_generator.state = state
    return normal, generator.random(length)


def list_streams(normal: Floats, uniform: Floats) -> list[Floats]:
    """Return numbers of mean 0 of three distributions."""
    return [normal, uniform - 0.5, invert_laplace(uniform)]

"""The Mersenne Twister MT19937 for many seeds at once, as numpy, Python and R seed it.

A state is an array of 624 words; states of many seeds are the columns of one array.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats

Words = NDArray[np.uint32]

WORDS = 624
_OFFSET = 397
_PYTHON_START = 19650218
_R_DISCARDED = 51  # R throws fifty numbers away, and one is a position


def seed_numpy(seeds: Words) -> Words:
    """Return the states of numpy's ``RandomState(seed)``; (624, seeds)."""
    state = np.empty((WORDS, len(seeds)), dtype=np.uint32)
    state[0] = seeds
    for i in range(1, WORDS):
        before = state[i - 1]
        state[i] = (before ^ (before >> 30)) * np.uint32(1812433253) + np.uint32(i)
    return state


def seed_python(seeds: Words) -> Words:
    """Return the states of Python's ``random.Random(seed)``; (624, seeds)."""
    start = seed_numpy(np.array([_PYTHON_START], dtype=np.uint32))
    state = np.repeat(start, len(seeds), axis=1)
    i = 1
    for _ in range(WORDS):
        before = state[i - 1]
        state[i] = (state[i] ^ (before ^ (before >> 30)) * np.uint32(1664525)) + seeds
        i = _advance(state, i)
    for _ in range(WORDS - 1):
        before = state[i - 1]
        state[i] = (state[i] ^ (before ^ (before >> 30)) * np.uint32(1566083941)) - np.uint32(i)
        i = _advance(state, i)
    state[0] = 0x80000000
    return state


def _advance(state: Words, i: int) -> int:
    """Return the next position; the last word becomes the first one at the end."""
    if i + 1 < WORDS:
        return i + 1
    state[0] = state[-1]
    return 1


def seed_r(seeds: Words) -> Words:
    """Return the states of R after ``set.seed(seed)``; (624, seeds)."""
    factors, sums = _list_r_steps()
    return factors[:, None] * seeds + sums[:, None]


@cache
def _list_r_steps() -> tuple[Words, Words]:
    """Return factor and sum of R's linear congruential generator for each word of the state."""
    factor, total, found = 1, 0, []
    for step in range(_R_DISCARDED + WORDS):
        factor, total = factor * 69069 % 2**32, (total * 69069 + 1) % 2**32
        if step >= _R_DISCARDED:
            found.append((factor, total))
    factors, sums = np.array(found, dtype=np.uint32).T
    return factors, sums


def draw_words(state: Words, count: int) -> Words:
    """Return the first numbers of each state; (count, seeds)."""
    words = np.empty((WORDS + count, state.shape[1]), dtype=np.uint32)
    words[:WORDS] = state
    step = WORDS - _OFFSET  # words that follow from earlier ones alone
    for begin in range(0, count, step):
        end = min(begin + step, count)
        mixed = (words[begin:end] & 0x80000000) | (words[begin + 1 : end + 1] & 0x7FFFFFFF)
        twisted = (mixed >> 1) ^ (mixed & 1) * np.uint32(0x9908B0DF)
        words[WORDS + begin : WORDS + end] = words[_OFFSET + begin : _OFFSET + end] ^ twisted
    return _temper(words[WORDS:])


def _temper(words: Words) -> Words:
    y = words.copy()
    y ^= y >> np.uint32(11)
    y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
    y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
    y ^= y >> np.uint32(18)
    return y


def draw_uniform(state: Words, count: int) -> Floats:
    """Return numbers in [0, 1) with 53 bits, as numpy and Python make them; (count, seeds)."""
    words = draw_words(state, 2 * count)
    high, low = (words[0::2] >> 5).astype(np.float64), (words[1::2] >> 6).astype(np.float64)
    return np.asarray((high * 67108864.0 + low) / 9007199254740992.0)

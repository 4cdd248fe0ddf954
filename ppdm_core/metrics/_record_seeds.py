"""Noise whose seed is a simple function of the record: anybody with the record draws it again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.seeded_streams import DERIVED, GENERATORS, MAX_LENGTH

_SCREENED_VALUES, _VALUES = 16, 64  # of the noise: compared with all functions, with promising ones
_MIN_SCREENED = 0.5  # squared correlation of the first values: by chance, less than one in 400
_MIN_AGREEMENT = 0.6  # squared correlation of all values; by chance, less than one in 1e12
_FACTORS = 10.0 ** np.arange(7)  # decimals that a seed may use
_SEED_LIMIT = 2.0**32
Seeds = NDArray[np.uint32]


def measure_record_seeds(tables: list[Floats], X: Floats) -> float:
    """Return the largest squared correlation of the noise with a stream seeded by the record.

    ``tables`` are what the noise may be, ``X`` the records in their own units. 0: nothing that
    chance does not explain.
    """
    best = 0.0
    for R in tables:
        width = min(R.shape[1], MAX_LENGTH)
        few, rows = (-(-values // width) for values in (_SCREENED_VALUES, _VALUES))
        if len(R) < rows:
            continue
        seeds = np.unique(list(list_seeds(X[:rows])), axis=0)  # (functions, rows)
        for name in GENERATORS:
            screened = correlate(name, seeds[:, :few], R[:few, :width])
            chosen = seeds[screened >= _MIN_SCREENED]
            if len(chosen):
                best = max(best, float(correlate(name, chosen, R[:rows, :width]).max()))
    return min(1.0, best) if best >= _MIN_AGREEMENT else 0.0


def correlate(name: str, seeds: Seeds, R: Floats) -> Floats:
    """Return the largest squared correlation with a generator's numbers, for each function."""
    width, noise = R.shape[1], centre(R[None])[0]
    numbers = GENERATORS[name](seeds.ravel(), 2 * width)
    best = np.zeros(len(seeds))
    streams = [numbers[:, :width]]
    streams += [
        make(numbers[:, : factor * width])
        for source, factor, make in DERIVED.values()
        if source == name
    ]
    for stream in streams:
        lines = centre(stream.reshape(len(seeds), *R.shape))
        best = np.maximum(best, (lines @ noise) ** 2)
    return best


def list_seeds(X: Floats) -> Iterator[Seeds]:
    """Yield seeds that may be computed from each record: rounded sums, lengths and values."""
    figures = (X.sum(axis=1), X.mean(axis=1), np.linalg.norm(X, axis=1), X[:, 0], X[:, -1])
    for figure in figures:
        for factor in _FACTORS:
            for whole in (np.round(factor * figure), np.floor(factor * figure)):
                yield (np.abs(whole) % _SEED_LIMIT).astype(np.uint32)


def centre(A: Floats) -> Floats:
    """Return tables as lines with mean 0 and length 1; (tables, values)."""
    lines = A.reshape(len(A), -1)
    lines = lines - lines.mean(axis=1, keepdims=True)
    length = np.linalg.norm(lines, axis=1, keepdims=True)
    return np.asarray(lines / np.maximum(length, 1e-300))

"""Rows whose noise has a seed of its own: the number of the row, or any small number."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.seeded_streams import MAX_LENGTH, SEEDS, STREAMS, draw_all_seeds

_MAX_NUMBERED_ROWS = 2_000
_SHIFTS = (7, 11, 13, 17)  # numbers of other rows: what chance gives
_CONSECUTIVE_VALUES = 128  # compared with the streams of consecutive seeds
_SEEDED_ROWS, _MIXED_ROWS = 150, 75  # compared with any seed
_MIN_ROW_VALUES = 6  # fewer agree with some seed in any case
_LEVELS = (-9.0, -14.0, -20.0)  # logarithms of the probability of a row's agreement by chance
_PROBABILITY = 1e-10  # of so many such rows
_LEAST = 1e-14  # of what agreement leaves of a row: rounding errors


def measure_numbered_rows(R: Floats) -> float:
    """Return the squared correlation of rows with streams seeded by their number; 0 by chance."""
    R = R[: min(_MAX_NUMBERED_ROWS, SEEDS - max(_SHIFTS) - 1)]
    width = min(R.shape[1], MAX_LENGTH)
    rows = scale_rows(R[:, :width])
    best = 0.0
    for name in STREAMS if width > 1 else ():
        streams = draw_centred(name, width)
        for first in (0, 1):
            own, *others = (
                np.einsum("ij,ij->i", rows, streams[first + k : first + k + len(R)])
                for k in (0, *_SHIFTS)
            )
            best = max(best, find_seeded_rows(own, np.concatenate(others), width, 1))
    return best


def measure_consecutive_seeds(R: Floats) -> float:
    """Return the squared correlation of the first rows with streams of consecutive seeds.

    The seed of the first row is any number; 0 if chance explains it.
    """
    width = min(R.shape[1], MAX_LENGTH)
    count = min(len(R), -(-_CONSECUTIVE_VALUES // width))
    first = R[:count, :width]
    best = 0.0
    for name in STREAMS:
        streams = draw_centred(name, width, scaled=False)
        products, squares = streams @ first.T, np.einsum("ij,ij->i", streams, streams)
        places = np.arange(SEEDS - count)
        agreement = sum(products[i : i + len(places), i] for i in range(count))
        length = np.convolve(squares, np.ones(count), "valid")[: len(places)] * (first**2).sum()
        best = max(best, float((np.square(agreement) / np.maximum(length, 1e-300)).max()))
    score = score_agreement(np.array([best]), count * width)[0]
    by_chance = np.log(SEEDS * len(STREAMS)) - np.log(_PROBABILITY)
    return min(1.0, best) if score > by_chance else 0.0


def measure_any_seeds(R: Floats, rng: np.random.Generator) -> float:
    """Return the squared correlation of rows with the best seed for each; 0 if chance explains it.

    Chance is also what rows reach whose cells are those of different rows.
    """
    width = min(R.shape[1], MAX_LENGTH)
    if width < _MIN_ROW_VALUES:
        return 0.0
    own = R[:_SEEDED_ROWS, :width]
    mixed = rng.permuted(own, axis=0)[:_MIXED_ROWS]
    rows = scale_rows(np.vstack([own, mixed]))
    screened = np.asarray(rows, dtype=np.float32).T
    best = np.zeros(len(rows))
    for name in STREAMS:
        streams = draw_centred(name, width)
        chosen = np.abs(streams.astype(np.float32) @ screened).argmax(axis=0)
        best = np.maximum(best, np.abs(np.einsum("ij,ij->i", rows, streams[chosen])))
    return find_seeded_rows(best[: len(own)], best[len(own) :], width, SEEDS * len(STREAMS))


def find_seeded_rows(own: Floats, others: Floats, width: int, tried: int) -> float:
    """Return the median squared correlation of rows that agree too well for chance; 0 without any.

    ``own`` are correlations of rows with their streams, ``others`` by chance, each the best of
    those that were tried.
    """
    from scipy.special import pdtrc

    scores, by_chance = (score_agreement(np.square(each), width) for each in (own, others))
    for level in _LEVELS:
        is_beyond = scores > np.log(tried) - level
        seen = (by_chance > np.log(tried) - level).sum() / max(1, len(others))
        expected = len(own) * (np.exp(level) + 2.0 * seen)
        if is_beyond.any() and pdtrc(is_beyond.sum() - 1, expected) < _PROBABILITY:
            return float(min(1.0, np.median(np.square(own[is_beyond]))))
    return 0.0


def score_agreement(squared: Floats, length: int) -> Floats:
    """Return minus the logarithm of how probable a squared correlation is by chance."""
    return np.asarray(-0.5 * (length - 1) * np.log(np.maximum(_LEAST, 1.0 - squared)))


def draw_centred(name: str, width: int, *, scaled: bool = True) -> Floats:
    """Return the first numbers of a stream for every seed, of mean 0; (seeds, width)."""
    streams = draw_all_seeds(name, width)
    centred = streams - streams.mean()
    return scale_rows(centred) if scaled else centred


def scale_rows(R: Floats) -> Floats:
    """Return rows with length 1."""
    return np.asarray(R / np.maximum(np.linalg.norm(R, axis=1, keepdims=True), 1e-30))

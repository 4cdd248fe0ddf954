"""The law of the records behind noisy rows, and records that may be behind each row.

The records' law is taken for a mixture of m normal laws with independent columns, the noise for
one of normal laws as well, so that row and record are jointly normal in each pair of parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ppdm_core.miners._lloyd import best_clusters, spread_start
from ppdm_core.miners._noise_mixture import NoiseParts
from ppdm_core.model.arrays import Floats, Ints

_CELLS = 2**16  # cells of a block times parts: what stays in the processor's cache
_CYCLES = 60
_GAIN = 0.001  # a cycle that makes the rows' log likelihood larger by less is the last one
_LEAST_SHARE = 1e-6
_LEAST_VARIANCE, _MOST_VARIANCE = 1e-4, 4.0  # of a column's own
_FASTEST = 64.0  # steps at once
_STARTS = 3


@dataclass(frozen=True, eq=False)
class CleanLaw:
    """Part i of the records: a share of them, normal with these means and variances."""

    share: Floats  # (m,)
    mean: Floats  # (m, s)
    variance: Floats  # (m, s)


class _Column(NamedTuple):
    """One column of some rows, given each part of the records."""

    log_density: Floats  # (m, rows) of the noisy value
    gap: Floats  # (m, rows) from the part's mean
    chance: Floats  # (m, rows, q) of the noise's parts
    kept: Floats  # (m, q) share of the gap that the record is expected to have, given both parts
    variance: Floats  # (m, q) of the record, given both parts


def clean_law(Y: Floats, noise: list[NoiseParts], m: int, rng: np.random.Generator) -> CleanLaw:
    """The likeliest law with m parts; the columns of the rows have variance 1.

    The EM algorithm, sped up by extrapolating two steps to the limit of a geometric sequence; an
    extrapolation that would make the rows less likely is dropped (Varadhan, Roland, "Simple and
    globally convergent methods for accelerating the convergence of any EM algorithm", 2008).
    """
    law = _start(Y, noise, m, rng)
    best = -np.inf
    for _ in range(_CYCLES):
        once, _ = _step(Y, noise, law)
        twice, at_once = _step(Y, noise, once)
        beyond, at_far = _step(Y, noise, _extrapolated(law, once, twice))
        law, reached = (beyond, at_far) if at_far >= at_once else (twice, at_once)
        if reached - best < _GAIN:
            break
        best = reached
    return law


def likely_records(
    Y: Floats, noise: list[NoiseParts], law: CleanLaw, rng: np.random.Generator
) -> Floats:
    """For each row one record, drawn from what the row and the law leave possible."""
    X = np.empty_like(Y)
    for rows in _blocks(len(Y), noise, law):
        columns = _columns(Y[rows], noise, law)
        part = _drawn(_chances(columns, law)[0].T, rng)  # (rows,)
        each = np.arange(len(part))
        for j, column in enumerate(columns):
            q = _drawn(column.chance[part, each], rng)
            gap = column.kept[part, q] * (column.gap[part, each] - noise[j].shift[q])
            deviation = np.sqrt(column.variance[part, q]) * rng.standard_normal(len(part))
            X[rows, j] = law.mean[part, j] + gap + deviation
    return X


def _start(Y: Floats, noise: list[NoiseParts], m: int, rng: np.random.Generator) -> CleanLaw:
    """The clusters of the rows, shrunk by what the noise adds to the columns' variances."""
    found = best_clusters(Y, (spread_start(Y, m, rng) for _ in range(_STARTS)))
    added = np.array([part.share @ (part.variance + part.shift**2) for part in noise])
    left = np.clip(1.0 - added / np.maximum(Y.var(axis=0), 1e-300), 0.05, 1.0)  # (s,)
    gaps = (Y - found.centres[found.labels]) ** 2
    count = np.bincount(found.labels, minlength=m) + 1.0
    inside = np.array([np.bincount(found.labels, gap, m) for gap in gaps.T]).T / count[:, None]
    centre = Y.mean(axis=0)
    return CleanLaw(
        count / count.sum(),
        centre + (found.centres - centre) * np.sqrt(left),
        np.clip(inside * left, _LEAST_VARIANCE, _MOST_VARIANCE),
    )


def _step(Y: Floats, noise: list[NoiseParts], law: CleanLaw) -> tuple[CleanLaw, float]:
    """One step of the EM algorithm, and the log likelihood of the rows before it."""
    count, total = np.zeros(len(law.share)), 0.0
    first, second = np.zeros_like(law.mean), np.zeros_like(law.mean)
    for rows in _blocks(len(Y), noise, law):
        columns = _columns(Y[rows], noise, law)
        chances, likelihood = _chances(columns, law)  # (m, rows)
        total += likelihood
        count += chances.sum(axis=1)
        for j, column in enumerate(columns):
            powers = np.stack([chances, chances * column.gap, chances * column.gap**2], axis=1)
            zero, one, two = (powers @ column.chance).transpose(1, 0, 2)  # (m, q) each
            shift, kept = noise[j].shift, column.kept
            first[:, j] += (kept * (one - shift * zero)).sum(axis=1)
            squares = two - 2.0 * shift * one + shift**2 * zero
            second[:, j] += (kept**2 * squares + column.variance * zero).sum(axis=1)
    first, second = first / count[:, None], second / count[:, None]
    return _inside(count / len(Y), law.mean + first, second - first**2), total


def _inside(share: Floats, mean: Floats, variance: Floats) -> CleanLaw:
    share = np.maximum(share, _LEAST_SHARE)
    variance = np.clip(variance, _LEAST_VARIANCE, _MOST_VARIANCE)
    return CleanLaw(share / share.sum(), mean, variance)


def _extrapolated(law: CleanLaw, once: CleanLaw, twice: CleanLaw) -> CleanLaw:
    origin, first, second = (_flat(each) for each in (law, once, twice))
    step = first - origin
    bend = second - first - step
    size = float(np.linalg.norm(bend))
    if size == 0.0:
        return twice
    length = min(max(float(np.linalg.norm(step)) / size, 1.0), _FASTEST)
    ahead = origin + 2.0 * length * step + length**2 * bend
    m, s = law.mean.shape
    share, mean, variance = np.split(ahead, [m, m + m * s])
    share = np.exp(share - share.max())
    variance = np.exp(np.minimum(variance, 10.0))  # cannot overflow
    return _inside(share / share.sum(), mean.reshape(m, s), variance.reshape(m, s))


def _flat(law: CleanLaw) -> Floats:
    logs = np.log(law.share), np.log(law.variance).ravel()
    return np.concatenate([logs[0], law.mean.ravel(), logs[1]])


def _blocks(n: int, noise: list[NoiseParts], law: CleanLaw) -> Iterator[slice]:
    most = max(len(part.share) for part in noise)
    size = max(1, _CELLS // (len(law.share) * most))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _columns(Y: Floats, noise: list[NoiseParts], law: CleanLaw) -> list[_Column]:
    return [
        _column(Y[:, j], part, law.mean[:, j], law.variance[:, j]) for j, part in enumerate(noise)
    ]


def _column(y: Floats, noise: NoiseParts, mean: Floats, variance: Floats) -> _Column:
    both = variance[:, None] + noise.variance  # (m, q)
    gap = y - mean[:, None]  # (m, rows)
    density = (gap[:, :, None] - noise.shift) ** 2  # (m, rows, q)
    density *= (-0.5 / both)[:, None]
    density += (np.log(noise.share) - 0.5 * np.log(2.0 * np.pi * both))[:, None]
    top = density.max(axis=2)
    density -= top[:, :, None]
    chance = np.exp(density, out=density)
    whole = chance.sum(axis=2)
    chance /= whole[:, :, None]
    kept = variance[:, None] / both
    return _Column(np.log(whole) + top, gap, chance, kept, kept * noise.variance)


def _chances(columns: list[_Column], law: CleanLaw) -> tuple[Floats, float]:
    """Of the parts given each row, (m, rows), and the log likelihood of these rows."""
    joint = np.log(law.share)[:, None] + sum(column.log_density for column in columns)
    top = joint.max(axis=0)
    chances = np.exp(joint - top)
    whole = chances.sum(axis=0)
    return chances / whole, float(np.sum(np.log(whole) + top))


def _drawn(chance: Floats, rng: np.random.Generator) -> Ints:
    """One place in each row, by its probabilities."""
    reach = chance.cumsum(axis=1)
    place = (reach < rng.random((len(chance), 1)) * reach[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(place, chance.shape[1] - 1))

"""The distribution of the records behind noisy rows, and draws of the record behind each row.

The records are modelled as a mixture of m normal distributions with independent columns, and the
noise as a mixture of normal distributions as well, so that row and record are jointly normal in
each pair of parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ppdm_core.miners._noise_mixture import NoiseParts
from ppdm_core.miners._plain_kmeans import fit_plain_kmeans
from ppdm_core.model.arrays import Floats, Ints

_BLOCK_CELLS = 2**16  # cells of a block times parts: fits in the cache
_MAX_CYCLES = 60
_MIN_GAIN = 0.001  # stop if a cycle increases the log likelihood by less
_MIN_SHARE = 1e-6
_MIN_VARIANCE, _MAX_VARIANCE = 1e-4, 4.0  # as a share of the variance of the column
_MAX_STEP_LENGTH = 64.0  # in EM steps
_KMEANS_STARTS = 3


@dataclass(frozen=True, eq=False)
class CleanDistribution:
    """A mixture of m normal parts, each with its share, means and variances."""

    share: Floats  # (m,)
    mean: Floats  # (m, s)
    variance: Floats  # (m, s)


class _Column(NamedTuple):
    """One column of some rows, conditional on each part of the records."""

    log_density: Floats  # (m, rows) of the noisy value
    gap: Floats  # (m, rows) from the part's mean
    probability: Floats  # (m, rows, q) of the parts of the noise
    shrinkage: Floats  # (m, q) expected share of the gap that is the record's, given both parts
    variance: Floats  # (m, q) of the record, given both parts


def fit_clean_distribution(
    Y: Floats, noise: list[NoiseParts], m: int, rng: np.random.Generator
) -> CleanDistribution:
    """Return the maximum-likelihood mixture with m parts; columns of the rows have variance 1.

    The EM algorithm, accelerated by extrapolating two steps to the limit of a geometric sequence;
    an extrapolation that would make the rows less likely is dropped (Varadhan, Roland, "Simple and
    globally convergent methods for accelerating the convergence of any EM algorithm", 2008).
    """
    clean = _initialize(Y, noise, m, rng)
    best = -np.inf
    for _ in range(_MAX_CYCLES):
        once, _ = _em_step(Y, noise, clean)
        twice, at_once = _em_step(Y, noise, once)
        beyond, at_far = _em_step(Y, noise, _extrapolate(clean, once, twice))
        clean, reached = (beyond, at_far) if at_far >= at_once else (twice, at_once)
        if reached - best < _MIN_GAIN:
            break
        best = reached
    return clean


def draw_records(
    Y: Floats, noise: list[NoiseParts], clean: CleanDistribution, rng: np.random.Generator
) -> Floats:
    """Draw one record for each row, from its distribution given the row."""
    X = np.empty_like(Y)
    for rows in _split_blocks(len(Y), noise, clean):
        columns = _evaluate_columns(Y[rows], noise, clean)
        part = _draw_places(_compute_probabilities(columns, clean)[0].T, rng)  # (rows,)
        each = np.arange(len(part))
        for j, column in enumerate(columns):
            q = _draw_places(column.probability[part, each], rng)
            gap = column.shrinkage[part, q] * (column.gap[part, each] - noise[j].shift[q])
            deviation = np.sqrt(column.variance[part, q]) * rng.standard_normal(len(part))
            X[rows, j] = clean.mean[part, j] + gap + deviation
    return X


def _initialize(
    Y: Floats, noise: list[NoiseParts], m: int, rng: np.random.Generator
) -> CleanDistribution:
    """Return the clusters of the rows, shrunk by the variance that the noise adds."""
    found = fit_plain_kmeans(Y, m, rng, n_init=_KMEANS_STARTS)
    centres, labels = found.cluster_centers_, found.labels_
    added = np.array([part.share @ (part.variance + part.shift**2) for part in noise])
    left = np.clip(1.0 - added / np.maximum(Y.var(axis=0), 1e-300), 0.05, 1.0)  # (s,)
    gaps = (Y - centres[labels]) ** 2
    count = np.bincount(labels, minlength=m) + 1.0
    inside = np.array([np.bincount(labels, gap, m) for gap in gaps.T]).T / count[:, None]
    centre = Y.mean(axis=0)
    return CleanDistribution(
        count / count.sum(),
        centre + (centres - centre) * np.sqrt(left),
        np.clip(inside * left, _MIN_VARIANCE, _MAX_VARIANCE),
    )


def _em_step(
    Y: Floats, noise: list[NoiseParts], clean: CleanDistribution
) -> tuple[CleanDistribution, float]:
    """Return the result of one EM step, and the log likelihood of the rows before it."""
    count, total = np.zeros(len(clean.share)), 0.0
    first, second = np.zeros_like(clean.mean), np.zeros_like(clean.mean)
    for rows in _split_blocks(len(Y), noise, clean):
        columns = _evaluate_columns(Y[rows], noise, clean)
        probabilities, likelihood = _compute_probabilities(columns, clean)  # (m, rows)
        total += likelihood
        count += probabilities.sum(axis=1)
        for j, column in enumerate(columns):
            powers = np.stack(
                [probabilities, probabilities * column.gap, probabilities * column.gap**2], axis=1
            )
            zero, one, two = (powers @ column.probability).transpose(1, 0, 2)  # (m, q) each
            shift, shrinkage = noise[j].shift, column.shrinkage
            first[:, j] += (shrinkage * (one - shift * zero)).sum(axis=1)
            squares = two - 2.0 * shift * one + shift**2 * zero
            second[:, j] += (shrinkage**2 * squares + column.variance * zero).sum(axis=1)
    first, second = first / count[:, None], second / count[:, None]
    return _clip_parameters(count / len(Y), clean.mean + first, second - first**2), total


def _clip_parameters(share: Floats, mean: Floats, variance: Floats) -> CleanDistribution:
    share = np.maximum(share, _MIN_SHARE)
    variance = np.clip(variance, _MIN_VARIANCE, _MAX_VARIANCE)
    return CleanDistribution(share / share.sum(), mean, variance)


def _extrapolate(
    clean: CleanDistribution, once: CleanDistribution, twice: CleanDistribution
) -> CleanDistribution:
    origin, first, second = (_flatten(each) for each in (clean, once, twice))
    step = first - origin
    bend = second - first - step
    size = float(np.linalg.norm(bend))
    if size == 0.0:
        return twice
    length = min(max(float(np.linalg.norm(step)) / size, 1.0), _MAX_STEP_LENGTH)
    ahead = origin + 2.0 * length * step + length**2 * bend
    m, s = clean.mean.shape
    share, mean, variance = np.split(ahead, [m, m + m * s])
    share = np.exp(share - share.max())
    variance = np.exp(np.minimum(variance, 10.0))  # cannot overflow
    return _clip_parameters(share / share.sum(), mean.reshape(m, s), variance.reshape(m, s))


def _flatten(clean: CleanDistribution) -> Floats:
    logs = np.log(clean.share), np.log(clean.variance).ravel()
    return np.concatenate([logs[0], clean.mean.ravel(), logs[1]])


def _split_blocks(n: int, noise: list[NoiseParts], clean: CleanDistribution) -> Iterator[slice]:
    most = max(len(part.share) for part in noise)
    size = max(1, _BLOCK_CELLS // (len(clean.share) * most))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _evaluate_columns(
    Y: Floats, noise: list[NoiseParts], clean: CleanDistribution
) -> list[_Column]:
    return [
        _evaluate_column(Y[:, j], part, clean.mean[:, j], clean.variance[:, j])
        for j, part in enumerate(noise)
    ]


def _evaluate_column(y: Floats, noise: NoiseParts, mean: Floats, variance: Floats) -> _Column:
    both = variance[:, None] + noise.variance  # (m, q)
    gap = y - mean[:, None]  # (m, rows)
    density = (gap[:, :, None] - noise.shift) ** 2  # (m, rows, q)
    density *= (-0.5 / both)[:, None]
    density += (np.log(noise.share) - 0.5 * np.log(2.0 * np.pi * both))[:, None]
    top = density.max(axis=2)
    density -= top[:, :, None]
    probability = np.exp(density, out=density)
    total = probability.sum(axis=2)
    probability /= total[:, :, None]
    shrinkage = variance[:, None] / both
    return _Column(np.log(total) + top, gap, probability, shrinkage, shrinkage * noise.variance)


def _compute_probabilities(
    columns: list[_Column], clean: CleanDistribution
) -> tuple[Floats, float]:
    """Return probabilities of the parts given each row, (m, rows), and the log likelihood."""
    joint = np.log(clean.share)[:, None] + sum(column.log_density for column in columns)
    top = joint.max(axis=0)
    probabilities = np.exp(joint - top)
    total = probabilities.sum(axis=0)
    return probabilities / total, float(np.sum(np.log(total) + top))


def _draw_places(probability: Floats, rng: np.random.Generator) -> Ints:
    """Draw one place for each row, by its probabilities."""
    reach = probability.cumsum(axis=1)
    place = (reach < rng.random((len(probability), 1)) * reach[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(place, probability.shape[1] - 1))

"""Filter noise by the correlations of columns: keep the directions in which they vary together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import KnownNoise, read_noise
from ppdm_core.attacks.shrinkage import covariance
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.numerics.linear_map import (
    compute_components,
    get_centre_and_loadings,
    has_map,
    invert,
)

MAX_CONSECUTIVE_COUNT = 20  # all counts up to here, then each about a fifth larger
COUNT_GROWTH = 1.2
MAX_CANDIDATE_BYTES = 2**30  # of all counts together: fewer of them on a very large table


@dataclass(frozen=True)
class CorrelationFilter(Attack):
    """An analyst knows the noise level and filters the release by its principal components.

    The release is first put back into the original columns. All estimates are clipped to the
    declared bounds. Candidates:
    ``keep_<count>`` keeps so many principal components of the records, whose covariance is that
    of the release less that of the noise; all counts up to 20, beyond that a geometric series,
    and only such a series where all estimates would take more than 1 GB;
    ``marchenko_pastur`` counts the components that exceed what noise alone would show, in units of
    the noise;
    ``shrunk`` keeps the same ones and shrinks each by its share of noise, which is the best that
    any filter of singular values can do.

    The counts are an oracle's choice; the other two need the noise level only. Noise without a
    variance is cut off at the bounds before the components are taken, and has the counts alone.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), the correlation attack; Huang, Du,
    Chen (2005), PCA-DR; Kargupta, Datta, Wang, Sivakumar (2003), spectral filtering; Gavish,
    Donoho (2017), for the shrinkage.
    """

    name: ClassVar[str] = "correlation_filter"
    story: ClassVar[str] = (
        "An analyst who knows the noise level keeps what the columns have in common."
    )
    title: ClassVar[str] = "Filters noise by correlations"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"public.noise"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85, "slight noise": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        low, high = view.schema.lows, view.schema.highs
        noise = read_noise(view.public)
        Y, back = self._noisy_records(view, noise)
        if noise.has_variance:
            N = (back.T * noise.variance) @ back
            estimates = {**dict(keep_leading(Y, N, N, min(back.shape))), **filter_spectrum(Y, N)}
        else:
            N = (back.T * noise.scales**2) @ back
            estimates = dict(
                keep_leading(np.clip(Y, low, high), N, np.zeros_like(N), min(back.shape))
            )
        return Estimate({name: np.clip(X_hat, low, high) for name, X_hat in estimates.items()})

    def _noisy_records(self, view: AttackerView, noise: KnownNoise) -> tuple[Floats, Floats]:
        """Return the release in original columns, and the map (s, d) of its noise into them."""
        if has_map(view.public):
            back = np.asarray(np.linalg.pinv(get_centre_and_loadings(view.public)[1]), np.float64)
            return invert(view.public, compute_components(view)), back
        if view.public.space == "original" and len(noise.scales) == view.Y.shape[1]:
            return view.Y, np.eye(view.Y.shape[1])
        raise NotApplicable(
            f"The attack {self.name} needs the original columns or a way back to them."
        )


def choose_counts(rank: int, most: int) -> list[int]:
    """Return every count up to 20, then a geometric series, and ``rank``; about ``most`` in all."""
    found = list(range(1, min(rank, MAX_CONSECUTIVE_COUNT) + 1))
    while found[-1] < rank:
        found.append(min(rank, round(found[-1] * COUNT_GROWTH)))
    if len(found) <= most:
        return found
    return sorted({round(count) for count in np.geomspace(1, rank, max(most, 2)).tolist()})


def keep_leading(Y: Floats, N: Floats, excess: Floats, rank: int) -> Iterator[tuple[str, Floats]]:
    """Yield Y with only its leading components, for one count after the other.

    ``excess`` is subtracted from the covariance. A row is projected along what noise of covariance
    ``N`` would most likely have added, which is at right angles if it is alike everywhere.
    """
    mean, (Q, deviation) = Y.mean(axis=0), find_noise_directions(N)
    flat = Q / deviation  # (d, r)
    V = Q @ decompose_symmetric(Q.T @ (covariance(Y) - excess) @ Q)[1][:, ::-1]  # strongest first
    white, seen = (Y - mean) @ flat, flat.T @ V  # (n, r), (r, r)
    for count in choose_counts(rank, MAX_CANDIDATE_BYTES // max(Y.nbytes, 1)):
        onto = np.linalg.pinv(seen[:, :count]).T @ V[:, :count].T  # (r, d)
        yield f"keep_{count}", mean + white @ onto


def filter_spectrum(Y: Floats, N: Floats) -> dict[str, Floats]:
    """Keep the components above the edge of pure noise, with and without shrinkage."""
    mean = Y.mean(axis=0)
    Q, deviation = find_noise_directions(N)
    flat, back = Q / deviation, (Q * deviation).T  # to units of the noise, and back
    values, V = decompose_symmetric(flat.T @ covariance(Y) @ flat)
    factors = spectral_factors(values, len(Y))
    scores = (Y - mean) @ flat @ V
    return {
        name: mean + (scores * factor) @ V.T @ back
        for name, factor in (("marchenko_pastur", factors > 0), ("shrunk", factors))
    }


def spectral_factors(values: Floats, n: int) -> Floats:
    """Return the factor of each component; ``values`` are variances in units of the noise.

    Noise alone stays below (1 + sqrt(ratio))^2, where the ratio is that of columns to rows. Above
    it, the best factor is sqrt((v - 1 - ratio)^2 - 4 ratio) / v.
    """
    ratio = len(values) / max(n - 1, 1)
    square = (values - 1.0 - ratio) ** 2 - 4.0 * ratio
    out = values > (1.0 + np.sqrt(ratio)) ** 2
    return np.where(out, np.sqrt(np.maximum(square, 0.0)) / np.where(out, values, 1.0), 0.0)


def find_noise_directions(N: Floats) -> tuple[Floats, Floats]:
    """Return orthonormal directions (d, r) in which noise of covariance N is independent.

    The second array holds its standard deviation in each direction.
    """
    values, V = decompose_symmetric(N)
    there = values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    return V[:, there], np.sqrt(values[there])

"""Filter noise by the correlations of columns: keep the directions in which they vary together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import KnownNoise, read_noise
from ppdm_core.attacks.shrinkage import covariance
from ppdm_core.model.arrays import Bools, Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows, RowMap
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.numerics.linear_map import (
    convert_to_components,
    get_centre_and_loadings,
    has_map,
    invert,
)

MAX_CONSECUTIVE_COUNT = 20  # all counts up to here, then each about a fifth larger
COUNT_GROWTH = 1.2


@dataclass(frozen=True)
class CorrelationFilter(Attack):
    """An analyst knows the noise level and filters the release by its principal components.

    The release is first put back into the original columns. All estimates are clipped to the
    declared bounds. Candidates:
    ``keep_<count>`` keeps so many principal components of the records, whose covariance is that
    of the release less that of the noise; all counts up to 20, beyond that a geometric series;
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
        read, back = self._noisy_records(view, noise)
        if noise.has_variance:
            N = (back.T * noise.variance) @ back
            Y = read(view.Y)
            maps = {**dict(keep_leading(Y, N, N, min(back.shape))), **filter_spectrum(Y, N)}
        else:
            N = (back.T * noise.scales**2) @ back
            read = partial(_clip_rows, read, low, high)
            maps = dict(keep_leading(read(view.Y), N, np.zeros_like(N), min(back.shape)))

        def map_rows(estimate: RowMap, Y: Floats) -> Floats:
            return np.clip(estimate(read(Y)), low, high)

        return Estimate(
            MappedRows(view.Y, {name: partial(map_rows, each) for name, each in maps.items()})
        )

    def _noisy_records(self, view: AttackerView, noise: KnownNoise) -> tuple[RowMap, Floats]:
        """Return the map of rows into original columns, and that (s, d) of their noise."""
        public = view.public
        if has_map(public):
            back = np.asarray(np.linalg.pinv(get_centre_and_loadings(public)[1]), np.float64)
            return lambda Y: invert(public, convert_to_components(public, Y)), back
        if public.space == "original" and len(noise.scales) == view.Y.shape[1]:
            return lambda Y: Y, np.eye(view.Y.shape[1])
        raise NotApplicable(
            f"The attack {self.name} needs the original columns or a way back to them."
        )


def _clip_rows(read: RowMap, low: Floats, high: Floats, Y: Floats) -> Floats:
    """Return the rows in original columns, cut off at the bounds."""
    return np.clip(read(Y), low, high)


def choose_counts(rank: int) -> list[int]:
    """Return every count up to 20, then a geometric series, and ``rank``."""
    found = list(range(1, min(rank, MAX_CONSECUTIVE_COUNT) + 1))
    while found[-1] < rank:
        found.append(min(rank, round(found[-1] * COUNT_GROWTH)))
    return found


def keep_leading(Y: Floats, N: Floats, excess: Floats, rank: int) -> Iterator[tuple[str, RowMap]]:
    """Yield functions that keep the leading components of Y, for one count after the other.

    ``excess`` is subtracted from the covariance. A row is projected along what noise of covariance
    ``N`` would most likely have added, which is at right angles if it is alike everywhere.
    """
    mean, (Q, deviation) = Y.mean(axis=0), find_noise_directions(N)
    flat = Q / deviation  # (d, r)
    V = Q @ decompose_symmetric(Q.T @ (covariance(Y) - excess) @ Q)[1][:, ::-1]  # strongest first
    seen = flat.T @ V  # (r, r)
    for count in choose_counts(rank):
        onto = np.linalg.pinv(seen[:, :count]).T @ V[:, :count].T  # (r, d)
        yield f"keep_{count}", partial(_project_rows, mean, flat, onto)


def _project_rows(mean: Floats, flat: Floats, onto: Floats, Y: Floats) -> Floats:
    """Project rows (n, d) to units of the noise, and onto some components."""
    projected: Floats = mean + (Y - mean) @ flat @ onto
    return projected


def filter_spectrum(Y: Floats, N: Floats) -> dict[str, RowMap]:
    """Keep the components above the edge of pure noise, with and without shrinkage."""
    mean = Y.mean(axis=0)
    Q, deviation = find_noise_directions(N)
    flat, back = Q / deviation, (Q * deviation).T  # to units of the noise, and back
    values, V = decompose_symmetric(flat.T @ covariance(Y) @ flat)
    factors = spectral_factors(values, len(Y))

    def scale_scores(factor: Floats | Bools, Y: Floats) -> Floats:
        scaled: Floats = mean + ((Y - mean) @ flat @ V * factor) @ V.T @ back
        return scaled

    return {
        name: partial(scale_scores, factor)
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

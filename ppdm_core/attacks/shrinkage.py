"""Filter out the noise by what is published about it, then invert the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import KnownNoise, read_noise
from ppdm_core.attacks._posterior_mean import (
    MAX_FITTED_ROWS,
    KernelPrior,
    choose_rows,
    fit_prior,
    grid_posterior,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows, RowMap
from ppdm_core.model.policy import Effort
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.numerics.linear_map import (
    compute_components,
    convert_to_components,
    get_centre_and_loadings,
    invert,
    project,
)

MAX_SUPPORT_RECORDS: dict[Effort, int] = {"quick": 100, "standard": 250, "thorough": 1_000}
SUPPORT_ROUNDS = 3  # in which a prior improves its own support


@dataclass(frozen=True)
class Shrinkage(Attack):
    """A statistician who reads the documentation knows how much of each value is noise.

    Candidates, all clipped to the declared bounds. Linear minimum mean square error estimates,
    where the noise has a variance:
    ``per_component`` multiplies each centred component by max(0, 1 - noise / variance);
    ``joint`` uses the covariance of the released components (a Wiener filter);
    ``sample_prior`` takes mean and covariance from a sample of the same population, and so also
    estimates the dropped directions.

    Posterior means under the distribution of the noise itself, whatever the shape of the data:
    ``grid_prior`` deconvolves each component on its own;
    ``own_prior`` takes filtered rows of the release as the support of a joint prior, and weighs
    them so that the release becomes likeliest;
    ``sample_support`` has the sample itself as that support.

    These priors have at most 100, 250 or 1,000 support records (quick, standard, thorough) and are
    fitted on at most 1,000 rows drawn at random. Every row is estimated.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), on filtering; their filter
    needs an oracle, this one does not. Huang, Du, Chen (2005), the Bayes estimate, there for
    normal data and noise.
    """

    name: ClassVar[str] = "shrinkage"
    story: ClassVar[str] = "A statistician filters the noise out with its published scale."
    title: ClassVar[str] = "Filters noise by its scale"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"public.map", "public.noise"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85, "slight noise": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        Z, noise, public = compute_components(view), read_noise(view.public), view.public
        low, high = view.schema.lows, view.schema.highs
        maps: dict[str, RowMap] = {
            name: partial(_invert_filtered, public, filter_rows)
            for name, filter_rows in self._filters(view, Z, noise, rng).items()
        }
        if view.sample is not None and len(view.sample) > 1:
            if noise.has_variance:
                centre, loadings = get_centre_and_loadings(public)
                linear = filter_with_sample(noise.variance, centre, loadings, view.sample)
                maps["sample_prior"] = linear
            maps["sample_support"] = estimate_with_sample_support(view, Z, noise, rng)

        def map_rows(estimate: RowMap, Y: Floats) -> Floats:
            return np.clip(estimate(convert_to_components(public, Y)), low, high)

        return Estimate(
            MappedRows(view.Y, {name: partial(map_rows, each) for name, each in maps.items()})
        )

    def _filters(
        self, view: AttackerView, Z: Floats, noise: KnownNoise, rng: np.random.Generator
    ) -> dict[str, RowMap]:
        """Return estimates of the clean components by name, as functions of noisy ones."""
        found = {"grid_prior": estimate_with_grid_prior(Z, noise, find_score_ranges(view))}
        support: RowMap = found["grid_prior"]
        if noise.has_variance:
            found["per_component"] = shrink_components(Z, noise.variance)
            found["joint"] = filter_jointly(Z, noise.variance)
            support = stretch_to_covariance(found["joint"], Z, noise.variance)
        found["own_prior"] = estimate_with_own_prior(
            Z, noise, support, MAX_SUPPORT_RECORDS[view.effort], rng
        )
        return found


def _invert_filtered(public: PublicParameters, filter_rows: RowMap, Z: Floats) -> Floats:
    """Filter the noise out of components, and map them back."""
    return invert(public, filter_rows(Z))


def shrink_components(Z: Floats, noise: Floats) -> RowMap:
    """Return a function that shrinks each centred component by its own share of noise."""
    mean = Z.mean(axis=0)
    variance = np.diag(covariance(Z))
    kept = np.maximum(variance - noise, 0.0)
    factor = np.divide(kept, variance, out=np.zeros_like(kept), where=variance > 0)
    return lambda Z: mean + (Z - mean) * factor  # (n, s)


def filter_jointly(Z: Floats, noise: Floats) -> RowMap:
    """Return a Wiener filter with the covariance of the released components."""
    mean = Z.mean(axis=0)
    signal = _positive_part(covariance(Z) - np.diag(noise))
    gain = np.linalg.pinv(signal + np.diag(noise), hermitian=True) @ signal  # (s, s)
    return lambda Z: mean + (Z - mean) @ gain  # (n, s)


def filter_with_sample(noise: Floats, centre: Floats, loadings: Floats, sample: Floats) -> RowMap:
    """Return the filter with mean and covariance of the sample."""
    moments = sample.mean(axis=0), _regular_covariance(sample)
    return filter_with_moments(noise, centre, loadings, *moments)


def filter_with_moments(
    noise: Floats, centre: Floats, loadings: Floats, mean: Floats, S: Floats
) -> RowMap:
    """Return z -> mu + S A (A^T S A + N)^-1 (z - A^T (mu - c)); ``S`` is the covariance, (d, d)."""
    SA = S @ loadings  # (d, s)
    seen = loadings.T @ SA + np.diag(noise)  # (s, s)
    gain = np.linalg.pinv(seen, hermitian=True) @ SA.T  # (s, d)
    return lambda Z: mean + (Z - (mean - centre) @ loadings) @ gain  # (n, d)


def estimate_with_grid_prior(Z: Floats, noise: KnownNoise, box: Floats) -> RowMap:
    """Deconvolve each component; ``box`` (s, 2) holds the range of the clean components."""
    parts = [KnownNoise(noise.distribution, noise.scales[i : i + 1]) for i in range(Z.shape[1])]
    found = [
        grid_posterior(z, low, high, part)
        for z, (low, high), part in zip(Z.T, box.tolist(), parts, strict=True)
    ]
    return lambda Z: np.stack([f(z) for f, z in zip(found, Z.T, strict=True)], axis=1)


def estimate_with_own_prior(
    Z: Floats, noise: KnownNoise, support: RowMap, most: int, rng: np.random.Generator
) -> RowMap:
    """Return posterior means with a prior carried by filtered rows of the release.

    At most half of the rows carry it, so that others are left to judge it by; ``support`` filters
    them. Estimates of the support by the prior that it carries are a sharper support; the likeliest
    of a few such rounds is taken.
    """
    rows = choose_rows(Z, len(Z), rng)
    m = min(most, (len(rows) + 1) // 2)
    judges = Z[rows[m : m + MAX_FITTED_ROWS]] if m < len(rows) else Z
    T, tried = support(Z)[rows[:m]], []
    for _ in range(SUPPORT_ROUNDS):
        tried.append(fit_prior(KernelPrior(T, T, noise), judges, weigh=True))
        T = tried[-1].posterior_mean(Z[rows[:m]])
    return max(tried, key=lambda one: one.log_likelihood(judges)[0]).posterior_mean


def estimate_with_sample_support(
    view: AttackerView, Z: Floats, noise: KnownNoise, rng: np.random.Generator
) -> RowMap:
    """Return posterior means with a prior carried by the attacker's sample."""
    assert view.sample is not None
    X = view.sample[choose_rows(view.sample, MAX_SUPPORT_RECORDS[view.effort], rng)]
    prior = KernelPrior(project(view.public, X), X, noise)
    return fit_prior(prior, Z[choose_rows(Z, MAX_FITTED_ROWS, rng)], weigh=False).posterior_mean


def stretch_to_covariance(filter_rows: RowMap, Z: Floats, noise: Floats) -> RowMap:
    """Stretch filtered rows to the covariance of the clean ones, because they vary too little."""
    T_hat = filter_rows(Z)
    S = _positive_part(covariance(Z) - np.diag(noise))
    values, vectors = decompose_symmetric(covariance(T_hat))
    is_informative = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
    flat = vectors[:, is_informative] / np.sqrt(values[is_informative])  # (s, r) whitens
    back = vectors[:, is_informative] * np.sqrt(values[is_informative])
    V, squares = decompose_symmetric(flat.T @ S @ flat)[::-1]
    stretch = (V * np.sqrt(np.maximum(squares, 0.0))) @ V.T  # (r, r) the least change that does
    mean = T_hat.mean(axis=0)
    return lambda Z: mean + (filter_rows(Z) - mean) @ flat @ stretch @ back.T


def find_score_ranges(view: AttackerView) -> Floats:
    """Return least and largest component of any record within the declared bounds, (s, 2)."""
    centre, loadings = get_centre_and_loadings(view.public)
    schema: Schema = view.schema
    ends = [(end - centre)[:, None] * loadings for end in (schema.lows, schema.highs)]  # (d, s)
    return np.stack([np.minimum(*ends).sum(axis=0), np.maximum(*ends).sum(axis=0)], axis=1)


def covariance(X: Floats) -> Floats:
    """Return the sample covariance of the columns, (d, d)."""
    centred = X - X.mean(axis=0)
    S: Floats = centred.T @ centred / max(len(X) - 1, 1)
    return S


def _regular_covariance(sample: Floats) -> Floats:
    """Return the covariance, shrunk towards its diagonal if records are few."""
    S = covariance(sample)
    p, d = sample.shape
    if p > d:
        return S
    weight = d / (d + 4.0 * p)  # too few records for a full matrix: lean towards the diagonal
    regular: Floats = (1.0 - weight) * S + np.diag(weight * np.diag(S))
    return regular


def _positive_part(S: Floats) -> Floats:
    """Return the matrix with its negative eigenvalues set to 0."""
    values, vectors = decompose_symmetric(S)
    positive: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive

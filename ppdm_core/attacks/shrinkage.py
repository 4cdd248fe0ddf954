"""Filter the noise out by what is published about it, then undo the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.attacks._needs import check_needs
from ppdm_core.public_map import centre_and_loadings, components_of, invert, noise_variance
from ppdm_core.types import AttackerView, Estimate, Floats


@dataclass(frozen=True)
class Shrinkage:
    """A statistician who reads the documentation knows how much of each value is noise.

    Candidates, all linear minimum mean square error estimates clipped to the declared bounds:
    ``per_component`` multiplies each centred component by max(0, 1 - noise / variance);
    ``joint`` uses the covariance of the released components (a Wiener filter);
    ``sample_prior`` takes mean and covariance from a sample of the same population, and so also
    guesses the dropped directions.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), on filtering; their filter
    needs an oracle, this one does not.
    """

    name: ClassVar[str] = "shrinkage"
    story: ClassVar[str] = "A statistician filters the noise out with its published scale."
    goal: ClassVar[Literal["reconstruct", "link"]] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"public.map", "public.noise"})

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        Z = components_of(view)
        noise = noise_variance(view.public)
        estimates = {
            "per_component": invert(view.public, per_component(Z, noise)),
            "joint": invert(view.public, joint(Z, noise)),
        }
        if view.sample is not None and len(view.sample) > 1:
            centre, loadings = centre_and_loadings(view.public)
            estimates["sample_prior"] = sample_prior(Z, noise, centre, loadings, view.sample)
        low, high = view.schema.lows, view.schema.highs
        return Estimate({name: np.clip(X_hat, low, high) for name, X_hat in estimates.items()})


def per_component(Z: Floats, noise: Floats) -> Floats:
    mean = Z.mean(axis=0)
    variance = np.diag(_covariance(Z))
    kept = np.maximum(variance - noise, 0.0)
    factor = np.divide(kept, variance, out=np.zeros_like(kept), where=variance > 0)
    T_hat: Floats = mean + (Z - mean) * factor  # (n, s)
    return T_hat


def joint(Z: Floats, noise: Floats) -> Floats:
    mean = Z.mean(axis=0)
    signal = _positive_part(_covariance(Z) - np.diag(noise))
    gain = np.linalg.pinv(signal + np.diag(noise), hermitian=True) @ signal  # (s, s)
    T_hat: Floats = mean + (Z - mean) @ gain  # (n, s)
    return T_hat


def sample_prior(
    Z: Floats, noise: Floats, centre: Floats, loadings: Floats, sample: Floats
) -> Floats:
    """mu + S A (A^T S A + N)^-1 (z - A^T (mu - c)), row by row."""
    mean = sample.mean(axis=0)
    S = _regular_covariance(sample)  # (d, d)
    SA = S @ loadings  # (d, s)
    seen = loadings.T @ SA + np.diag(noise)  # (s, s)
    gain = np.linalg.pinv(seen, hermitian=True) @ SA.T  # (s, d)
    X_hat: Floats = mean + (Z - (mean - centre) @ loadings) @ gain  # (n, d)
    return X_hat


def _covariance(X: Floats) -> Floats:
    centred = X - X.mean(axis=0)
    S: Floats = centred.T @ centred / max(len(X) - 1, 1)
    return S


def _regular_covariance(sample: Floats) -> Floats:
    S = _covariance(sample)
    p, d = sample.shape
    if p > d:
        return S
    weight = d / (d + 4.0 * p)  # too few records for a full matrix: lean towards the diagonal
    regular: Floats = (1.0 - weight) * S + np.diag(weight * np.diag(S))
    return regular


def _positive_part(S: Floats) -> Floats:
    values, vectors = np.linalg.eigh(S)
    positive: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive

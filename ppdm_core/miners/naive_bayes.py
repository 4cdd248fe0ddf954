"""Naive Bayes with normal columns, corrected for published noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import (
    Classifier,
    check_parameter,
    find_noise_variance,
    read_noise_variance,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.parameter_checks import is_number
from ppdm_core.model.release import PublicParameters


class NaiveBayes(Classifier):
    """Gaussian naive Bayes with the shares of the classes in the release as prior.

    ``noise_variance``: that of the noise in each released column. Queries have no noise, so it is
    subtracted from the variances within the classes. ``floor``: the variance of a class in a column
    is at least this share of the variance of the complete column; columns that do not vary are
    ignored. Without a floor, a column that is constant within one class decides alone. If noise was
    subtracted, the standard error of the variance is a floor as well.
    """

    def __init__(
        self, *, noise_variance: Sequence[float] | Floats | None = None, floor: float = 0.01
    ) -> None:
        self.noise_variance = noise_variance
        self.floor = floor

    @classmethod
    def from_public(cls, public: PublicParameters, *, floor: float = 0.01) -> Self:
        """Return the miner for the published noise, if it has a variance."""
        return cls(noise_variance=find_noise_variance(public), floor=floor)

    def _check_parameters(self) -> None:
        is_share = is_number(self.floor) and 0 < self.floor <= 1
        check_parameter(is_share, self, "floor", "a share above 0 and at most 1")

    def _learn(self, X: Floats, codes: Ints) -> None:
        noise = read_noise_variance(self, X.shape[1])
        count = np.bincount(codes)
        self._mean = np.array([X[codes == c].mean(axis=0) for c in range(len(count))])
        squares = np.square(X - self._mean[codes])
        inside = np.array([squares[codes == c].mean(axis=0) for c in range(len(count))])
        total = X.var(axis=0)
        least = np.tile(self.floor * total, (len(count), 1))  # (classes, s)
        if noise is not None:
            error = np.array([squares[codes == c].std(axis=0) for c in range(len(count))])
            clean = np.maximum(total - noise, least)
            least = np.maximum(self.floor * clean, error / np.sqrt(count)[:, None])
            inside = inside - noise
        self._varies = total > 0
        self._variance = np.where(self._varies, np.maximum(inside, least), 1.0)
        self._ln_prior = np.log(count / len(codes))

    def _compute_votes(self, X: Floats) -> Floats:
        ln = np.empty((len(X), len(self.classes_)))
        for c, (mean, variance) in enumerate(zip(self._mean, self._variance, strict=True)):
            gap = np.square(X - mean) / variance + np.log(variance)
            ln[:, c] = self._ln_prior[c] - 0.5 * gap[:, self._varies].sum(axis=1)
        votes: Floats = np.exp(ln - ln.max(axis=1, keepdims=True))
        return votes

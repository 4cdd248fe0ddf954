"""Every column of a class is normal and independent of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import Classifier, check, checked_noise, noise_or_none
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.parameter_checks import is_number
from ppdm_core.model.release import Public


class NaiveBayes(Classifier):
    """Gaussian naive Bayes with the classes' shares of the release as prior.

    ``noise_variance``: that of each released column. Queries have none, so it is subtracted from
    the variances within the classes. ``floor``: no class varies less in a column than this share
    of what the whole column varies; columns that do not vary at all do not count. Without such a
    floor a column that is constant within one class decides everything by itself. Where noise was
    subtracted, the standard error of the variance is a floor as well.
    """

    def __init__(
        self, *, noise_variance: Sequence[float] | Floats | None = None, floor: float = 0.01
    ) -> None:
        self.noise_variance = noise_variance
        self.floor = floor

    @classmethod
    def from_public(cls, public: Public, *, floor: float = 0.01) -> Self:
        return cls(noise_variance=noise_or_none(public), floor=floor)

    def _check_parameters(self) -> None:
        is_share = is_number(self.floor) and 0 < self.floor <= 1
        check(is_share, self, "floor", "a share above 0 and at most 1")

    def _learn(self, X: Floats, codes: Ints) -> None:
        noise = checked_noise(self, X.shape[1])
        count = np.bincount(codes)
        self._mean = np.array([X[codes == c].mean(axis=0) for c in range(len(count))])
        squares = np.square(X - self._mean[codes])
        inside = np.array([squares[codes == c].mean(axis=0) for c in range(len(count))])
        whole = X.var(axis=0)
        least = np.tile(self.floor * whole, (len(count), 1))  # (classes, s)
        if noise is not None:
            error = np.array([squares[codes == c].std(axis=0) for c in range(len(count))])
            clean = np.maximum(whole - noise, least)
            least = np.maximum(self.floor * clean, error / np.sqrt(count)[:, None])
            inside = inside - noise
        self._is_varied = whole > 0
        self._variance = np.where(self._is_varied, np.maximum(inside, least), 1.0)
        self._ln_prior = np.log(count / len(codes))

    def _votes(self, X: Floats) -> Floats:
        ln = np.empty((len(X), len(self.classes_)))
        for c, (mean, variance) in enumerate(zip(self._mean, self._variance, strict=True)):
            gap = np.square(X - mean) / variance + np.log(variance)
            ln[:, c] = self._ln_prior[c] - 0.5 * gap[:, self._is_varied].sum(axis=1)
        votes: Floats = np.exp(ln - ln.max(axis=1, keepdims=True))
        return votes

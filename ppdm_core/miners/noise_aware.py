"""What the classes look like without the noise, and which of them a query belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import (
    Classifier,
    check,
    checked_noise,
    is_count,
    noise_or_none,
)
from ppdm_core.miners._normal_groups import class_votes, fitted, posterior, rows_allow
from ppdm_core.miners._voting import stratified_folds
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import Public

_TRIED = 20_000  # rows that settings are tried on
_OWN = (0.0, 1.0)


@dataclass(frozen=True, order=True)
class Setting:
    """In the order of how much it makes of the rows: the first is the simplest."""

    groups: int
    trust: float  # in the rows' covariances: 1 - shrinkage
    own: float  # how much of its shape a group has from its own rows


class NoiseAware(Classifier):
    """Bayes' rule for clean queries, with class densities that the noise is taken out of.

    Each class is a mixture of normal laws, one for each of its groups (clusters of its rows). Noise
    leaves the centre of a group where it was and adds its own variance to the group's covariance,
    so that is subtracted again. The eigenvalues that are left are shrunk to their mean, in units
    of the noise, because sampling errors reach far below zero when the noise is large; and the
    sampling variance of the centre is added. A query has no noise: its class is the one with the
    largest prior times density. Only the variance of the noise is used, not its law.

    How many ``groups`` a class has, how much is shrunk (``shrinkage``, shares) and whether groups
    have shapes of their own is chosen on the release: held-out rows are judged by the densities
    with the noise put back, by the squared error of the class probabilities, and of the settings
    within one standard error of the best the simplest is taken. At most 20,000 rows are tried.

    ``noise_variance``: that of each released column; None if there is no noise. ``prior``: "shares"
    of the classes in the release, for the most correct answers, or "equal", for the best mean over
    the classes.

    **References**: our own. Errors in variables corrected by their known covariance: Carroll,
    Ruppert, Stefanski, Crainiceanu, "Measurement error in nonlinear models" (2006), chapter 5.
    """

    setting_: Setting

    def __init__(
        self,
        *,
        noise_variance: Sequence[float] | Floats | None = None,
        prior: str = "shares",
        groups: Sequence[int] = (1, 2, 4, 8),
        shrinkage: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0),
        folds: int = 5,
    ) -> None:
        self.noise_variance = noise_variance
        self.prior = prior
        self.groups = groups
        self.shrinkage = shrinkage
        self.folds = folds

    @classmethod
    def from_public(cls, public: Public, *, prior: str = "shares") -> Self:
        """Where the noise has no variance (Student's t with nu up to 2), this cannot work."""
        noise = noise_or_none(public)
        if noise is None and public.scales is not None:
            raise NotApplicable(f"The noise of {public.method} has no variance that is known here.")
        return cls(noise_variance=noise, prior=prior)

    def _check_parameters(self) -> None:
        check(self.prior in ("shares", "equal"), self, "prior", '"shares" or "equal"')
        are_counts = len(self.groups) > 0 and all(map(is_count, self.groups))
        check(are_counts, self, "groups", "whole numbers above 0")
        are_shares = len(self.shrinkage) > 0 and all(0 < share <= 1 for share in self.shrinkage)
        check(are_shares, self, "shrinkage", "shares above 0 and at most 1")
        is_split = is_count(self.folds) and self.folds >= 2
        check(is_split, self, "folds", "a whole number of at least 2")

    def _learn(self, X: Floats, codes: Ints) -> None:
        noise = checked_noise(self, X.shape[1])
        deviation = X.std(axis=0) if noise is None else np.sqrt(noise)
        self._unit = np.where(deviation > 0, deviation, 1.0)
        self._noise = 0.0 if noise is None else 1.0
        self._middle = X.mean(axis=0)
        rows = (X - self._middle) / self._unit
        self.setting_ = chosen = self._chosen(rows, codes)
        (self._model,) = fitted(rows, codes, chosen.groups, [chosen.own], self._noise)

    def _votes(self, X: Floats) -> Floats:
        rows = (X - self._middle) / self._unit
        return class_votes(self._model, rows, 1 - self.setting_.trust, self.prior == "equal")

    def _chosen(self, X: Floats, codes: Ints) -> Setting:
        most = rows_allow(codes, X.shape[1])
        counts = sorted({min(count, most) for count in self.groups})
        trust = sorted({1.0 - share for share in self.shrinkage})
        settings = [Setting(g, t, own) for g in counts for own in _OWN for t in trust]
        if len(X) < self.folds:
            return settings[0]
        some = np.random.default_rng(0).permutation(len(X))[:_TRIED]
        fold = stratified_folds(codes[some], self.folds)
        parts = [
            self._losses(X, codes, some[fold != part], some[fold == part], counts, trust)
            for part in range(self.folds)
        ]
        losses = np.hstack(parts)  # (settings, n)
        behind = losses - losses[losses.mean(axis=1).argmin()]
        is_near = behind.mean(axis=1) <= behind.std(axis=1) / np.sqrt(behind.shape[1])
        return min(setting for setting, near in zip(settings, is_near, strict=True) if near)

    def _losses(
        self, X: Floats, codes: Ints, seen: Ints, asked: Ints, counts: list[int], trust: list[float]
    ) -> Floats:
        """(settings, asked) squared errors of the class probabilities of rows not seen."""
        present, own_codes = np.unique(codes[seen], return_inverse=True)
        shrinkage = 1.0 - np.array(trust)
        found = []
        for count in counts:
            for model in fitted(X[seen], own_codes, count, _OWN, self._noise):
                ln = model.ln_joint(X[asked], shrinkage, is_noisy=True, equal=False)
                error = np.zeros((len(trust), len(asked), len(self.classes_)))
                error[:, :, present] = posterior(ln)
                error[:, np.arange(len(asked)), codes[asked]] -= 1.0
                found.append(np.square(error).sum(axis=2))
        return np.vstack(found)

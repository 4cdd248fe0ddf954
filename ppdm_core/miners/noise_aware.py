"""Classification by class densities from which the noise is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ppdm_core.miners._classifier import (
    Classifier,
    check_parameter,
    find_noise_variance,
    read_noise_variance,
)
from ppdm_core.miners._normal_groups import (
    compute_votes,
    count_allowed_groups,
    fit_groups,
    posterior,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.parameter_checks import is_count
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.folds import assign_folds

_MAX_TRIAL_ROWS = 20_000  # for the choice of the setting
_OWN_SHAPE_SHARES = (0.0, 1.0)


@dataclass(frozen=True, order=True)
class Setting:
    """A setting of the model; the order is that of complexity, simplest first."""

    groups: int
    trust: float  # in the covariances of the rows: 1 - shrinkage
    own: float  # share of the shape of a group that comes from its own rows


class NoiseAware(Classifier):
    """Bayes' rule for clean queries, with class densities from which the noise is removed.

    Each class is a mixture of normal distributions, one for each of its groups (clusters of its
    rows). Noise does not change the centre of a group and adds its variance to the covariance of
    the group, so this is subtracted. The remaining eigenvalues are at least their standard errors,
    and are shrunk to their mean, in units of the noise, because sampling errors make them negative
    if the noise is large; and the sampling variance of the centre is added. A query has no noise:
    its class is the one with the largest prior times density. Only the variance of the noise is
    used, not its distribution. A class has fewer groups than asked for if its rows within groups
    would differ by less than the noise alone.

    The number of ``groups`` of a class, the ``shrinkage`` (shares), and whether groups have shapes
    of their own are chosen on the release: held-out rows are judged by the densities with the noise
    added, by the squared error of the class probabilities, and of the settings within one standard
    error of the best, the simplest is used. At most 20,000 rows are used for the choice.

    ``noise_variance``: that of the noise in each released column; None without noise. ``prior``:
    "shares" of the classes in the release, for the highest accuracy, or "equal", for the highest
    mean accuracy over the classes.

    **References**: our own method. Errors in variables corrected by their known covariance:
    Carroll, Ruppert, Stefanski, Crainiceanu, "Measurement error in nonlinear models" (2006),
    chapter 5.
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
    def from_public(cls, public: PublicParameters, *, prior: str = "shares") -> Self:
        """Return the miner; NotApplicable for noise without variance (Student's t, nu up to 2)."""
        noise = find_noise_variance(public)
        if noise is None and public.scales is not None:
            raise NotApplicable(f"The noise of {public.method} has no variance that is known.")
        return cls(noise_variance=noise, prior=prior)

    def _check_parameters(self) -> None:
        check_parameter(self.prior in ("shares", "equal"), self, "prior", '"shares" or "equal"')
        are_counts = len(self.groups) > 0 and all(map(is_count, self.groups))
        check_parameter(are_counts, self, "groups", "whole numbers above 0")
        are_shares = len(self.shrinkage) > 0 and all(0 < share <= 1 for share in self.shrinkage)
        check_parameter(are_shares, self, "shrinkage", "shares above 0 and at most 1")
        is_split = is_count(self.folds) and self.folds >= 2
        check_parameter(is_split, self, "folds", "a whole number of at least 2")

    def _learn(self, X: Floats, codes: Ints) -> None:
        noise = read_noise_variance(self, X.shape[1])
        deviation = X.std(axis=0) if noise is None else np.sqrt(noise)
        self._unit = np.where(deviation > 0, deviation, 1.0)
        self._noise = 0.0 if noise is None else 1.0
        self._centre = X.mean(axis=0)
        rows = (X - self._centre) / self._unit
        self.setting_ = chosen = self._choose_setting(rows, codes)
        (self._model,) = fit_groups(rows, codes, chosen.groups, [chosen.own], self._noise)

    def _compute_votes(self, X: Floats) -> Floats:
        rows = (X - self._centre) / self._unit
        return compute_votes(self._model, rows, 1 - self.setting_.trust, self.prior == "equal")

    def _choose_setting(self, X: Floats, codes: Ints) -> Setting:
        most = count_allowed_groups(codes, X.shape[1])
        counts = sorted({min(count, most) for count in self.groups})
        trust = sorted({1.0 - share for share in self.shrinkage})
        settings = [Setting(g, t, own) for g in counts for own in _OWN_SHAPE_SHARES for t in trust]
        if len(X) < self.folds:
            return settings[0]
        some = np.random.default_rng(0).permutation(len(X))[:_MAX_TRIAL_ROWS]
        fold = assign_folds(codes[some], self.folds, np.random.default_rng(0))
        parts = [
            self._compute_losses(X, codes, some[fold != part], some[fold == part], counts, trust)
            for part in range(self.folds)
        ]
        losses = np.hstack(parts)  # (settings, n)
        excess = losses - losses[losses.mean(axis=1).argmin()]
        is_near = excess.mean(axis=1) <= excess.std(axis=1) / np.sqrt(excess.shape[1])
        return min(setting for setting, near in zip(settings, is_near, strict=True) if near)

    def _compute_losses(
        self,
        X: Floats,
        codes: Ints,
        train_rows: Ints,
        test_rows: Ints,
        counts: list[int],
        trust: list[float],
    ) -> Floats:
        """Return squared errors of the class probabilities of test rows, (settings, test rows)."""
        present, own_codes = np.unique(codes[train_rows], return_inverse=True)
        shrinkage = 1.0 - np.array(trust)
        found = []
        for count in counts:
            for model in fit_groups(
                X[train_rows], own_codes, count, _OWN_SHAPE_SHARES, self._noise
            ):
                ln = model.ln_joint(X[test_rows], shrinkage, is_noisy=True, equal=False)
                error = np.zeros((len(trust), len(test_rows), len(self.classes_)))
                error[:, :, present] = posterior(ln)
                error[:, np.arange(len(test_rows)), codes[test_rows]] -= 1.0
                found.append(np.square(error).sum(axis=2))
        return np.vstack(found)

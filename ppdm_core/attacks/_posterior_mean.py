"""Posterior means under a learned prior: on a grid, or of kernels around support records."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.attacks._noise_likelihood import KnownNoise, log_density
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import RowMap

GRID_POINTS = 100  # of the grid of a prior
MAX_QUANTILES = 500  # of the released values, to fit a prior
EM_ROUNDS = 60
MAX_FITTED_ROWS = 1_000  # to choose a bandwidth and weights
BANDWIDTHS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)


def grid_posterior(z: Floats, low: float, high: float, noise: KnownNoise) -> RowMap:
    """Return the posterior mean of values of a component, under the likeliest grid prior.

    The prior is the nonparametric maximum likelihood estimate by EM, fitted to at most
    ``MAX_QUANTILES`` quantiles of the values; between them the posterior mean is interpolated.
    """
    seen = np.quantile(z, np.linspace(0.0, 1.0, min(len(z), MAX_QUANTILES)))
    ends = np.clip(seen[[0, -1]], low, high)  # the likeliest prior does not reach farther
    grid = np.linspace(ends[0], ends[1], GRID_POINTS)
    F = log_density(noise.distribution, np.subtract.outer(seen, grid) / noise.scales[0])
    F = np.exp(F - F.max(axis=1, keepdims=True))  # (q, g)
    weights = fit_weights(F)
    means = F @ (weights * grid) / (F @ weights)
    return lambda z: np.asarray(np.interp(z, seen, means))


def fit_weights(F: Floats) -> Floats:
    """Return the weights of the columns that make the rows likeliest, by EM from equal ones."""
    weights = np.full(F.shape[1], 1.0 / F.shape[1])
    for _ in range(EM_ROUNDS):
        weights = weights * (F.T @ (1.0 / (F @ weights))) / len(F)
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class KernelPrior:
    """A prior of kernels around support records; ``V`` may hold more than the components ``T``.

    The kernels have ``bandwidth`` squared times the covariance of the support, which is contracted
    so that the mixture keeps its covariance. The kernel of a row is weighed by the noise
    distribution, widened by the kernel; within a kernel the estimate is linear.
    """

    T: Floats  # (m, s) components of the support
    V: Floats  # (m, q) what is wanted of it
    noise: KnownNoise
    bandwidth: float = 0.0
    log_weights: Floats | float = 0.0

    def _prepare(self) -> tuple[KnownNoise, Floats, Floats, Floats]:
        """Return the widened noise, the contracted support (T, V) and the linear gain."""
        h2 = self.bandwidth**2
        t0, v0 = self.T.mean(axis=0), self.V.mean(axis=0)
        dT, dV = self.T - t0, self.V - v0
        freedom = max(len(dT) - 1, 1)
        S = h2 * (dT.T @ dT) / freedom  # (s, s)
        T, V = (at + np.sqrt(1.0 - h2) * off for at, off in ((t0, dT), (v0, dV)))
        gain = np.zeros((T.shape[1], V.shape[1]))
        if self.noise.has_variance:
            seen = S + np.diag(self.noise.variance)
            gain = np.linalg.solve(seen, h2 * (dT.T @ dV) / freedom)
        return self.noise.widen(np.diag(S)), T, V, gain

    def log_likelihood(self, Z: Floats) -> tuple[float, Floats]:
        """Return the mean log likelihood of the rows, and that of each row for each kernel."""
        noise, T, _, _ = self._prepare()
        L = np.concatenate([part for _, part in noise.log_likelihoods(Z, T)])  # (n, m)
        L += self.log_weights
        top = L.max(axis=1, keepdims=True)
        row = top[:, 0] + np.log(np.exp(L - top).sum(axis=1))
        return float(row.mean() - np.log(noise.scales).sum()), L - top

    def posterior_mean(self, Z: Floats) -> Floats:
        """Return the posterior mean of ``V`` for each row, (n, q)."""
        noise, T, V, gain = self._prepare()
        found = Z @ gain  # (n, q)
        rest = V - T @ gain
        for rows, L in noise.log_likelihoods(Z, T):
            L += self.log_weights
            L -= L.max(axis=1, keepdims=True)
            np.exp(L, out=L)
            L /= L.sum(axis=1, keepdims=True)
            found[rows] += L @ rest
        return np.asarray(found)


def fit_prior(mixture: KernelPrior, Z: Floats, *, weigh: bool) -> KernelPrior:
    """Return the prior with the bandwidth under which ``Z`` is likeliest.

    With ``weigh`` the weights of the support are fitted, too.
    """
    tried = [replace(mixture, bandwidth=h) for h in BANDWIDTHS]
    best = max(tried, key=lambda one: one.log_likelihood(Z)[0])
    if not weigh:
        return best
    weights = fit_weights(np.exp(best.log_likelihood(Z)[1]))
    return replace(best, log_weights=np.log(np.maximum(weights, 1e-12)))


def choose_rows(Z: Floats, most: int, rng: np.random.Generator) -> Ints:
    """Return at most ``most`` row positions at random, independent of the order of the table."""
    order = np.lexsort(Z.T)
    return np.asarray(order[rng.permutation(len(Z))[:most]])

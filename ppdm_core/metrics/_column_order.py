"""A secret order of cosine coefficients: what an inverse transform gives with and without it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._release import check_one_row_each
from ppdm_core.metrics.interval_privacy import IntervalPrivacy
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.model.release import PART
from ppdm_core.numerics.linear_map import has_map


@dataclass(frozen=True, eq=False)
class OrderedColumns:
    """Rows of coefficients whose columns have a secret order, and the records behind them."""

    X: Floats  # (n, d)
    Y: Floats  # (n, K)
    origin: Floats  # (d,)
    loadings: Floats  # (d, K) of the coefficients in their true order
    positions: Ints  # (m,) column at each place of the sequence
    places: Ints  # (d,) of the records' columns among all m columns

    @classmethod
    def from_comparison(cls, name: str, comparison: ReleaseComparison) -> OrderedColumns:
        """Read the transform and the true order; raise NotApplicable if there is none."""
        public, facts = comparison.public, comparison.public.facts
        steward = public if has_map(public) else comparison.steward_map
        if "DCT-II" not in str(facts.get("transform", "")) or steward is None:
            raise NotApplicable(
                f"{name} needs cosine coefficients in a secret order.",
                reason=Reason.METHOD_UNKNOWN,
            )
        check_one_row_each(name, comparison)
        assert steward.centre is not None and steward.loadings is not None
        positions = np.array(str(facts["transform_order"]).split(), dtype=np.int64) - 1
        d = comparison.X.shape[1]
        part = str(facts.get(PART, "")).split()
        places = np.array(part, dtype=np.int64) - 1 if part else np.arange(d)
        return cls(comparison.X, comparison.Y, steward.centre, steward.loadings, positions, places)

    @property
    def most(self) -> int:
        """The largest number of columns that an attacker takes into account."""
        return 2 * len(self.positions)

    def measure(self, X_hat: Floats) -> float:
        """Return the width of the central 95 % of the errors."""
        return IntervalPrivacy().measure(self.X, X_hat, np.ptp(self.X, axis=0), 0.0)

    def invert_in_true_order(self) -> Floats:
        """Return the inverse transform with the pruned coefficients at zero."""
        return np.asarray(self.origin + self.Y @ self.loadings.T)

    def invert_in_guessed_order(self, rng: np.random.Generator) -> Floats:
        """Return the inverse transform of a guessed number of columns in guessed places."""
        from scipy.fft import idct

        n, K = self.Y.shape
        m, guessed = len(self.positions), int(rng.integers(K, self.most + 1))
        C = np.zeros((n, max(guessed, m)))
        C[:, rng.permutation(guessed)[:K]] = self.Y
        T = np.zeros((n, m))
        found = idct(C[:, :guessed], type=2, norm="ortho", axis=1)[:, :m]
        T[:, : found.shape[1]] = found
        X_hat = np.empty((n, m))
        X_hat[:, self.positions] = T
        return X_hat[:, self.places] + self.origin

    def count_guesses(self) -> float:
        """Return the decimal logarithm of the number of column counts and orders to try."""
        K = self.Y.shape[1]
        logs = [math.lgamma(i + 1) - math.lgamma(i - K + 1) for i in range(K, self.most + 1)]
        return float(np.logaddexp.reduce(logs) / math.log(10))

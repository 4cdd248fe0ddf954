"""K-means that corrects for published noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from ppdm_core.miners._classifier import check_parameter, read_rows
from ppdm_core.miners._clean_distribution import (
    CleanDistribution,
    draw_records,
    fit_clean_distribution,
)
from ppdm_core.miners._noise_mixture import NoiseParts, fit_noise_parts
from ppdm_core.miners._plain_kmeans import fit_plain_kmeans
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.parameter_checks import is_count, is_number
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.linear_map import has_noise, noise_variance
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS, find_distribution

_MODEL_ROWS = 5_000, 20_000  # that the model is fitted to: minimum and maximum
_MODEL_CELLS = 500_000  # rows times columns times parts, in between
_MIN_DRAWN_RECORDS = 10_000  # that are clustered


class KMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters of the records behind released rows, instead of clusters of the rows.

    Rows are Y = X + N, with independent noise N of a published distribution. The target is the
    result of plain K-means on the clean table: the centres c that minimise F(c) = sum over records
    of min_i |x - c_i|^2, and the inertia F(c). K-means on the rows differs for two reasons:

    * **Inertia.** If every row were assigned to the centre of its record, the sum of squared
      distances would be larger by n tr V, with V the covariance of the noise, minus k tr V that the
      k centres absorb by following the noise: (n - k) tr V.
    * **Selection.** But rows are assigned after the noise is added. Rows that the noise moves over
      a border count for the other side: centres move away from the borders, and the inertia grows
      by less than (n - k) tr V. Subtracting this can give a value below zero. For one column and
      Laplace noise of scale b the exact value for fixed centres is E F = E F_rows - 2 n b^2 +
      2 n b^2 * sum over borders of (distance of the two centres) * (density of rows there).

    Both are corrected at once, by the distribution of X given Y. The records are modelled as a
    mixture of ``parts`` normal distributions with independent columns, fitted by maximum likelihood
    through the noise (EM; the noise enters as a mixture of normal distributions with its variance,
    and with tail probabilities that are right to 0.0002 for Laplace and 0.02 for all
    distributions). Then each row is replaced by a record drawn from the distribution of the record
    given the row, several times for small tables, and plain K-means of these gives centres and
    inertia (divided by the number of draws). If the mixture is right, the drawn records have the
    distribution of the clean ones, for any centres. If it is wrong, the error shrinks with the
    noise: as the noise vanishes the drawn records become the rows, and without noise this is plain
    K-means.

    Limits: information that the noise has removed cannot be recovered. Even with known centres the
    squares of the noise vary: the inertia has at least about the standard error sqrt(n * sum over
    columns of (fourth moment of the noise - its variance^2)), which may be more than the inertia of
    tight clusters. Clusters that are closer than the width of the noise need thousands of rows, and
    skewed clusters need more than one normal part each (raise ``parts``).

    **Parameters**: ``law``, ``scales`` (one for each column, or one for all) and ``nu`` of the
    noise, all None without noise; ``parts``: None for as many as clusters; ``init``: "k-means++" or
    the centres to start at, then with one start; ``n_init`` starts; ``max_iter``, ``tol`` and
    ``random_state`` as in scikit-learn.

    **After fit**: ``cluster_centers_``, ``inertia_``, ``labels_`` (the nearest centre of each row),
    ``n_iter_``. The model is fitted to at most 20,000 random rows, 5,000 if parts and columns are
    many. Memory: two more tables of as many rows, but at least 10,000, and blocks of 64 MB.

    References: Bovy, Hogg, Roweis, "Extreme deconvolution" (2011), mixtures through normal noise;
    Arthur, Vassilvitskii, "k-means++" (2007).
    """

    cluster_centers_: Floats
    inertia_: float
    labels_: Ints
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        law: str | None = None,
        scales: float | Sequence[float] | Floats | None = None,
        nu: float | None = None,
        parts: int | None = None,
        init: str | ArrayLike = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.law = law
        self.scales = scales
        self.nu = nu
        self.parts = parts
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @classmethod
    def from_public(cls, public: PublicParameters, n_clusters: int, **parameters: Any) -> Self:
        """Return the miner for rows in components (``project`` rows in original columns first).

        NotApplicable if the noise has no variance. Without noise this is plain K-means.
        """
        if not has_noise(public):
            return cls(n_clusters, **parameters)
        noise_variance(public)
        nu = public.facts.get("nu")
        return cls(
            n_clusters,
            law=public.law,
            scales=public.scales,
            nu=None if nu is None else float(nu),
            **parameters,
        )

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster released rows ``X``, in components if a map is published; ``y`` is not used."""
        self._check_parameters()
        rows = read_rows(self, X, reset=True)
        if len(rows) < self.n_clusters:
            raise ValueError(f"n_samples={len(rows)} should be >= n_clusters={self.n_clusters}.")
        rng = np.random.default_rng(self.random_state)
        origin = rows.mean(axis=0)
        rows = rows - origin
        noise = self._read_noise(rows.shape[1])
        records = rows if noise is None else self._draw_records(rows, noise, rng)
        self._origin = origin
        self._plain = self._fit_plain(records, rng)
        self.cluster_centers_ = origin + self._plain.cluster_centers_
        self.inertia_ = self._plain.inertia_ * len(rows) / len(records)
        self.labels_ = self._plain.labels_ if noise is None else self._plain.predict(rows)
        self.n_iter_ = self._plain.n_iter_
        return self

    def predict(self, X: ArrayLike) -> Ints:
        """Return the nearest centre of each record or released row."""
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        labels: Ints = self._plain.predict(rows - self._origin)
        return labels

    def _fit_plain(self, X: Floats, rng: np.random.Generator) -> Any:
        stop = {"max_iter": self.max_iter, "tol": self.tol}
        if isinstance(self.init, str):
            return fit_plain_kmeans(X, self.n_clusters, rng, n_init=self.n_init, **stop)
        start = np.asarray(self.init, dtype=np.float64)
        shape = (self.n_clusters, X.shape[1])
        check_parameter(
            start.shape == shape, self, "init", f"'k-means++' or an array of shape {shape}"
        )
        start = start - self._origin
        return fit_plain_kmeans(X, self.n_clusters, rng, n_init=1, init=start, **stop)

    def _draw_records(self, Y: Floats, noise: list[NoiseParts], rng: np.random.Generator) -> Floats:
        """Draw records behind the rows, equally many for each row."""
        deviation = Y.std(axis=0)
        unit = np.where(deviation > 0, deviation, 1.0)
        noise = [part.scale_by(1.0 / each) for part, each in zip(noise, unit.tolist(), strict=True)]
        Y = Y / unit
        clean = self._fit_distribution(Y, noise, rng)
        draws = [
            draw_records(Y, noise, clean, rng) for _ in range(-(-_MIN_DRAWN_RECORDS // len(Y)))
        ]
        return np.concatenate(draws) * unit

    def _fit_distribution(
        self, Y: Floats, noise: list[NoiseParts], rng: np.random.Generator
    ) -> CleanDistribution:
        parts = min(self.n_clusters if self.parts is None else self.parts, len(Y))
        limit = int(np.clip(_MODEL_CELLS // (parts * Y.shape[1]), *_MODEL_ROWS))
        some = Y if len(Y) <= limit else Y[np.sort(rng.choice(len(Y), limit, replace=False))]
        return fit_clean_distribution(some, noise, min(parts, len(some)), rng)

    def _read_noise(self, s: int) -> list[NoiseParts] | None:
        if self.law is None:
            return None
        given = np.asarray(np.nan if self.scales is None else self.scales, dtype=np.float64)
        is_right = given.shape in ((), (s,)) and bool(np.all((given >= 0) & np.isfinite(given)))
        check_parameter(
            is_right, self, "scales", f"a number of at least 0, or {s}, one for each column"
        )
        if not given.any():
            return None
        one = fit_noise_parts(find_distribution(self.law, self.nu))
        return [one.scale_by(scale) for scale in np.broadcast_to(given, s).tolist()]

    def _check_parameters(self) -> None:
        check_parameter(
            is_count(self.n_clusters), self, "n_clusters", "a whole number of at least 1"
        )
        check_parameter(is_count(self.n_init), self, "n_init", "a whole number of at least 1")
        check_parameter(is_count(self.max_iter), self, "max_iter", "a whole number of at least 1")
        check_parameter(
            self.parts is None or is_count(self.parts), self, "parts", "None or at least 1"
        )
        check_parameter(
            is_number(self.tol) and self.tol >= 0, self, "tol", "a number of at least 0"
        )
        check_parameter(
            self.law is None or self.law in SAMPLED_DISTRIBUTIONS,
            self,
            "law",
            f"None or one of {SAMPLED_DISTRIBUTIONS}",
        )
        has_shape = self.nu is not None and is_number(self.nu) and self.nu > 2
        is_right = has_shape if self.law == "student_t" else self.nu is None
        check_parameter(
            is_right, self, "nu", "above 2 for 'student_t', or noise has no variance; else None"
        )
        is_start = not isinstance(self.init, str) or self.init == "k-means++"
        check_parameter(is_start, self, "init", "'k-means++' or an array of centres")

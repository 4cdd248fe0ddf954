"""K-means that knows the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ppdm_core.miners._classifier import check, is_count
from ppdm_core.miners._clean_distribution import CleanLaw, clean_law, likely_records
from ppdm_core.miners._lloyd import Clusters, best_clusters, nearest_centres, spread_start
from ppdm_core.miners._noise_mixture import NoiseParts, noise_parts
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.parameter_checks import is_number
from ppdm_core.model.release import Public
from ppdm_core.numerics.distributions import DRAWN, law_named
from ppdm_core.numerics.linear_map import has_noise, noise_variance

_LEARNED = 5_000, 20_000  # rows that the law of the records is learned from: at least, at most
_LEARNED_CELLS = 500_000  # and in between so many, times parts
_DRAWN = 10_000  # records to cluster, at least


class KMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """The clusters of the records behind released rows, not those of the rows.

    Rows are Y = X + N, with independent noise N of a published law. The target is what plain
    K-means finds on the clean table: the centres c that minimise F(c) = sum over records of
    min_i |x - c_i|^2, and the inertia F(c). Rows give something else, for two reasons:

    * **Inertia.** If every row stayed with its record's centre, the squared distances would sum up
      to n tr V more, V the noise's covariance, less k tr V that the k centres absorb by following
      the noise: (n - k) tr V.
    * **Selection.** But rows choose their centre after the noise. Those that noise has carried over
      a border count for the other side: centres drift apart, away from the borders, and the inertia
      grows by less than (n - k) tr V. Subtracting this can end below zero. For one column and
      Laplace noise of scale b the exact figure for fixed centres is E F = E F_rows - 2 n b^2 +
      2 n b^2 * sum over borders of (distance of the two centres) * (density of rows there).

    So both are corrected at once, by the law of X given Y. The records' law is taken for a mixture
    of ``parts`` normal laws with independent columns, and fitted by maximum likelihood through the
    noise (EM; the noise's law enters as a mixture of normal laws with its variance, and with tail
    probabilities that are right to 0.0002 for Laplace and 0.02 for all laws). Then each row is
    replaced by a record drawn from what the row and that law leave possible, small tables several
    times over, and plain K-means of these gives centres and inertia (divided by the number of
    draws). Where the mixture is right, the drawn records have the law of the clean ones, whatever
    centres are asked for. Where it is wrong, the error shrinks with the noise: as that vanishes the
    drawn records become the rows, and without noise this *is* plain K-means.

    What it cannot do: bring back what the noise has covered. Even with known centres the noise's
    own squares scatter: the inertia has at least about the standard error sqrt(n * sum over columns
    of (fourth moment of the noise - its variance^2)), which may be more than the inertia of tight
    clusters. Clusters that are closer than the noise is wide need thousands of rows, and skewed
    ones are described by a normal law too few (raise ``parts``).

    **Parameters**: ``law``, ``scales`` (one a column, or one for all) and ``nu`` of the noise, all
    None for none; ``parts``: None for as many as clusters; ``init``: "k-means++" or the centres to
    begin at, then with one start; ``n_init`` starts; ``max_iter``, ``tol`` and ``random_state`` as
    in scikit-learn.

    **After fit**: ``cluster_centers_``, ``inertia_``, ``labels_`` (the nearest centre of each row),
    ``n_iter_``. The law is learned from at most 20,000 random rows, 5,000 if parts and columns are
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
    def from_public(cls, public: Public, n_clusters: int, **parameters: Any) -> Self:
        """For rows in components (``project`` those that were published in original columns).

        Noise that has no variance is not applicable; without any this is plain K-means.
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
        """``X``: released rows, in components where a map is published. ``y`` is not used."""
        self._check_parameters()
        rows: Floats = validate_data(self, X, dtype=np.float64)
        if len(rows) < self.n_clusters:
            raise ValueError(f"n_samples={len(rows)} should be >= n_clusters={self.n_clusters}.")
        rng = np.random.default_rng(self.random_state)
        origin = rows.mean(axis=0)
        rows = rows - origin
        noise = self._noise(rows.shape[1])
        records = rows if noise is None else self._records(rows, noise, rng)
        found = self._clusters(records, origin, rng)
        self.cluster_centers_ = origin + found.centres
        self.inertia_ = found.inertia * len(rows) / len(records)
        self.labels_ = found.labels if noise is None else nearest_centres(rows, found.centres)[0]
        self.n_iter_ = found.iterations
        return self

    def predict(self, X: ArrayLike) -> Ints:
        """The nearest centre of each row, be it a record or a released row."""
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        origin = self.cluster_centers_.mean(axis=0)
        return nearest_centres(rows - origin, self.cluster_centers_ - origin)[0]

    def _clusters(self, X: Floats, origin: Floats, rng: np.random.Generator) -> Clusters:
        if isinstance(self.init, str):
            starts = (spread_start(X, self.n_clusters, rng) for _ in range(self.n_init))
            return best_clusters(X, starts, most=self.max_iter, tolerance=self.tol)
        start = np.asarray(self.init, dtype=np.float64)
        shape = (self.n_clusters, X.shape[1])
        check(start.shape == shape, self, "init", f"'k-means++' or an array of shape {shape}")
        return best_clusters(X, [start - origin], most=self.max_iter, tolerance=self.tol)

    def _records(self, Y: Floats, noise: list[NoiseParts], rng: np.random.Generator) -> Floats:
        """Records that may be behind the rows, each row's as often as the others'."""
        deviation = Y.std(axis=0)
        unit = np.where(deviation > 0, deviation, 1.0)
        noise = [part.scaled(1.0 / each) for part, each in zip(noise, unit.tolist(), strict=True)]
        Y = Y / unit
        law = self._learned(Y, noise, rng)
        draws = [likely_records(Y, noise, law, rng) for _ in range(-(-_DRAWN // len(Y)))]
        return np.concatenate(draws) * unit

    def _learned(self, Y: Floats, noise: list[NoiseParts], rng: np.random.Generator) -> CleanLaw:
        parts = min(self.n_clusters if self.parts is None else self.parts, len(Y))
        most = int(np.clip(_LEARNED_CELLS // (parts * Y.shape[1]), *_LEARNED))
        some = Y if len(Y) <= most else Y[np.sort(rng.choice(len(Y), most, replace=False))]
        return clean_law(some, noise, min(parts, len(some)), rng)

    def _noise(self, s: int) -> list[NoiseParts] | None:
        if self.law is None:
            return None
        given = np.asarray(np.nan if self.scales is None else self.scales, dtype=np.float64)
        is_right = given.shape in ((), (s,)) and bool(np.all((given >= 0) & np.isfinite(given)))
        check(is_right, self, "scales", f"a number of at least 0, or {s}, one a column")
        if not given.any():
            return None
        one = noise_parts(law_named(self.law, self.nu))
        return [one.scaled(scale) for scale in np.broadcast_to(given, s).tolist()]

    def _check_parameters(self) -> None:
        check(is_count(self.n_clusters), self, "n_clusters", "a whole number of at least 1")
        check(is_count(self.n_init), self, "n_init", "a whole number of at least 1")
        check(is_count(self.max_iter), self, "max_iter", "a whole number of at least 1")
        check(self.parts is None or is_count(self.parts), self, "parts", "None or at least 1")
        check(is_number(self.tol) and self.tol >= 0, self, "tol", "a number of at least 0")
        check(self.law is None or self.law in DRAWN, self, "law", f"None or one of {DRAWN}")
        has_shape = self.nu is not None and is_number(self.nu) and self.nu > 2
        is_right = has_shape if self.law == "student_t" else self.nu is None
        check(is_right, self, "nu", "above 2 for 'student_t', or noise has no variance; else None")
        is_start = not isinstance(self.init, str) or self.init == "k-means++"
        check(is_start, self, "init", "'k-means++' or an array of centres")

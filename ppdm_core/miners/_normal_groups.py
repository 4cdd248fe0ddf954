"""Classes as mixtures of normal distributions, estimated from rows with known noise.

All columns are in units in which the noise has variance ``noise``: 1, or 0 without noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.miners._plain_kmeans import fit_plain_kmeans
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import row_slices

_MIN_ROWS_PER_COLUMN = 4  # of a group, on average: fewer do not determine its shape
_MIN_VARIANCE = 1e-9  # in any direction
_MAX_ERRORS = 2.0  # standard errors by which a variance may be below that of the noise


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows, each of one class: their sizes, centres and shapes.

    ``spread`` and ``axes`` are eigenvalues and eigenvectors of the covariance of the rows minus
    that of the noise, each eigenvalue at least its standard error; ``typical`` is the mean variance
    of records within groups.
    """

    of_class: Ints  # (g,)
    size: Ints  # (g,)
    centre: Floats  # (g, s)
    spread: Floats  # (g, s)
    axes: Floats  # (g, s, s) columns are vectors
    typical: float
    noise: float

    def variances(self, shrinkage: Floats) -> Floats:
        """Return variances of a record about the estimated centre, along the axes, (a, g, s).

        A share of each is the typical variance, because sampling errors make the smallest ones far
        too small. The sampling variance of the centre is added.
        """
        share = shrinkage[:, None, None]
        centre_error = (self.spread + self.noise) / self.size[:, None]
        found: Floats = (1.0 - share) * self.spread + share * self.typical + centre_error
        return found

    def ln_densities(self, X: Floats, shrinkage: Floats, is_noisy: bool) -> Floats:
        """Return log densities of records, or of rows with noise, (a, t, g)."""
        variances = self.variances(shrinkage) + (self.noise if is_noisy else 0.0)
        ln = np.empty((len(shrinkage), len(X), len(self.size)))
        for g in range(len(self.size)):
            along = np.square((X - self.centre[g]) @ self.axes[g])  # (t, s)
            gap = along @ (1.0 / variances[:, g]).T  # (t, a)
            ln[:, :, g] = -0.5 * (gap + np.log(variances[:, g]).sum(axis=1)).T
        return ln

    def ln_joint(self, X: Floats, shrinkage: Floats, *, is_noisy: bool, equal: bool) -> Floats:
        """Return joint log densities, (a, t, classes); ``equal``: as if classes had equal sizes."""
        classes = int(self.of_class[-1]) + 1
        class_size = np.bincount(self.of_class, self.size, minlength=classes)[self.of_class]
        weight = self.size / (class_size if equal else self.size.sum())
        ln = self.ln_densities(X, shrinkage, is_noisy) + np.log(weight)
        first = np.searchsorted(self.of_class, np.arange(classes))  # groups are in class order
        joint: Floats = np.logaddexp.reduceat(ln, first, axis=2)
        return joint


def count_allowed_groups(codes: Ints, columns: int) -> int:
    """Return the number of groups into which the largest class may be split."""
    return max(1, int(np.bincount(codes).max()) // (_MIN_ROWS_PER_COLUMN * columns))


def split_classes(X: Floats, codes: Ints, groups: int, noise: float) -> tuple[Ints, Ints]:
    """Return the group of each row, (n,), and the class of each group, (g,), by clustering."""
    rng = np.random.default_rng(0)
    group = np.empty(len(X), dtype=np.int64)
    of_class: list[int] = []
    for code in range(int(codes.max()) + 1):
        mine = np.flatnonzero(codes == code)
        count = min(groups, max(1, len(mine) // (_MIN_ROWS_PER_COLUMN * X.shape[1])))
        labels = _split_class(X[mine], count, noise, rng)
        group[mine] = len(of_class) + labels
        of_class += [code] * (int(labels.max()) + 1)
    return group, np.array(of_class)


def _split_class(X: Floats, count: int, noise: float, rng: np.random.Generator) -> Ints:
    """Return the group of each row of a class; fewer groups if ``count`` would divide the noise."""
    while count > 1:
        found = fit_plain_kmeans(X, count, rng, n_init=1)
        labels: Ints = np.unique(found.labels_, return_inverse=True)[1]  # some may be empty
        if not _divides_noise(X, labels, noise):
            return labels
        count //= 2
    return np.zeros(len(X), dtype=np.int64)


def _divides_noise(X: Floats, group: Ints, noise: float) -> bool:
    """Return whether the rows of the groups differ by less than the noise alone.

    Groups of records keep the variance of the noise in every direction. K-means of rows that differ
    mainly by noise cuts the noise into pieces, in directions in which the centres differ.
    """
    centre = _compute_centres(X, group)
    _, length, directions = np.linalg.svd(centre - centre.mean(axis=0), full_matrices=False)
    directions = directions[length > 1e-9 * length[0]]  # (at most g - 1, s)
    deviations = (X - centre[group]) @ directions.T
    variance, axes = np.linalg.eigh(deviations.T @ deviations / max(len(X) - len(centre), 1))
    error = np.square(deviations @ axes[:, 0]).std() / np.sqrt(len(X))
    return bool(variance[0] + _MAX_ERRORS * error < noise)


def _compute_centres(X: Floats, group: Ints) -> Floats:
    return np.array([X[group == g].mean(axis=0) for g in range(int(group.max()) + 1)])


def fit_groups(
    X: Floats, codes: Ints, groups: int, own: Sequence[float], noise: float
) -> Iterator[Groups]:
    """Yield one model for each of ``own``: the share of a group's shape from its own rows.

    The rest is the common shape of the groups; small groups use more of that. Variances are at
    least their standard errors, or the typical variance if this is less. Otherwise sampling errors
    leave a variance near 0 in some direction, where no query fits any large class, and a small
    class, whose centre is uncertain, gets them all. Rows with noise do not show this.
    """
    group, of_class = split_classes(X, codes, groups, noise)
    size = np.bincount(group)
    centre = _compute_centres(X, group)
    deviations = X - centre[group]
    products = np.array(
        [deviations[group == g].T @ deviations[group == g] for g in range(len(size))]
    )
    n, s = X.shape
    common = products.sum(axis=0) / max(n - len(size), 1)
    squares = np.square(deviations)
    # Sampling errors must not reduce the typical variance to 0.
    error = float(squares.mean(axis=1).std()) / np.sqrt(n)
    typical = max(float(np.trace(common)) / s - noise, error, _MIN_VARIANCE)
    row_error = _compute_row_error(squares)
    for share in own:
        weight = share * size / (size + s)
        shape = (weight / np.maximum(size - 1, 1))[:, None, None] * products
        shape += (1.0 - weight)[:, None, None] * common
        variance, axes = np.linalg.eigh(shape)
        relative_error = row_error * np.sqrt(weight**2 / size + (1.0 - weight) ** 2 / n)
        least = np.clip(variance * relative_error[:, None], 0.0, typical)
        spread = np.maximum(variance - noise, least)
        yield Groups(of_class, size, centre, spread, axes, typical, noise)


def _compute_row_error(squares: Floats) -> float:
    """Return the relative standard error of a variance from one row, the mean over the columns.

    It is sqrt(2) for a normal distribution, sqrt(5) for Laplace, more with outliers. That from n
    rows is smaller by sqrt(n).
    """
    variance = squares.mean(axis=0)
    varies = variance > 0
    relative = squares.std(axis=0)[varies] / variance[varies]
    return float(np.sqrt(np.square(relative).mean())) if varies.any() else 0.0


def compute_votes(model: Groups, X: Floats, shrinkage: float, equal: bool) -> Floats:
    """Return posterior probabilities of the classes, (t, classes), computed in blocks."""
    at = np.array([shrinkage])
    votes = np.empty((len(X), int(model.of_class[-1]) + 1))
    for part in row_slices(len(X), 2 * (len(model.size) + X.shape[1])):
        votes[part] = posterior(model.ln_joint(X[part], at, is_noisy=False, equal=equal))[0]
    return votes


def posterior(ln_joint: Floats) -> Floats:
    """Return the probabilities of the classes, along the last axis."""
    votes = np.exp(ln_joint - ln_joint.max(axis=-1, keepdims=True))
    shares: Floats = votes / votes.sum(axis=-1, keepdims=True)
    return shares

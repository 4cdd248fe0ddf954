"""Classes as mixtures of normal laws, seen through noise of a known size.

All columns are in units in which the noise has variance ``noise``, 1 or (without any) 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.miners._lloyd import best_clusters, spread_start
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import row_slices

_ROWS_A_COLUMN = 4  # in a group at least, on average: fewer do not tell its shape
_LEAST = 1e-9  # variance of any direction


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows, each of one class: their sizes, centres and shapes.

    ``spread`` and ``axes`` are eigenvalues and vectors of the rows' covariance less the noise;
    ``typical`` is the mean variance of records within groups.
    """

    of_class: Ints  # (g,)
    size: Ints  # (g,)
    centre: Floats  # (g, s)
    spread: Floats  # (g, s)
    axes: Floats  # (g, s, s) columns are vectors
    typical: float
    noise: float

    def variances(self, shrinkage: Floats) -> Floats:
        """(a, g, s) of a record about the estimated centre, along the axes.

        A share of each comes from what is typical: sampling errors make the smallest ones far too
        small. What is not known of the centre is added.
        """
        inside = np.maximum(self.spread, 0.0)
        share = shrinkage[:, None, None]
        unsure = (inside + self.noise) / self.size[:, None]
        found: Floats = (1.0 - share) * inside + share * self.typical + unsure
        return found

    def ln_densities(self, X: Floats, shrinkage: Floats, is_noisy: bool) -> Floats:
        """(a, t, g) of records, or of rows with noise."""
        variances = self.variances(shrinkage) + (self.noise if is_noisy else 0.0)
        ln = np.empty((len(shrinkage), len(X), len(self.size)))
        for g in range(len(self.size)):
            along = np.square((X - self.centre[g]) @ self.axes[g])  # (t, s)
            gap = along @ (1.0 / variances[:, g]).T  # (t, a)
            ln[:, :, g] = -0.5 * (gap + np.log(variances[:, g]).sum(axis=1)).T
        return ln

    def ln_joint(self, X: Floats, shrinkage: Floats, *, is_noisy: bool, equal: bool) -> Floats:
        """(a, t, classes) of a record and its class; ``equal``: as if classes were of one size."""
        classes = int(self.of_class[-1]) + 1
        whole = np.bincount(self.of_class, self.size, minlength=classes)[self.of_class]
        weight = self.size / (whole if equal else self.size.sum())
        ln = self.ln_densities(X, shrinkage, is_noisy) + np.log(weight)
        first = np.searchsorted(self.of_class, np.arange(classes))  # groups are in class order
        joint: Floats = np.logaddexp.reduceat(ln, first, axis=2)
        return joint


def rows_allow(codes: Ints, columns: int) -> int:
    """Into how many groups the largest class may be cut."""
    return max(1, int(np.bincount(codes).max()) // (_ROWS_A_COLUMN * columns))


def cut(X: Floats, codes: Ints, groups: int) -> tuple[Ints, Ints]:
    """(n,) the group of each row and (g,) the class of each group: clusters of every class."""
    rng = np.random.default_rng(0)
    group = np.empty(len(X), dtype=np.int64)
    of_class: list[int] = []
    for code in range(int(codes.max()) + 1):
        mine = np.flatnonzero(codes == code)
        count = min(groups, max(1, len(mine) // (_ROWS_A_COLUMN * X.shape[1])))
        labels = np.zeros(len(mine), dtype=np.int64)
        if count > 1:
            found = best_clusters(X[mine], [spread_start(X[mine], count, rng)])
            labels = np.unique(found.labels, return_inverse=True)[1]  # some may be empty
        group[mine] = len(of_class) + labels
        of_class += [code] * (int(labels.max()) + 1)
    return group, np.array(of_class)


def fitted(
    X: Floats, codes: Ints, groups: int, own: Sequence[float], noise: float
) -> Iterator[Groups]:
    """One for each of ``own``: how much of its shape a large group has from its own rows.

    The rest is the groups' common shape; small groups take more of that.
    """
    group, of_class = cut(X, codes, groups)
    size = np.bincount(group)
    centre = np.array([X[group == g].mean(axis=0) for g in range(len(size))])
    apart = X - centre[group]
    products = np.array([apart[group == g].T @ apart[group == g] for g in range(len(size))])
    common = products.sum(axis=0) / max(len(X) - len(size), 1)
    s = X.shape[1]
    # Sampling errors of the typical variance must not make it vanish.
    error = float(np.square(apart).mean(axis=1).std()) / np.sqrt(len(X))
    typical = max(float(np.trace(common)) / s - noise, error, _LEAST)
    for share in own:
        weight = (share * size / (size + s))[:, None, None]
        shape = weight * products / np.maximum(size - 1, 1)[:, None, None] + (1 - weight) * common
        spread, axes = np.linalg.eigh(shape - noise * np.eye(s))
        yield Groups(of_class, size, centre, spread, axes, typical, noise)


def class_votes(model: Groups, X: Floats, shrinkage: float, equal: bool) -> Floats:
    """(t, classes) posterior probabilities, in blocks."""
    at = np.array([shrinkage])
    votes = np.empty((len(X), int(model.of_class[-1]) + 1))
    for part in row_slices(len(X), 2 * (len(model.size) + X.shape[1])):
        votes[part] = posterior(model.ln_joint(X[part], at, is_noisy=False, equal=equal))[0]
    return votes


def posterior(ln_joint: Floats) -> Floats:
    """Probabilities of the classes, along the last axis."""
    votes = np.exp(ln_joint - ln_joint.max(axis=-1, keepdims=True))
    shares: Floats = votes / votes.sum(axis=-1, keepdims=True)
    return shares

"""Releases of tables for experiments, and what is measured of them in several experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.metrics.interval_privacy import IntervalPrivacy
from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.folds import assign_folds
from ppdm_core.numerics.neighbours import find_nearest_rows
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer
from studies.public_tables import load_into_memory

Quantities = dict[str, list[float]]
EPSILON = 0.1  # of views whose attack does not use it
MAX_NEIGHBOURS = 10


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """A released table with its original, both as arrays."""

    X: Floats  # (n, d) scaled
    label: Ints  # (n,)
    Y: Floats  # (m, s)
    row_label: Ints  # (m,)
    source: Ints  # (m,) record of each row
    public: PublicParameters
    schema: Schema  # of the scaled original
    secret_map: tuple[Floats, Floats] | None  # centre and loadings (d, s), if the map is linear
    fitted: Any
    sanitizer: Any

    def make_view(self, **given: Any) -> AttackerView:
        """Return what an attacker with the given knowledge sees; rows are not shuffled."""
        label = self.row_label.astype(np.int32)
        return AttackerView(self.Y, label, self.public, self.schema, EPSILON, **given)

    def project_queries(self, scaled: Floats) -> Floats:
        """Return records as the steward would release them, without noise."""
        assert self.secret_map is not None
        centre, loadings = self.secret_map
        return (scaled - centre) @ loadings


def release(rows: ArrayRows, method: str, parameters: dict[str, Any], seed: int) -> ReleasedTable:
    """Return one draw of a release of all rows."""
    sanitizer = make_sanitizer(method, parameters)
    scaling = fit_scaling(rows, sanitizer.scale)
    scaled = load_into_memory(scaling.apply(rows))
    fitted = {**sanitizer.fit(scaled), "scaling": scaling.as_dict()}
    noise = Noise(np.random.default_rng([seed, 12]).bytes(32))
    released = sanitizer.sanitize(scaled, noise, fitted)
    whole, original = load_into_memory(released.rows).whole, scaled.whole
    return ReleasedTable(
        X=original.X,
        label=original.label.astype(np.int64),
        Y=whole.X,
        row_label=whole.label.astype(np.int64),
        source=whole.record,
        public=released.public,
        schema=scaled.schema,
        secret_map=sanitizer.leaked(scaled.schema, noise, fitted),
        fitted=fitted,
        sanitizer=sanitizer,
    )


def release_laplace(rows: ArrayRows, b: float, seed: int) -> ReleasedTable:
    """Return a release as P0 describes it: half the components, noise by their ranges."""
    components = max(1, len(rows.schema.numeric) // 2)
    parameters = {
        "components": components,
        "b": b,
        "noise_shape": "per_component",
        "basis": "private",
    }
    return release(rows, "pca_laplace", parameters, seed)


def measure_privacy(X: Floats, X_hat: Floats) -> float:
    """Return the average privacy of P0 and P3: width of the 95 % error interval over the range."""
    return IntervalPrivacy().measure(X, X_hat, np.ptp(X, axis=0), EPSILON)


def filter_privacy(X: Floats, X_hat: Floats, rank: int) -> float:
    """Return the least privacy over all numbers of principal components that are kept.

    The best number is chosen with the original records, as in P0.
    """
    mean = X_hat.mean(axis=0)
    _, _, V = np.linalg.svd(np.cov(X_hat - mean, rowvar=False), hermitian=True)
    scores = (X_hat - mean) @ V.T
    ranges = np.ptp(X, axis=0)
    error = np.ascontiguousarray((X - mean).T)  # (d, n) of the kept components so far
    found = []
    for k in range(rank):
        error -= np.outer(V[k], scores[:, k])
        found.append(float(np.mean(measure_widths(error)[ranges > 0] / ranges[ranges > 0])))
    return min(found)


def measure_widths(error: Floats) -> Floats:
    """Return the width of the central 95 % of each line, as by `np.quantile`."""
    n = error.shape[1]
    places = [share * (n - 1) for share in (0.025, 0.975)]
    around = [(math.floor(place), math.ceil(place)) for place in places]
    ordered = np.partition(error, sorted({each for pair in around for each in pair}), axis=1)
    low, high = (
        ordered[:, first] + (place - first) * (ordered[:, last] - ordered[:, first])
        for place, (first, last) in zip(places, around, strict=True)
    )
    return np.asarray(high - low)


def split_records(n: int, share: float, draw: int) -> tuple[Ints, Ints]:
    """Return random positions of training and of test records; ``share`` is that of the tests."""
    order = np.random.default_rng([draw, 13]).permutation(n)
    count = max(1, int(n * share))
    return np.sort(order[count:]), np.sort(order[:count])


def measure_accuracy(
    X: Floats, label: Ints, train: Ints, test: Ints, k: int | str = 5, weights: str = "uniform"
) -> float:
    """Return the accuracy of k nearest neighbours on the test records."""
    model = MINERS["knn"](k=k, weights=weights).fit(X[train], label[train])
    return float(np.mean(model.predict(X[test]) == label[test]))


def find_fold_labels(X: Floats, label: Ints, draw: int, most: int = MAX_NEIGHBOURS) -> Ints:
    """Return the classes of the nearest rows in the other nine of ten folds, nearest first."""
    fold = assign_folds(label, 10, np.random.default_rng([draw, 14]))
    found = np.zeros((len(X), most), dtype=np.int64)
    for held_out in range(10):
        test, train = np.flatnonzero(fold == held_out), np.flatnonzero(fold != held_out)
        found[test] = label[train][find_nearest_rows(X[test], X[train], most)[0]]
    return found


def cross_validate(near: Ints, label: Ints) -> list[float]:
    """Return the accuracies of 1, 2, ... neighbours, given their classes; ties: the first class."""
    votes = np.cumsum(np.eye(int(label.max()) + 1, dtype=np.int64)[near], axis=1)
    return [float(share) for share in np.mean(votes.argmax(axis=2) == label[:, None], axis=0)]


def cross_validate_ties(near: Ints, label: Ints) -> dict[str, float]:
    """Return the accuracy of all neighbours, by other rules for ties between classes."""
    votes = np.eye(int(label.max()) + 1, dtype=np.int64)[near].sum(axis=1)
    is_first = votes == votes.max(axis=1, keepdims=True)
    last = votes.shape[1] - 1 - votes[:, ::-1].argmax(axis=1)
    place = np.take_along_axis(is_first, near, axis=1).argmax(axis=1)
    nearest = near[np.arange(len(near)), place]
    answers = {"nearest": nearest, "last class": last}
    return {rule: float(np.mean(answer == label)) for rule, answer in answers.items()}


def correlate_ranks(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rank correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)


def compute_pseudo_values(
    statistic: Callable[[Floats], float], draws: Sequence[Sequence[float]] | Floats
) -> list[float]:
    """Return jackknife pseudo-values of a statistic of all draws: their mean has its interval."""
    data = np.asarray(draws, dtype=np.float64)
    n, whole = len(data), statistic(data)
    if n == 1:
        return [whole]
    return [n * whole - (n - 1) * statistic(np.delete(data, i, axis=0)) for i in range(n)]


def append(found: Quantities, name: str, value: float) -> None:
    """Append the value of one draw."""
    found.setdefault(name, []).append(float(value))

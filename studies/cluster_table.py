"""Print the table of mining.md about clusters.

python -m studies.cluster_table      # from the root of the project, about a minute
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats

DRAWS = 10
TableMaker = Callable[[np.random.Generator], Floats]


def build_blob_maker(
    centres: list[list[float]], deviation: float, share: list[float] | None = None
) -> TableMaker:
    """Return a function that draws 2,000 records around centres."""
    centre_array = np.array(centres)

    def make(rng: np.random.Generator) -> Floats:
        part = rng.choice(len(centre_array), 2000, p=share)
        return np.asarray(
            centre_array[part] + rng.normal(0.0, deviation, (2000, centre_array.shape[1]))
        )

    return make


def draw_skewed(rng: np.random.Generator) -> Floats:
    """Return two skewed clusters at opposite corners of a cube."""
    corner = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])[rng.integers(0, 2, 2000)]
    return np.asarray(corner + rng.exponential(0.25, (2000, 3)) * [1, -1, 1])


def draw_ring(rng: np.random.Generator) -> Floats:
    """Return records on a circle, with a little noise."""
    angle = rng.random(2000) * 2 * np.pi
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(circle + rng.normal(0.0, 0.05, (2000, 2)))


def build_component_maker(load: Callable[[], object], s: int) -> TableMaker:
    """Return a function that gives the first ``s`` principal components of columns in [0, 1].

    The records are the same in every draw.
    """
    X = load().data  # type: ignore[attr-defined]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    X = X - X.mean(axis=0)
    T = X @ np.linalg.svd(X, full_matrices=False)[2][:s].T
    return lambda rng: T


TABLES: dict[str, tuple[TableMaker, int, float]] = {
    "three overlapping blobs": (build_blob_maker([[0, 0], [1, 0], [0.5, 1]], 0.25), 3, 0.28),
    "two blobs, one column": (build_blob_maker([[0], [1]], 0.15), 2, 0.32),
    "two blobs, 85 % and 15 %": (build_blob_maker([[0, 0], [1, 0.5]], 0.15, [0.85, 0.15]), 2, 0.25),
    "two skewed clusters": (draw_skewed, 2, 0.30),
    "a ring as three clusters": (draw_ring, 3, 0.35),
    "Iris, 150 records": (build_component_maker(load_iris, 2), 3, 0.15),
    "Wine, 178 records": (build_component_maker(load_wine, 6), 3, 0.20),
    "WDBC, 569 records": (build_component_maker(load_breast_cancer, 3), 2, 0.20),
}


def compute_centre_error(found: Floats, clean: Floats) -> float:
    """Return the root mean squared distance of the centres in the best order."""
    D = ((found[:, None] - clean) ** 2).sum(axis=2)
    return math.sqrt(D[linear_sum_assignment(D)].mean())


def measure_draw(make: TableMaker, k: int, b: float, seed: int) -> list[float]:
    """Return the centre errors and relative inertias of one noisy draw."""
    KMeans, rng = MINERS["kmeans"], np.random.default_rng(seed)
    X = make(rng)
    Y = X + rng.laplace(0.0, b, X.shape)
    clean, plain = (KMeans(k, random_state=0).fit(each) for each in (X, Y))
    ours = KMeans(k, law="laplace", scales=b, random_state=0).fit(Y)
    added = (len(X) - k) * X.shape[1] * 2 * b**2
    inertias = plain.inertia_, plain.inertia_ - added, ours.inertia_
    centre_errors = [
        compute_centre_error(each.cluster_centers_, clean.cluster_centers_)
        for each in (plain, ours)
    ]
    return [*centre_errors, *(inertia / clean.inertia_ for inertia in inertias)]


def main() -> None:
    for name, (make, k, b) in TABLES.items():
        all_draws = np.array([measure_draw(make, k, b, 100 + seed) for seed in range(DRAWS)])
        gains = all_draws[:, 0] - all_draws[:, 1]
        plain, ours, rows, less, corrected = all_draws.mean(axis=0)
        error, spread = (each.std(ddof=1) / math.sqrt(DRAWS) for each in (gains, all_draws[:, 4]))
        print(
            f"| {name} | {b:.2f} | {plain:.3f} | {ours:.3f} | {gains.mean():+.3f} ± {error:.3f} "
            f"| {rows:.2f} | {less:.2f} | {corrected:.2f} ± {spread:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Noise that spares single cells, or that is a record itself."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.newest_kinds import full, get_scaled, scale_back, standardise
from tests.support.release_kinds.noise_holes import HOLES
from tests.support.release_kinds.proofs import View

FACTOR = 4.0  # of the record that serves as noise
SHARP_SHARE, SHARP, WIDE = 0.25, 1e-4, 10.0  # cells with little noise; noise in deviations


def spare_cells(X: Floats, rng: np.random.Generator) -> Floats:
    """Add very little noise to some cells, at random, and very wide noise to the others."""
    scale = np.where(rng.random(X.shape) < SHARP_SHARE, SHARP, WIDE)
    return scale_back(get_scaled(X) + scale * rng.laplace(size=X.shape), X)


def link_near_cells(view: View) -> Ints:
    """Link to the row with the most cells that are nearly the person's."""
    persons, rows = (standardise(A, view) for A in (view.persons, view.Y))
    near = np.zeros((len(persons), len(rows)))
    for x, y in zip(persons.T, rows.T, strict=True):
        near -= np.log(np.abs(x[:, None] - y) + SHARP)
    return np.asarray(near.argmax(axis=1))


def add_another_record(X: Floats, rng: np.random.Generator) -> Floats:
    """Add a multiple of another record, chosen at random for each row."""
    return np.asarray(X + FACTOR * (X[rng.permutation(len(X))] - X.mean(axis=0)))


def link_two_records(view: View) -> Ints:
    """Find for each row two persons whose records give it, and link the first of them."""
    persons, rows = (standardise(A, view) for A in (view.persons, view.Y))
    tree, links = KDTree(persons), np.zeros(len(persons), dtype=np.int64)
    best = np.full(len(persons), np.inf)
    for i, row in enumerate(rows):
        distance, _ = tree.query((row - persons) / FACTOR)
        who = int(distance.argmin())
        if distance[who] < best[who]:
            best[who], links[who] = distance[who], i
    return links


UNEVEN_NOISE = (
    Kind("some cells hardly changed", HOLES, spare_cells, full(link_near_cells)),
    Kind("another record as noise", HOLES, add_another_record, full(link_two_records)),
)

"""Find the released rows of people whose records are known from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.attacks._needs import check_needs
from ppdm_core.distances import row_slices, squared_distances
from ppdm_core.public_map import components_of, has_map, has_noise, project
from ppdm_core.types import AttackerView, Estimate, Floats, Ints

_ONE_TO_ONE_ROWS = 5_000  # the full cost matrix and its solver do not scale beyond
Costs = Iterator[tuple[slice, Floats]]


@dataclass(frozen=True)
class RecordLinkage:
    """Somebody holds full records of real people and looks for their rows in the release.

    For every reconstruction of the original columns: ``nearest:<name>`` takes the closest row,
    ``one_to_one:<name>`` the assignment of least total squared distance, each row used once.
    With a public map and Laplace noise: ``likelihood`` and ``likelihood_one_to_one`` compare in
    the component space by sum |t_i - z_i| / b_i, which is the maximum likelihood answer.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), for the map and the law of noise.
    """

    name: ClassVar[str] = "record_linkage"
    story: ClassVar[str] = "Somebody with full records of real people looks for their rows."
    goal: ClassVar[Literal["reconstruct", "link"]] = "link"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "reconstructions"})

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        targets = view.targets
        assert targets is not None
        reconstructions: Mapping[str, Floats] = view.reconstructions or {"released": view.Y}
        n = len(view.Y)
        links: dict[str, Ints] = {}
        for name, X_hat in reconstructions.items():
            links[f"nearest:{name}"] = nearest(squared_distances(targets, X_hat), len(targets))
            if n <= _ONE_TO_ONE_ROWS:
                costs = squared_distances(targets, X_hat)
                links[f"one_to_one:{name}"] = one_to_one(costs, len(targets), n)
        if has_map(view.public) and has_noise(view.public) and view.public.law == "laplace":
            links["likelihood"] = nearest(_surprise(view, targets), len(targets))
            if n <= _ONE_TO_ONE_ROWS:
                costs = _surprise(view, targets)
                links["likelihood_one_to_one"] = one_to_one(costs, len(targets), n)
        return Estimate(links)


def nearest(costs: Costs, t: int) -> Ints:
    link = np.empty(t, dtype=np.int64)
    for rows, C in costs:
        link[rows] = C.argmin(axis=1)
    return link


def one_to_one(costs: Costs, t: int, n: int) -> Ints:
    """Least total cost; with more targets than rows some get no answer (-1)."""
    from scipy.optimize import linear_sum_assignment

    C = np.empty((t, n))
    for rows, part in costs:
        C[rows] = part
    link = np.full(t, -1, dtype=np.int64)
    found, place = linear_sum_assignment(C)
    link[found] = place
    return link


def _surprise(view: AttackerView, targets: Floats) -> Costs:
    """Minus log likelihood of each released row for each target, up to a constant."""
    from scipy.spatial.distance import cdist

    assert view.public.scales is not None
    b = np.maximum(view.public.scales, np.finfo(np.float64).tiny)
    T, Z = project(view.public, targets) / b, components_of(view) / b
    for rows in row_slices(len(T), len(Z)):
        yield rows, cdist(T[rows], Z, "cityblock")

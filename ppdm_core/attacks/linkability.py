"""Join two files about the same persons by way of the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ppdm_core.attacks._assignment import (
    MAX_EXACT_ROWS,
    Costs,
    DistanceCosts,
    find_pure_component_costs,
)
from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._row_posterior import list_posteriors
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS_PER_LINE = 64  # of the release, for each line of a file


@dataclass(frozen=True)
class Linkability(Attack):
    """An attacker holds two files about the same persons, with different columns and no names.

    From a line of one file to its likely rows, and from each row to the lines of the other file
    that are likeliest for it: the probabilities of both steps are multiplied and summed over the
    64 best rows of each line, so that a line which is far from all rows counts for little.
    One-to-one also goes the way back.

    Rows are compared in ``filtered``, the linear estimate of least error where map and noise are
    public, in the best reconstructions (one; two if nothing can be filtered; four if thorough),
    and for ``odds`` by the exact distribution of the noise, where released components belong to
    one of the files alone.
    ``nearest`` takes for each line the likeliest other one; ``one_to_one`` uses every line once,
    in files of up to 5,000 lines. Lines without a row in common are not joined.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), on linkability by common neighbours.
    """

    name: ClassVar[str] = "linkability"
    story: ClassVar[str] = (
        "An attacker with two files about the same persons joins them through the release."
    )
    title: ClassVar[str] = "Joins two files about a person"
    goal: ClassVar[Goal] = "pair"
    needs: ClassVar[frozenset[str]] = frozenset({"split_files", "reconstructions"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.split_files is not None
        files = view.split_files
        left = compute_costs(view, files.left, files.left_columns)
        right = compute_costs(view, files.right, files.right_columns)
        found: dict[str, Ints] = {}
        for name in (name for name in left if name in right):
            ways = pair_lines(left[name], right[name])
            found |= {f"{way}:{name}": link for way, link in ways.items()}
        return Estimate(found)


def compute_costs(view: AttackerView, X: Floats, columns: Ints) -> dict[str, Costs]:
    """Return the costs of the lines of one file with all rows, by name of the comparison."""
    found: dict[str, Costs] = {
        name: DistanceCosts(*posterior.place_points(X, columns))
        for name, posterior in list_posteriors(view, np.arange(len(view.Y))).items()
    }
    exact = find_pure_component_costs(view, X, columns)
    if exact is not None:
        found["odds"] = exact.compute_odds()
    return found


def pair_lines(left: Costs, right: Costs) -> dict[str, Ints]:
    """Return for each line of the left file its line of the right file, in both ways."""
    row_of_left, left_of_row = _compute_probabilities(left)
    row_of_right, right_of_row = _compute_probabilities(right)
    there = row_of_left @ right_of_row.T  # (t, t)
    found = {"nearest": _choose_likeliest(there)}
    if there.shape[0] <= MAX_EXACT_ROWS:
        back = left_of_row @ row_of_right.T
        found["one_to_one"] = _choose_one_to_one((there * back).toarray())
    return found


def _compute_probabilities(costs: Costs) -> tuple[csr_array, csr_array]:
    """Return the probability of each row for each line, and of each line for each row; (t, m)."""
    from scipy.sparse import csr_array

    place, cost = costs.find_cheapest(_ROWS_PER_LINE)
    (t, k), m = place.shape, costs.shape[1]
    of_row = np.full(m, np.inf)
    np.minimum.at(of_row, place, cost)
    rows, lines = np.exp(cost[:, :1] - cost), np.exp(of_row[place] - cost)
    rows /= rows.sum(axis=1, keepdims=True)
    lines /= np.bincount(place.ravel(), lines.ravel(), m)[place]
    start = np.arange(0, t * k + 1, k)
    one, two = (
        csr_array((weight.ravel(), place.ravel(), start), shape=(t, m)) for weight in (rows, lines)
    )
    return one, two


def _choose_likeliest(common: csr_array) -> Ints:
    """Return the likeliest line of the other file for each line, -1 without a common row."""
    most = common.max(axis=1).toarray().ravel()
    return np.where(most > 0, np.asarray(common.argmax(axis=1)).ravel(), -1)


def _choose_one_to_one(common: Floats) -> Ints:
    """Return the assignment of largest total probability; -1 without a common row."""
    from scipy.optimize import linear_sum_assignment

    line, other = linear_sum_assignment(common, maximize=True)
    link = np.full(len(common), -1, dtype=np.int64)
    link[line] = np.where(common[line, other] > 0, other, -1)
    return link

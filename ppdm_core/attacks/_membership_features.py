"""Tables of a membership attack, and features that distinguish members from non-members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.attacks._label_groups import LabelGroup
from ppdm_core.attacks._noise_likelihood_ratio import compute_noise_odds
from ppdm_core.attacks.kernel_support import MEMBER_PRIOR, NO_ROW_LOG_ODDS, compute_support
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Response
from ppdm_core.numerics.distances import squared_distances
from ppdm_core.numerics.kernel_model import KernelSetting
from ppdm_core.numerics.neighbours import find_smallest_places
from ppdm_core.numerics.noise_distributions import NoiseDistribution

NEIGHBOUR_RANK = 5
_MISSING_DISTANCE = 1e6  # in units, if there is no row


@dataclass(frozen=True, eq=False)
class MembershipTables:
    """Release, targets and reference in one space.

    A row has the label of its record, so each class is compared on its own.
    """

    Z: Floats  # (m, s) the release
    label: Codes  # (m,)
    T: Floats  # (t, s) targets, who may be in it
    target_label: Codes  # (t,)
    R: Floats  # (r, s) reference records, which are not in it
    reference_label: Codes  # (r,)
    unit: Floats  # (s,) in which distances are measured
    responses: Codes  # (m, c) released categories
    target_codes: Codes  # (t, c) true categories
    reference_codes: Codes  # (r, c)

    def rescale(self, unit: Floats) -> MembershipTables:
        """Return the tables in these units, in which distances are measured, too."""
        Z, T, R = (part / unit for part in (self.Z, self.T, self.R))
        return replace(self, Z=Z, T=T, R=R, unit=np.ones(len(unit)))

    def select_class(self, code: int) -> tuple[Ints, MembershipTables]:
        """Return the positions of the targets of a class, and the tables of this class."""
        targets = np.flatnonzero(self.target_label == code)
        rows, others = self.label == code, self.reference_label == code
        return targets, replace(
            self,
            Z=self.Z[rows],
            label=self.label[rows],
            T=self.T[targets],
            target_label=self.target_label[targets],
            R=self.R[others],
            reference_label=self.reference_label[others],
            responses=self.responses[rows],
            target_codes=self.target_codes[targets],
            reference_codes=self.reference_codes[others],
        )

    def measure_by_class(
        self, measure: Callable[[MembershipTables], Floats], lowest: float
    ) -> Floats:
        """Return ``measure`` of each class, ``lowest`` for classes without rows; (t,)."""
        found = np.full(len(self.T), lowest)
        for code in np.unique(self.target_label).tolist():
            targets, tables = self.select_class(code)
            if len(tables.Z):
                found[targets] = measure(tables)
        return found


Odds = Callable[[MembershipTables], Floats]
Features = dict[str, Floats]  # (t,) each


def make_noise_odds(distribution: NoiseDistribution, responses: tuple[Response, ...]) -> Odds:
    """Return a function that computes log odds of membership for tables in scales of the noise."""

    def measure(one: MembershipTables) -> Floats:
        cells = one.responses, one.target_codes, one.reference_codes
        return compute_noise_odds(distribution, one.Z, one.T, one.R, cells, responses)

    return lambda tables: tables.measure_by_class(measure, -700.0)


def make_kernel_odds(around: KernelSetting) -> Odds:
    """Return a function that computes log odds of membership for a resampled release."""

    def odds(tables: MembershipTables) -> Floats:
        def measure(one: MembershipTables) -> Floats:
            parts = LabelGroup(np.arange(0), np.arange(0), one.Z, one.T, tables.Z, around)
            n = float(len(one.Z))
            kernel = around.estimate_from_records(one.T, one.Z, tables.Z, n, MEMBER_PRIOR)
            return compute_support(parts, kernel, n)[2]

        return tables.measure_by_class(measure, NO_ROW_LOG_ODDS)

    return odds


def compute_features(tables: MembershipTables, odds: Odds | None) -> Features:
    """Return scores that rise with the likelihood of membership.

    ``isolation`` alone says nothing of membership.
    """
    near, far = np.full((2, len(tables.T), 2), _MISSING_DISTANCE)
    for code in np.unique(tables.target_label).tolist():
        targets, one = tables.select_class(code)
        near[targets] = _measure_distances(one.T / one.unit, one.Z / one.unit)
        far[targets] = _measure_distances(one.T / one.unit, one.R / one.unit)
    logs = np.log(np.maximum(far, 1e-12)) - np.log(np.maximum(near, 1e-12))
    found = {
        "closest": -near[:, 0],
        "closest_ratio": logs[:, 0],
        "density_ratio": logs[:, 1],
    }
    if odds is not None:
        found["likelihood"] = odds(tables)
    return found | {"isolation": np.log(np.maximum(far[:, 1], 1e-12))}


def _measure_distances(T: Floats, Z: Floats) -> Floats:
    """Return the distances to the closest and the fifth closest row of Z; (t, 2).

    With fewer than five rows, the second is that to the farthest.
    """
    found = np.full((len(T), 2), _MISSING_DISTANCE)
    k = min(NEIGHBOUR_RANK, len(Z))
    if k:
        for targets, D in squared_distances(T, Z):
            nearest = np.take_along_axis(D, find_smallest_places(D, k), axis=1)
            found[targets] = np.column_stack([nearest.min(axis=1), nearest.max(axis=1)])
        found = np.sqrt(found)
    return found

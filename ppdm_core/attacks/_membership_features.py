"""A release, people who may be in it and people who are not; and what tells them apart."""

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
from ppdm_core.numerics.distributions import SampledDistribution
from ppdm_core.numerics.kernel_model import KernelSetting

NEIGHBOUR_RANK = 5
_MISSING_DISTANCE = 1e6  # distance to rows that are not there, in units


@dataclass(frozen=True, eq=False)
class MembershipTables:
    """All in one space. Somebody's row has somebody's label, so classes are looked at apart."""

    Z: Floats  # (m, s) the release
    label: Codes  # (m,)
    T: Floats  # (t, s) people who may be in it
    target_label: Codes  # (t,) their labels
    R: Floats  # (r, s) people who are not
    reference_label: Codes  # (r,)
    unit: Floats  # (s,) in which distances are measured
    responses: Codes  # (m, c) released categories
    target_codes: Codes  # (t, c) true ones of T
    reference_codes: Codes  # (r, c)

    def rescale(self, unit: Floats) -> MembershipTables:
        """In these units, distances too."""
        Z, T, R = (part / unit for part in (self.Z, self.T, self.R))
        return replace(self, Z=Z, T=T, R=R, unit=np.ones(len(unit)))

    def select_class(self, code: int) -> tuple[Ints, MembershipTables]:
        """The people of a class, and what they are compared with."""
        people = np.flatnonzero(self.target_label == code)
        rows, others = self.label == code, self.reference_label == code
        return people, replace(
            self,
            Z=self.Z[rows],
            label=self.label[rows],
            T=self.T[people],
            target_label=self.target_label[people],
            R=self.R[others],
            reference_label=self.reference_label[others],
            responses=self.responses[rows],
            target_codes=self.target_codes[people],
            reference_codes=self.reference_codes[others],
        )

    def measure_by_class(
        self, measure: Callable[[MembershipTables], Floats], lowest: float
    ) -> Floats:
        """``measure`` of each class apart, ``lowest`` where there are no rows; (t,)."""
        found = np.full(len(self.T), lowest)
        for code in np.unique(self.target_label).tolist():
            people, tables = self.select_class(code)
            if len(tables.Z):
                found[people] = measure(tables)
        return found


Odds = Callable[[MembershipTables], Floats]
Features = dict[str, Floats]  # (t,) each


def make_noise_odds(law: SampledDistribution, responses: tuple[Response, ...]) -> Odds:
    """The tables must be in scales of the noise."""

    def measure(one: MembershipTables) -> Floats:
        cells = one.responses, one.target_codes, one.reference_codes
        return compute_noise_odds(law, one.Z, one.T, one.R, cells, responses)

    return lambda tables: tables.measure_by_class(measure, -700.0)


def make_kernel_odds(around: KernelSetting) -> Odds:
    def odds(tables: MembershipTables) -> Floats:
        def measure(one: MembershipTables) -> Floats:
            parts = LabelGroup(np.arange(0), np.arange(0), one.Z, one.T, tables.Z, around)
            n = float(len(one.Z))
            kernel = around.from_records(one.T, one.Z, tables.Z, n, MEMBER_PRIOR)
            return compute_support(parts, kernel, n)[2]

        return tables.measure_by_class(measure, NO_ROW_LOG_ODDS)

    return odds


def compute_features(tables: MembershipTables, odds: Odds | None) -> Features:
    """The higher, the likelier a member; "isolation" alone says nothing of that."""
    near, far = np.full((2, len(tables.T), 2), _MISSING_DISTANCE)
    for code in np.unique(tables.target_label).tolist():
        people, one = tables.select_class(code)
        near[people] = _measure_distances(one.T / one.unit, one.Z / one.unit)
        far[people] = _measure_distances(one.T / one.unit, one.R / one.unit)
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
    """To the closest and to the fifth closest row of Z (or the farthest, if fewer); (t, 2)."""
    found = np.full((len(T), 2), _MISSING_DISTANCE)
    k = min(NEIGHBOUR_RANK, len(Z))
    if k:
        for people, D in squared_distances(T, Z):
            nearest = np.partition(D, k - 1, axis=1)[:, :k] if k < len(Z) else D
            found[people] = np.column_stack([nearest.min(axis=1), nearest.max(axis=1)])
        found = np.sqrt(found)
    return found

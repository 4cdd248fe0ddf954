"""Noise draws on the same rows from several releases, brought into one space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, EarlierRows
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.linear_map import (
    compute_components,
    has_map,
    has_same_map,
    invert,
    noise_variance,
    project,
)

_SAME_DRAW_TOLERANCE = 1e-6  # of the noise scale: rounding may change the same draw


@dataclass(frozen=True, eq=False)
class RowDraws:
    """All draws of all rows, one below the other; every row has at least one."""

    m: int
    row: Ints  # (v,) in order
    Z: Floats  # (v, s) NaN where a column was not released
    precision: Floats  # (v, s) one over the variance of the noise; all 1 if one is unknown
    scale: Floats  # (v, s) of the noise
    has_current_noise: NDArray[np.bool_]  # (v,) map and distribution as in the current release

    def select(self, keep: NDArray[np.bool_]) -> RowDraws:
        """Return the draws that are marked."""
        return RowDraws(
            self.m,
            self.row[keep],
            self.Z[keep],
            self.precision[keep],
            self.scale[keep],
            self.has_current_noise[keep],
        )

    def sum_by_row(self, values: Floats) -> Floats:
        """Return the sums over the draws of each row, (m, s); NaN counts as 0."""
        columns = [np.bincount(self.row, column, self.m) for column in np.nan_to_num(values).T]
        return np.stack(columns, axis=1)

    def weighted_mean(self, weight: Floats) -> Floats:
        """Return the weighted mean over the draws of each row, (m, s)."""
        weight = np.where(np.isnan(self.Z), 0.0, weight)
        return self.sum_by_row(weight * self.Z) / self.sum_by_row(weight)

    def weighted_median(self, weight: Floats | None = None) -> Floats:
        """Return the weighted median over the draws of each row, (m, s).

        Half of the weight is on either side; between two values it is their middle.
        """
        found = np.empty((self.m, self.Z.shape[1]))
        for j, z in enumerate(self.Z.T):
            present = np.flatnonzero(~np.isnan(z))
            order = present[np.lexsort((z[present], self.row[present]))]
            w = np.ones(len(order)) if weight is None else weight[order, j]
            found[:, j] = _grouped_medians(self.row[order], z[order], w, self.m)
        return found

    def find_extreme(self, values: Floats, *, largest: bool) -> Floats:
        """Return the largest or smallest value over the draws of each row, (m, s)."""
        sign = 1.0 if largest else -1.0
        found = np.full((self.m, values.shape[1]), -np.inf)
        present = np.where(np.isnan(values), -np.inf, sign * values)
        np.maximum.at(found, self.row, present)
        return sign * found


def _grouped_medians(row: Ints, z: Floats, weight: Floats, m: int) -> Floats:
    """Return the weighted median of each row, for values sorted by row and then by size."""
    below = np.cumsum(weight)
    ends = np.cumsum(np.bincount(row, minlength=m))
    starts = np.concatenate([[0], ends[:-1]])
    before = np.concatenate([[0.0], below])[starts]
    half = before + (below[ends - 1] - before) / 2
    slack = 1e-12 * below[-1]
    first = np.clip(np.searchsorted(below, half - slack), starts, ends - 1)
    last = np.clip(np.searchsorted(below, half + slack, side="right"), starts, ends - 1)
    return np.asarray((z[first] + z[last]) / 2)


def gather_draws(view: AttackerView) -> RowDraws:
    """Return the current rows and all comparable earlier ones, each draw once."""
    now, m = view.public, len(view.Y)
    Y = compute_components(view) if has_map(now) else view.Y
    parts = [EarlierRows(np.arange(m), Y, now), *_bring_into_current_space(view)]
    precision, scale = _noise_of_parts(parts, now)
    counts = [len(part.rows) for part in parts]
    row = np.concatenate([part.rows for part in parts])
    Z = np.concatenate([part.Y for part in parts])
    number = np.repeat(np.arange(len(parts)), counts)
    is_same = np.array([is_same_noise(part.public, now) for part in parts])
    order = np.lexsort((Z[:, 0], row))
    row, Z, number = row[order], Z[order], number[order]
    while len(repeats := _find_repeats(row, Z, number, _SAME_DRAW_TOLERANCE * scale[0])):
        row, Z, number = (np.delete(array, repeats, axis=0) for array in (row, Z, number))
    return RowDraws(m, row, Z, precision[number], scale[number], is_same[number])


def _find_repeats(row: Ints, Z: Floats, number: Ints, slack: Floats) -> Ints:
    """Return which of two neighbours that are the same draw comes from the later part."""
    with np.errstate(invalid="ignore"):
        is_close = (np.abs(np.diff(Z, axis=0)) <= slack).all(axis=1) & (np.diff(row) == 0)
    first = np.flatnonzero(is_close)
    return np.unique(np.where(number[first + 1] > number[first], first + 1, first))


def _bring_into_current_space(view: AttackerView) -> list[EarlierRows]:
    """Return the earlier rows in the space of the current release, where that is possible."""
    now, found = view.public, []
    for version in view.earlier_releases or ():
        then = version.public
        if has_same_map(then, now):
            is_back = has_map(now) and then.space == "original"
            Z = project(now, version.Y) if is_back else version.Y
        elif has_map(then) or then.space == "original":
            X = version.Y if then.space == "original" else invert(then, version.Y)
            Z = _project_onto_current_map(now, X)
        else:
            continue
        present = ~np.isnan(Z).all(axis=1)
        found.append(EarlierRows(version.rows[present], np.array(Z)[present], then))
    return found


def _project_onto_current_map(now: PublicParameters, X: Floats) -> Floats:
    """Map original columns by the current map.

    A diagonal map is applied column by column, so that an unknown column makes no other unknown.
    """
    if now.loadings is None or now.centre is None:
        return X
    L = now.loadings
    if L.shape[0] == L.shape[1] and np.array_equal(L, np.diag(np.diag(L))):
        return np.asarray((X - now.centre) * np.diag(L))
    return project(now, X)


def is_same_noise(one: PublicParameters, other: PublicParameters) -> bool:
    """Return whether both have the same noise distribution on the same components.

    The scales may differ.
    """
    has_same_distribution = (one.law, one.facts.get("nu")) == (other.law, other.facts.get("nu"))
    return has_same_distribution and has_same_map(one, other)


def _noise_of_parts(parts: list[EarlierRows], now: PublicParameters) -> tuple[Floats, Floats]:
    """Return the inverse variance of each part's noise in current components, and its scale."""
    s = parts[0].Y.shape[1]
    scale = np.ones((len(parts), s))
    for number, part in enumerate(parts):
        if part.public.scales is not None and is_same_noise(part.public, now):
            scale[number] = read_noise(part.public).scales
    try:
        variance = np.stack([_variance_in_current_space(part.public, now) for part in parts])
    except NotApplicable:
        return np.ones((len(parts), s)), scale
    return 1 / variance, scale


def _variance_in_current_space(then: PublicParameters, now: PublicParameters) -> Floats:
    """Return the variance of the noise of one release in the components of another; never 0."""
    variance = np.maximum(noise_variance(then), 1e-18)
    if has_same_map(then, now) or then.loadings is None or now.loadings is None:
        return variance
    across = np.linalg.pinv(then.loadings) @ now.loadings  # (s then, s now)
    return np.asarray(np.maximum(variance @ across**2, 1e-18))

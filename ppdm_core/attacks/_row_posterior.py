"""Posterior of the original values behind each released row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Effort
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.numerics.linear_map import (
    compute_components,
    get_centre_and_loadings,
    has_map,
    has_noise,
    invert,
)
from ppdm_core.numerics.neighbours import find_nearest_rows
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS

_RECONSTRUCTIONS: dict[Effort, int] = {"quick": 1, "standard": 2, "thorough": 4}
_GAP_SAMPLE_ROWS = 500  # to estimate the gap between neighbouring rows
RELATIVE_ROUNDING = 1e-9  # of a column's width
_MIN_RELATIVE_ERROR = 1e-6  # of a column's range: an exact copy still has rounded digits


@dataclass(frozen=True, eq=False)
class RowPosterior:
    """Normal distribution around the mean of each row, with one covariance for all rows."""

    mean: Floats  # (m, d)
    covariance: Floats  # (d, d)
    is_filtered: bool = False  # as exact as the covariance says

    def place_points(self, X: Floats, columns: Ints) -> tuple[Floats, Floats]:
        """Place persons and rows so that squared distances are minus log likelihoods.

        The likelihood is that of the known columns, up to a constant.
        """
        W = np.linalg.cholesky(np.linalg.inv(self.covariance[np.ix_(columns, columns)]) / 2)
        return X @ W, self.mean[:, columns] @ W


def list_reconstructions(view: AttackerView) -> Mapping[str, Floats]:
    """Return the release in the original columns by name, best estimate first."""
    d = len(view.schema.numeric)
    if view.fitted.reconstructions:
        return view.reconstructions
    if view.public.space == "original" and view.Y.shape[1] == d:
        return {"released": view.Y}
    raise NotApplicable(f"{view.public.method} is not released in the original columns.")


def read_noisy_columns(view: AttackerView) -> Floats | None:
    """Return the original columns with all their noise, mapped back where the map is public."""
    if has_map(view.public):
        return invert(view.public, compute_components(view))
    is_same = view.public.space == "original" and view.Y.shape[1] == len(view.schema.numeric)
    return view.Y if is_same else None


def find_verbatim_values(view: AttackerView, X: Floats, X_hat: Floats) -> NDArray[np.bool_]:
    """Return which values of the records stand in the released column, to the last digits; (t, d).

    Only columns count in which most rows have a unique value: elsewhere it tells nothing.
    """
    found = np.zeros(X.shape, dtype=np.bool_)
    slack = RELATIVE_ROUNDING * view.schema.widths
    for j, column in enumerate(X_hat.T):
        value = np.unique(column)
        if 2 * len(value) > len(column):
            near = np.searchsorted(value, X[:, j] - slack[j]).clip(max=len(value) - 1)
            found[:, j] = np.abs(value[near] - X[:, j]) <= slack[j]
    return found


def list_posteriors(view: AttackerView, rows: Ints) -> dict[str, RowPosterior]:
    """Return posteriors of these rows by name.

    These are the first two reconstructions as they are (quick 1, thorough 4), and ``filtered``
    where map and noise are public, in place of the second one unless thorough.
    """
    found, most = {}, _RECONSTRUCTIONS[view.effort]
    if can_filter(view):
        found["filtered"] = filter_noise(view, rows)
        most = most if view.effort == "thorough" else 1
    for name, X_hat in list(list_reconstructions(view).items())[:most]:
        found[name] = assume_gap_error(X_hat[rows], view.schema.widths)
    return found


def assume_gap_error(X_hat: Floats, widths: Floats) -> RowPosterior:
    """Return a posterior whose error is half the typical distance between neighbouring rows."""
    units = np.where(widths > 0, widths, 1.0)
    F = X_hat / units
    some = F[:: -(-len(F) // _GAP_SAMPLE_ROWS) or 1]
    gap = find_nearest_rows(some, F, 2)[1][:, -1]
    spread = max(float(np.median(gap)) / 4 / max(F.shape[1], 1), _MIN_RELATIVE_ERROR**2)
    return RowPosterior(X_hat, np.diag(spread * units**2))


def can_filter(view: AttackerView) -> bool:
    """Return whether map and noise are public and the noise has a variance."""
    public = view.public
    if not has_map(public) or not has_noise(public) or public.law not in SAMPLED_DISTRIBUTIONS:
        return False
    return read_noise(public).has_variance and len(view.schema.numeric) > 0


def filter_noise(view: AttackerView, rows: Ints) -> RowPosterior:
    """Return linear minimum mean square error estimates from the components, and their errors.

    Directions that the map drops are taken to be as in the persons outside the release, if these
    are known, else at the centre, and to vary half as much as the least direction that is kept.
    """
    centre, L = get_centre_and_loadings(view.public)
    s = L.shape[1]
    Z = compute_components(view)
    basis = Z[rows] if len(rows) >= 5 * (s + 1) else Z
    if view.basis is not None:
        basis = compute_components(view.basis)
    noise = np.diag(read_noise(view.public).variance)
    # A variance below the error of its estimate is set to that error.
    least = max(float(np.trace(noise)) / s * min(1.0, (s / len(basis)) ** 0.5), 1e-12)
    mean = basis.mean(axis=0)
    S = (basis - mean).T @ (basis - mean) / max(len(basis) - 1, 1)
    values, vectors = decompose_symmetric(S - noise)
    values = np.maximum(values, least)
    signal = (vectors * values) @ vectors.T  # (s, s)
    back = np.linalg.pinv(L)  # (s, d)
    drift, prior = _estimate_dropped_directions(view, signal, float(values.min()) / 2, rows)
    prior += back.T @ signal @ back
    gain = np.linalg.solve(L.T @ prior @ L + noise, L.T @ prior)  # (s, d)
    covariance = prior - prior @ L @ gain
    covariance = (covariance + covariance.T) / 2 + 1e-6 * least * np.eye(len(L))
    X_hat = centre + drift + mean @ back + (Z[rows] - mean) @ gain
    return RowPosterior(X_hat, covariance, is_filtered=True)


def _estimate_dropped_directions(
    view: AttackerView, signal: Floats, rest: float, rows: Ints
) -> tuple[Floats, Floats]:
    """Return mean (d,) and additional covariance (d, d) of the directions that the map drops."""
    centre, L = get_centre_and_loadings(view.public)
    d, s = L.shape
    off = np.eye(d) - L @ np.linalg.pinv(L)
    others = view.sample
    if view.reference is not None:
        X, label = view.reference.X, view.reference.label
        same = np.isin(label, view.label[rows])
        others = X[same] if same.sum() >= d else X
    if d == s or others is None or len(others) < 2:
        return np.zeros(d), rest * off
    away = (others - centre) @ off
    least = float(np.trace(signal)) / s * 1e-6
    V = np.cov(away.T) if len(others) >= 5 * d else off * away.var(axis=0).sum() / (d - s)
    return away.mean(axis=0), V + least * off

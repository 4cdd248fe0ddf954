"""The public model of kernel resampling: the distribution of rows around their records.

The rule for the bandwidths is public, the bandwidths are not. They follow from the spread of the
rows, whose variance is that of the records plus h^2 / 5, or from the spread of known records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.distances import row_slices
from ppdm_core.sanitizers.kde_resample import KdeResample, kernel_correction, normal_reference

Pairs = tuple[Ints, Ints, Floats]  # row, record, log likelihood; sorted by row, then record

_KERNEL_VARIANCE = 0.2
ROUNDING_SHARE = 1e-9  # of a column's width: what rounding may move
_MAX_KNOWN_ERROR = 0.01  # bandwidths with a smaller relative error count as known
_MAX_ERROR = 0.5
_NODES = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # quadrature nodes of a normal error, in deviations
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
_MAX_SCANNED_SHARE = 0.03  # with fewer remaining pairs, they are tested one by one
_PIECE_PAIRS = 2**17  # pairs that are tested together
MIN_SPREAD_ROWS = 10  # in a class: the spread of fewer rows is not reliable


def is_resampled(public: PublicParameters) -> bool:
    """Return whether rows were sampled from a kernel density estimate."""
    return public.method == KdeResample.name or public.facts.get("kernel") == "epanechnikov"


def check_resampled(name: str, view: AttackerView) -> None:
    """Raise NotApplicable unless rows were sampled around records."""
    if not is_resampled(view.public) or view.Y.shape[1] != len(view.schema.numeric):
        raise NotApplicable(
            f"The attack {name} needs rows that {KdeResample.name} sampled around records."
        )


@dataclass(frozen=True)
class BandwidthRule:
    """The published rule that gives bandwidths from deviations."""

    is_corrected: bool
    floor: float  # as a share of a column's width

    @classmethod
    def from_public(cls, public: PublicParameters) -> BandwidthRule:
        floor = float(public.facts.get("floor", 0.0))
        return cls(public.facts.get("bandwidth", "corrected") != "paper", floor)

    def factor(self, n: float, d: int) -> float:
        """Return the bandwidth in deviations of ``n`` records."""
        plain = float(normal_reference(np.array(max(n, 1.0)), d))
        return plain * kernel_correction(d) if self.is_corrected else plain

    def compute_from_records(self, deviation: Floats, n: float, widths: Floats) -> Floats:
        """Return bandwidths from the deviations of records."""
        h = self.factor(n, len(deviation)) * deviation
        return np.asarray(np.maximum(h, self.floor * widths))

    def compute_from_rows(self, deviation: Floats, n: float, widths: Floats) -> Floats:
        """Return bandwidths from the deviations of rows: v = s^2 + h^2 / 5 and h = a s give s^2."""
        spread = 1.0 + _KERNEL_VARIANCE * self.factor(n, len(deviation)) ** 2
        return self.compute_from_records(deviation / np.sqrt(spread), n, widths)


@dataclass(frozen=True, eq=False)
class Kernel:
    """The distribution of the rows of one class around their records."""

    h: Floats  # (d,)
    error: Floats  # (d,) relative error of h
    half: Floats  # (d,) half the width of what is rounded to a value; 0: no rounding
    low: Floats  # (d,) bounds; values beyond them are moved to them
    high: Floats  # (d,)

    @property
    def reach(self) -> Floats:
        """Largest distance of a row from its record, with a margin for the error of h."""
        return np.asarray(self.h * np.exp(2.0 * self.error) + 2.0 * self.half)

    def is_atom(self, y: Floats, j: int) -> NDArray[np.bool_]:
        """Return which cells of column j have a probability; the others have a density."""
        half, low, high = self.half[j], self.low[j], self.high[j]
        if half > 0:
            return np.ones(len(y), dtype=np.bool_)
        slack = ROUNDING_SHARE * (high - low)
        return np.asarray((np.abs(y - low) <= slack) | (np.abs(y - high) <= slack))

    def log_likelihood(self, y: Floats, x: Floats) -> Floats:
        """Return the log likelihood of each row given the record in the same line, (p,)."""
        total = np.zeros(len(y))
        sure = self.error < _MAX_KNOWN_ERROR
        for j in range(len(self.h)):
            if sure[j]:
                likely = self._column_likelihood(y[:, j], x[:, j], j, np.exp(2.0 * self.error[j]))
            else:
                factors = np.exp(_NODES * self.error[j])
                parts = (self._column_likelihood(y[:, j], x[:, j], j, factor) for factor in factors)
                likely = np.asarray(
                    sum(w * p for w, p in zip(_WEIGHTS.tolist(), parts, strict=True))
                )
            with np.errstate(divide="ignore"):
                total += np.log(likely)
        return total

    def _column_likelihood(self, y: Floats, x: Floats, j: int, factor: float) -> Floats:
        h, half = self.h[j] * factor, self.half[j]
        u = (y - x) / h
        density = 0.75 * np.maximum(1.0 - u**2, 0.0) / h
        atom = self.is_atom(y, j)
        if not atom.any():
            return np.asarray(density)
        top, bottom = y[atom] + half, y[atom] - half
        slack = ROUNDING_SHARE * (self.high[j] - self.low[j])
        # A bound need not be an integer: then the last integer inside takes what is beyond.
        is_top = (top + half > self.high[j] + slack) | (top >= self.high[j] - slack)
        is_bottom = (bottom - half < self.low[j] - slack) | (bottom <= self.low[j] + slack)
        upper = np.where(is_top, 1.0, _kernel_cdf((top - x[atom]) / h))
        lower = np.where(is_bottom, 0.0, _kernel_cdf((bottom - x[atom]) / h))
        density[atom] = np.maximum(upper - lower, 0.0)
        return np.asarray(density)

    def find_pairs(self, Y: Floats, X: Floats) -> Iterator[tuple[slice, Pairs]]:
        """Yield, for a few rows at a time, all records they may come from; rows count from 0."""
        order = np.argsort(self.reach / np.maximum(Y.std(axis=0), 1e-300), kind="stable")
        for rows in row_slices(len(Y), len(X)):
            part = Y[rows]
            row, record = _find_pairs_in_reach(part, X, self.reach, order)
            likely = self.log_likelihood(part[row], X[record])
            possible = likely > -np.inf
            yield rows, (row[possible], record[possible], likely[possible])


def _kernel_cdf(u: Floats) -> Floats:
    u = np.clip(u, -1.0, 1.0)
    return np.asarray((2.0 + 3.0 * u - u**3) / 4.0)


def _find_pairs_in_reach(Y: Floats, X: Floats, reach: Floats, order: Ints) -> tuple[Ints, Ints]:
    """Return pairs of rows and records that are near in every column, and few that are not.

    The most selective columns are tested first, in single precision with a margin for it, and on
    pieces that fit the processor's cache.
    """
    slack = 1e-5 * reach + 1e-6 * np.maximum(np.abs(X).max(axis=0, initial=0.0), 1e-300)
    limit = (reach + slack).astype(np.float32)
    A, B = Y.astype(np.float32), X.astype(np.float32).T.copy()  # (m, d), (d, t)
    size = max(1, _PIECE_PAIRS // max(len(X), 1))
    found = [_find_near_pairs(A[i : i + size], B, limit, order, i) for i in range(0, len(A), size)]
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def _find_near_pairs(
    A: NDArray[np.float32], B: NDArray[np.float32], limit: NDArray[np.float32], order: Ints, at: int
) -> tuple[Ints, Ints]:
    columns = iter(order.tolist())
    near = np.ones((len(A), B.shape[1]), dtype=np.bool_)
    for j in columns:
        gap = np.subtract(A[:, j, None], B[j])
        near &= np.abs(gap, out=gap) <= limit[j]
        if np.count_nonzero(near) < _MAX_SCANNED_SHARE * near.size:
            break
    row, record = np.nonzero(near)
    for j in columns:
        keep = np.abs(A[row, j] - B[j, record]) <= limit[j]
        row, record = row[keep], record[keep]
    return row + at, record


@dataclass(frozen=True, eq=False)
class KernelSetting:
    """What all classes of a release have in common: rule, widths, steps and bounds."""

    rule: BandwidthRule
    widths: Floats
    step: Floats  # (d,) distance of neighbouring values, 0 without a grid
    low: Floats
    high: Floats

    @classmethod
    def from_public(cls, public: PublicParameters, schema: Schema, Y: Floats) -> KernelSetting:
        whole = [name in public.whole for name in public.columns]
        step = np.array([_find_least_gap(y) if w else 0.0 for y, w in zip(Y.T, whole, strict=True)])
        return cls(
            BandwidthRule.from_public(public), schema.widths, step, schema.lows, schema.highs
        )

    def make_kernel(self, h: Floats, error: Floats) -> Kernel:
        """Return the kernel with these bandwidths; columns that do not move must match exactly."""
        tolerance = ROUNDING_SHARE * self.widths
        half = np.where(h > tolerance, self.step / 2.0, np.maximum(self.step / 2.0, tolerance))
        is_floor = h <= self.rule.floor * self.widths  # which is published
        error = np.where((h > tolerance) & ~is_floor, error, 0.0)
        return Kernel(np.maximum(h, tolerance / 2.0), error, half, self.low, self.high)

    def estimate_from_rows(self, Y: Floats, Y_all: Floats, n: float) -> Kernel:
        """Estimate the kernel from the rows of a class; ``Y_all`` are the rows of all classes."""
        h, error = np.zeros(Y.shape[1]), np.full(Y.shape[1], _MAX_ERROR)
        if len(Y) > 1:
            h = self.rule.compute_from_rows(Y.std(axis=0, ddof=1), n, self.widths)
            slack = ROUNDING_SHARE * self.widths  # rows on a bound were clipped
            is_bound = (self.low + slack >= Y) | (self.high - slack <= Y)
            error = _compute_deviation_error(Y, 1 / len(Y) + 1 / n) + is_bound.mean(axis=0) / 4
        if (
            len(Y) < MIN_SPREAD_ROWS or not h.any()
        ):  # the class may have one record or equal records
            h = np.maximum(h, self._bandwidths_of_all(Y_all, n))
        return self.make_kernel(h, np.minimum(error, _MAX_ERROR))

    def _bandwidths_of_all(self, Y_all: Floats, n: float) -> Floats:
        """Return the bandwidths of all records, which a class of equal records uses."""
        if len(Y_all) < 2:
            return np.zeros(Y_all.shape[1])
        spread = Y_all.std(axis=0, ddof=1)
        return self.rule.compute_from_rows(spread, max(n, len(Y_all)), self.widths)

    def estimate_from_records(
        self, X: Floats, Y: Floats, Y_all: Floats, n: float, members: float = 1.0
    ) -> Kernel:
        """Estimate the kernel from known records of a class, in the columns where they vary.

        ``members`` is the share of them that is among the ``n`` records that rows come from.
        """
        kernel = self.estimate_from_rows(Y, Y_all, n)
        deviation = X.std(axis=0, ddof=1) if len(X) > 1 else np.zeros(X.shape[1])
        if len(X) > 0 and not deviation.any():
            wide = self.make_kernel(self._bandwidths_of_all(Y_all, n), kernel.error)
            return replace(kernel, h=np.maximum(kernel.h, wide.h))
        if len(X) < 2:
            return kernel
        h = self.rule.compute_from_records(deviation, n, self.widths)
        # The variance of a difference of two means that have some records in common.
        share = max(1 / len(X) + (1.0 - 2.0 * members) / n, 0.0)
        error = np.minimum(_compute_deviation_error(X, share), _MAX_ERROR)
        used = deviation > ROUNDING_SHARE * self.widths
        found = self.make_kernel(h, error)
        return replace(
            kernel,
            h=np.where(used, found.h, kernel.h),
            error=np.where(used, found.error, kernel.error),
            half=np.where(used, found.half, kernel.half),
        )


def _find_least_gap(y: Floats) -> float:
    gaps = np.diff(np.unique(y))
    gaps = gaps[gaps > 1e-6 * max(float(np.ptp(y)), 1e-300)]
    return float(gaps.min()) if len(gaps) else 0.0


def _compute_deviation_error(X: Floats, share: float) -> Floats:
    """Return the relative error of a deviation, from the column's fourth moment."""
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    unit = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    kurtosis = np.clip((unit**4).mean(axis=0), 1.0, 100.0)
    return np.asarray(np.sqrt((kurtosis - 1.0) / 4.0 * share))

"""What anybody can work out about kernel resampling: how far rows lie from their records.

The rule for the bandwidths is public, the bandwidths are not. They follow from the spread of the
rows, which is that of the records and h^2 / 5 more, or from the spread of records that are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import Public
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.distances import row_slices
from ppdm_core.sanitizers.kde_resample import kernel_correction, normal_reference

Pairs = tuple[Ints, Ints, Floats]  # row, person, log of the row's likelihood; by rows, then people

_KERNEL_VARIANCE = 0.2
SMALL = 1e-9  # of a column's width: what rounding may move
_SURE = 0.01  # bandwidths that are known better than this are taken as known
_MOST_DOUBT = 0.5
_NODES = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # of a normal error, in its deviations
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
_FEW_PAIRS = 0.03  # share that is left when it pays to look at the pairs one by one
_PIECE = 2**17  # pairs that are looked at in one go
FEW_ROWS = 10  # in a class: the spread of so few tells little


def is_resampled(public: Public) -> bool:
    return public.method == "kde_resample" or public.facts.get("kernel") == "epanechnikov"


def check_resampled(name: str, view: AttackerView) -> None:
    if not is_resampled(view.public) or view.Y.shape[1] != len(view.schema.numeric):
        raise NotApplicable(
            f"The attack {name} needs rows that were drawn by kde_resample around records."
        )


@dataclass(frozen=True)
class Rule:
    """The published way from deviations to bandwidths."""

    is_corrected: bool
    floor: float  # as a share of a column's width

    @classmethod
    def of(cls, public: Public) -> Rule:
        floor = float(public.facts.get("floor", 0.0))
        return cls(public.facts.get("bandwidth", "corrected") != "paper", floor)

    def factor(self, n: float, d: int) -> float:
        """Bandwidth in deviations of ``n`` records."""
        plain = float(normal_reference(np.array(max(n, 1.0)), d))
        return plain * kernel_correction(d) if self.is_corrected else plain

    def of_records(self, deviation: Floats, n: float, widths: Floats) -> Floats:
        h = self.factor(n, len(deviation)) * deviation
        return np.asarray(np.maximum(h, self.floor * widths))

    def of_rows(self, deviation: Floats, n: float, widths: Floats) -> Floats:
        """The same from the spread of rows: v = s^2 + h^2 / 5 and h = a s give s^2."""
        spread = 1.0 + _KERNEL_VARIANCE * self.factor(n, len(deviation)) ** 2
        return self.of_records(deviation / np.sqrt(spread), n, widths)


@dataclass(frozen=True, eq=False)
class Kernel:
    """How the rows of one class lie around their records."""

    h: Floats  # (d,)
    doubt: Floats  # (d,) relative error of h
    half: Floats  # (d,) a value stands for all that are rounded to it; 0: for itself
    low: Floats  # (d,) bounds, which stand for all that is beyond them
    high: Floats  # (d,)

    @property
    def reach(self) -> Floats:
        """No row is farther from its record, as far as one can tell."""
        return np.asarray(self.h * np.exp(2.0 * self.doubt) + 2.0 * self.half)

    def is_atom(self, y: Floats, j: int) -> NDArray[np.bool_]:
        """Cells of column j with a probability of their own; the others have a density."""
        half, low, high = self.half[j], self.low[j], self.high[j]
        if half > 0:
            return np.ones(len(y), dtype=np.bool_)
        slack = SMALL * (high - low)
        return np.asarray((np.abs(y - low) <= slack) | (np.abs(y - high) <= slack))

    def log_likelihood(self, y: Floats, x: Floats) -> Floats:
        """Of rows given their records, line by line, (p,)."""
        total = np.zeros(len(y))
        sure = self.doubt < _SURE
        for j in range(len(self.h)):
            if sure[j]:
                likely = self._column(y[:, j], x[:, j], j, np.exp(2.0 * self.doubt[j]))
            else:
                factors = np.exp(_NODES * self.doubt[j])
                parts = (self._column(y[:, j], x[:, j], j, factor) for factor in factors)
                likely = np.asarray(
                    sum(w * p for w, p in zip(_WEIGHTS.tolist(), parts, strict=True))
                )
            with np.errstate(divide="ignore"):
                total += np.log(likely)
        return total

    def _column(self, y: Floats, x: Floats, j: int, factor: float) -> Floats:
        h, half = self.h[j] * factor, self.half[j]
        u = (y - x) / h
        density = 0.75 * np.maximum(1.0 - u**2, 0.0) / h
        atom = self.is_atom(y, j)
        if not atom.any():
            return np.asarray(density)
        top, bottom = y[atom] + half, y[atom] - half
        slack = SMALL * (self.high[j] - self.low[j])
        # A bound need not be a whole number: then the last one before it takes what is beyond.
        is_top = (top + half > self.high[j] + slack) | (top >= self.high[j] - slack)
        is_bottom = (bottom - half < self.low[j] - slack) | (bottom <= self.low[j] + slack)
        upper = np.where(is_top, 1.0, _below((top - x[atom]) / h))
        lower = np.where(is_bottom, 0.0, _below((bottom - x[atom]) / h))
        density[atom] = np.maximum(upper - lower, 0.0)
        return np.asarray(density)

    def pairs(self, Y: Floats, X: Floats) -> Iterator[tuple[slice, Pairs]]:
        """For a few rows at a time, all people who can be behind them; rows count from 0."""
        order = np.argsort(self.reach / np.maximum(Y.std(axis=0), 1e-300), kind="stable")
        for rows in row_slices(len(Y), len(X)):
            part = Y[rows]
            row, person = _in_reach(part, X, self.reach, order)
            likely = self.log_likelihood(part[row], X[person])
            possible = likely > -np.inf
            yield rows, (row[possible], person[possible], likely[possible])


def _below(u: Floats) -> Floats:
    u = np.clip(u, -1.0, 1.0)
    return np.asarray((2.0 + 3.0 * u - u**3) / 4.0)


def _in_reach(Y: Floats, X: Floats, reach: Floats, order: Ints) -> tuple[Ints, Ints]:
    """Pairs that are near in every column, and few that are not; the most telling columns first.

    In single precision, with a margin for it, and on pieces that fit the processor's cache.
    """
    slack = 1e-5 * reach + 1e-6 * np.maximum(np.abs(X).max(axis=0, initial=0.0), 1e-300)
    limit = (reach + slack).astype(np.float32)
    A, B = Y.astype(np.float32), X.astype(np.float32).T.copy()  # (m, d), (d, t)
    size = max(1, _PIECE // max(len(X), 1))
    found = [_near(A[i : i + size], B, limit, order, i) for i in range(0, len(A), size)]
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def _near(
    A: NDArray[np.float32], B: NDArray[np.float32], limit: NDArray[np.float32], order: Ints, at: int
) -> tuple[Ints, Ints]:
    columns = iter(order.tolist())
    near = np.ones((len(A), B.shape[1]), dtype=np.bool_)
    for j in columns:
        gap = np.subtract(A[:, j, None], B[j])
        near &= np.abs(gap, out=gap) <= limit[j]
        if np.count_nonzero(near) < _FEW_PAIRS * near.size:
            break
    row, person = np.nonzero(near)
    for j in columns:
        keep = np.abs(A[row, j] - B[j, person]) <= limit[j]
        row, person = row[keep], person[keep]
    return row + at, person


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What is the same for all classes of a release."""

    rule: Rule
    widths: Floats
    step: Floats  # (d,) distance of neighbouring values, 0 where there is none
    low: Floats
    high: Floats

    @classmethod
    def of(cls, public: Public, schema: Schema, Y: Floats) -> Surroundings:
        whole = [name in public.whole for name in public.columns]
        step = np.array([_least_gap(y) if w else 0.0 for y, w in zip(Y.T, whole, strict=True)])
        return cls(Rule.of(public), schema.widths, step, schema.lows, schema.highs)

    def kernel(self, h: Floats, doubt: Floats) -> Kernel:
        """Columns that do not move at all are told apart from others by their values alone."""
        tolerance = SMALL * self.widths
        half = np.where(h > tolerance, self.step / 2.0, np.maximum(self.step / 2.0, tolerance))
        is_floor = h <= self.rule.floor * self.widths  # which is published
        doubt = np.where((h > tolerance) & ~is_floor, doubt, 0.0)
        return Kernel(np.maximum(h, tolerance / 2.0), doubt, half, self.low, self.high)

    def from_rows(self, Y: Floats, everybody: Floats, n: float) -> Kernel:
        """Bandwidths from the rows of a class; ``everybody`` are the rows of all classes."""
        h, doubt = np.zeros(Y.shape[1]), np.full(Y.shape[1], _MOST_DOUBT)
        if len(Y) > 1:
            h = self.rule.of_rows(Y.std(axis=0, ddof=1), n, self.widths)
            slack = SMALL * self.widths  # rows on a bound lie less far out than they were drawn
            is_bound = (self.low + slack >= Y) | (self.high - slack <= Y)
            doubt = _doubt(Y, 1 / len(Y) + 1 / n) + is_bound.mean(axis=0) / 4
        if len(Y) < FEW_ROWS or not h.any():  # perhaps a lonely class
            h = np.maximum(h, self._of_all(everybody, n))
        return self.kernel(h, np.minimum(doubt, _MOST_DOUBT))

    def _of_all(self, everybody: Floats, n: float) -> Floats:
        """The bandwidths of all records, which a class takes whose records are all equal."""
        if len(everybody) < 2:
            return np.zeros(everybody.shape[1])
        spread = everybody.std(axis=0, ddof=1)
        return self.rule.of_rows(spread, max(n, len(everybody)), self.widths)

    def from_records(
        self, X: Floats, Y: Floats, everybody: Floats, n: float, members: float = 1.0
    ) -> Kernel:
        """Bandwidths from held records of a class, where they vary.

        ``members`` is the share of them that is among the ``n`` records behind the rows.
        """
        kernel = self.from_rows(Y, everybody, n)
        deviation = X.std(axis=0, ddof=1) if len(X) > 1 else np.zeros(X.shape[1])
        if len(X) > 0 and not deviation.any():
            wide = self.kernel(self._of_all(everybody, n), kernel.doubt)
            return replace(kernel, h=np.maximum(kernel.h, wide.h))
        if len(X) < 2:
            return kernel
        h = self.rule.of_records(deviation, n, self.widths)
        # The variance of a difference of two means that have some records in common.
        share = max(1 / len(X) + (1.0 - 2.0 * members) / n, 0.0)
        doubt = np.minimum(_doubt(X, share), _MOST_DOUBT)
        used = deviation > SMALL * self.widths
        found = self.kernel(h, doubt)
        return replace(
            kernel,
            h=np.where(used, found.h, kernel.h),
            doubt=np.where(used, found.doubt, kernel.doubt),
            half=np.where(used, found.half, kernel.half),
        )


def _least_gap(y: Floats) -> float:
    gaps = np.diff(np.unique(y))
    gaps = gaps[gaps > 1e-6 * max(float(np.ptp(y)), 1e-300)]
    return float(gaps.min()) if len(gaps) else 0.0


def _doubt(X: Floats, share: float) -> Floats:
    """Relative error of a deviation, by the column's fourth moment."""
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    unit = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    kurtosis = np.clip((unit**4).mean(axis=0), 1.0, 100.0)
    return np.asarray(np.sqrt((kurtosis - 1.0) / 4.0 * share))

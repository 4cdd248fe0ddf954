from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._record_seeds import measure_record_seeds
from ppdm_core.metrics._release import check_comparison
from ppdm_core.metrics._row_seeds import (
    measure_any_seeds,
    measure_consecutive_seeds,
    measure_numbered_rows,
    scale_rows,
    score_agreement,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.derived_streams import draw_children, draw_late_streams
from ppdm_core.numerics.seeded_streams import (
    MAX_LENGTH,
    STREAMS,
    draw_all_seeds,
    draw_stream,
)

_VALUES = 128  # of the noise that are compared
_MIN_VALUES = 40
_ROWS = 300  # whose record may give the seed of their noise
_MAX_ROWS = 2_000  # whose number may be the seed of their noise
_CONFIRMED_SEEDS = 20  # of each stream
_SCREENED_ORDERS = 64  # at once
_MAX_COLUMNS = 24  # of which all consecutive ones are compared; of more, some
_NORMAL_DEVIATION = 1.4826  # of normal numbers, in median sizes
_MAX_UNITS = 4.0
_MIN_DISTINCT = 20  # values of a column that is no category
_PROBABILITY = 1e-10  # of an agreement by chance, over all that are tried
_MAX_DEVIATIONS = 6.8  # of a correlation by chance: one in 1e11, over less than 1e8 that are tried


class RecomputedNoise(ReleaseMetric):
    """Largest agreement of the noise with what a common generator draws from a small seed.

    Noise that is drawn from a guessable seed can be drawn again and subtracted. The noise is the
    difference between row and record, their ratio, or what a linear map of the records does not
    explain. It is compared with the first numbers of the streams of
    ``ppdm_core.numerics.seeded_streams`` for all seeds below 10,000, as if it had been drawn row by
    row for any consecutive columns, with and without columns of few values, or column by column.
    It is also compared with a seed for each row, or for few of them, that is its number or any
    other, as if it were a function of the record, and with larger seeds that are a rounded sum,
    length or value of the record. Common seeds, such as 42, are also tried with numpy's other
    generators, after other numbers for the table, and as the parents of seeds for each row or
    column. The value is the largest squared correlation; the baseline is what chance exceeds
    almost never.
    """

    name = "recomputed_noise"
    title = "Noise that can be computed again"
    describe = "agreement of the noise with generators and seeds that can be guessed"
    template = (
        "The noise agrees with a known generator and a small seed to {value} (squared "
        "correlation); chance explains up to {baseline}."
    )
    kind = "privacy"
    better = "down"
    interval_method = "none"
    on_original = 0.0
    must_notice: ClassVar[Mapping[str, float]] = {"guessable seed": 0.85}

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        residuals, tables = self._collect(comparison)
        value = max(measure_agreement(residuals, name) for name in STREAMS)
        value = max(value, measure_derived_agreement(residuals, comparison))
        rng = comparison.rng(self.name)
        for R in tables:
            rows = measure_any_seeds(R, rng), measure_numbered_rows(R), measure_consecutive_seeds(R)
            value = max(value, *rows, measure_child_agreement(R))
        records = comparison.X[comparison.records[:_ROWS]]
        if comparison.units is not None:
            offset, unit = comparison.units
            records = records * unit + offset
        few = [R[:_ROWS] for R in tables]
        value = max(value, measure_record_seeds(few, records))
        return Measurement(value, lambda keep: value)

    def baseline(self, comparison: ReleaseComparison) -> float:
        length = self._collect(comparison)[0].shape[1]
        return float(min(1.0, _MAX_DEVIATIONS**2 / length))

    def _collect(self, comparison: ReleaseComparison) -> tuple[Floats, list[Floats]]:
        """Return the beginnings of the residuals, centred, of length 1, (r, v), and their rows."""

        def collect() -> tuple[Floats, list[Floats]]:
            check_comparison(self.name, comparison)
            if comparison.cells is None or bool((comparison.records < 0).any()):
                raise NotApplicable(
                    f"{self.name} needs a released file whose rows belong to records.",
                    reason=Reason.NO_ALIGNMENT,
                )
            tables = list(list_residuals(comparison))
            length = min(_VALUES, *(R.size for R in tables)) if tables else 0
            if length < _MIN_VALUES:
                raise NotApplicable(
                    f"{self.name} needs {_MIN_VALUES} noisy values.",
                    reason=Reason.TOO_FEW_RECORDS,
                )
            found = [order for R in tables for order in list_orders(R, length)]
            parts = [part[:_MAX_ROWS] for R in tables for part in list_parts(R)]
            parts += list_exact_residuals(comparison)
            return normalise(np.unique(found, axis=0)), parts

        return comparison.get_or_compute(self.name, collect)


def measure_agreement(residuals: Floats, name: str) -> float:
    """Return the largest squared correlation of a residual with a stream, over all seeds.

    The first few numbers select the seeds; these are compared at full length.
    """
    length = residuals.shape[1]
    few = min(MAX_LENGTH, length)
    first = normalise(residuals[:, :few]).astype(np.float32)
    streams = normalise(draw_all_seeds(name, few)).astype(np.float32).T
    best = np.zeros(streams.shape[1])
    for start in range(0, len(first), _SCREENED_ORDERS):
        screened = np.abs(first[start : start + _SCREENED_ORDERS] @ streams)
        best = np.maximum(best, screened.max(axis=0))
    chosen = np.argsort(-best)[:_CONFIRMED_SEEDS].tolist()
    confirmed = normalise(draw_stream(name, chosen, length))
    return min(1.0, float(np.max((residuals @ confirmed.T) ** 2)))


def measure_derived_agreement(residuals: Floats, comparison: ReleaseComparison) -> float:
    """Return the largest squared correlation with streams that common seeds give less directly.

    All noise is compared with each child of a seed, and with what a generator draws after other
    numbers. 0: chance explains it.
    """
    children = draw_children()
    streams = children.reshape(-1, children.shape[2])
    late = draw_late_streams(*comparison.X.shape)
    return max(correlate_streams(residuals, each) for each in (streams, late))


def correlate_streams(residuals: Floats, streams: Floats) -> float:
    """Return the largest squared correlation of residuals with streams; 0 by chance."""
    length = min(residuals.shape[1], streams.shape[1])
    first = normalise(residuals[:, :length]).astype(np.float32)
    others = normalise(streams[:, :length]).astype(np.float32)
    best = max(
        float(np.abs(others @ first[start : start + _SCREENED_ORDERS].T).max()) ** 2
        for start in range(0, len(first), _SCREENED_ORDERS)
    )
    return best if is_beyond_chance(best, length - 1, len(first) * len(others)) else 0.0


def measure_child_agreement(R: Floats) -> float:
    """Return the largest squared correlation of the first rows, or columns, with children of seeds.

    The first row is compared with the first child, the second with the second; 0 by chance.
    """
    children = draw_children()
    best = 0.0
    for lines in (R, R.T):
        count, width = min(len(lines), children.shape[1]), min(lines.shape[1], children.shape[2])
        if count * width < _MIN_VALUES:
            continue
        streams = normalise(children[:, :count, :width].reshape(len(children), -1))
        agreement = streams @ normalise(lines[:count, :width].reshape(1, -1))[0]
        found = float(np.square(agreement).max())
        if is_beyond_chance(found, count * width - 1, len(children)):
            best = max(best, found)
    return min(1.0, best)


def normalise(R: Floats) -> Floats:
    """Return rows with mean 0 and length 1."""
    return scale_rows(R - R.mean(axis=1, keepdims=True))


def list_orders(R: Floats, length: int) -> Iterator[Floats]:
    """Yield the first values of consecutive columns in the orders in which noise is drawn."""
    yield R.T.ravel()[:length]
    for part in list_parts(R):
        d = part.shape[1]
        blocks = [(i, j) for i in range(d) for j in range(i + 1, d + 1)]
        if d > _MAX_COLUMNS:
            blocks = [(i, j) for i, j in blocks if i == 0 or j == d or j == i + 1]
        for i, j in blocks:
            values = part[: -(-length // (j - i)), i:j].ravel()[:length]
            if len(values) == length:
                yield values


def list_parts(R: Floats) -> list[Floats]:
    """Return the table, and, if others are left, its columns of many values; (m, q)."""
    values = np.array([len(np.unique(column)) for column in R.T])
    parts = [R]
    for least in (_MIN_DISTINCT, len(R) // 2):
        kept = values > least
        if 0 < kept.sum() < parts[-1].shape[1]:
            parts.append(R[:, kept])
    return parts


def list_residuals(comparison: ReleaseComparison) -> Iterator[Floats]:
    """Yield what the noise may be, with columns of equal spread; (m, q)."""
    X, Y = comparison.X[comparison.records], comparison.Y
    if comparison.has_same_columns:
        yield from scale_columns(Y - X)
        if bool((X * Y > 0).all()):
            yield from scale_columns(np.log(Y / X))
    A = np.column_stack([np.ones(len(X)), X])
    if len(A) > 2 * A.shape[1]:
        yield from scale_columns(Y - A @ np.linalg.lstsq(A, Y, rcond=None)[0])


def list_exact_residuals(comparison: ReleaseComparison) -> list[Floats]:
    """Return the noise in units that its author may have used, to compare few rows; each (m, d)."""
    if not comparison.has_same_columns:
        return []
    spread = comparison.X.std(axis=0)
    if not bool((spread > 0).all()):
        return []
    rows = slice(0, _MAX_ROWS)
    R = comparison.Y[rows] - comparison.X[comparison.records[rows]]
    original = 1.0 if comparison.units is None else comparison.units[1]
    return [R / spread, R * original]


def is_beyond_chance(squared: float, length: int, tried: int) -> bool:
    """Return whether a squared correlation of so many values is too large for chance."""
    return bool(score_agreement(np.array(squared), length) > np.log(tried / _PROBABILITY))


def scale_columns(R: Floats) -> Iterator[Floats]:
    """Yield the columns that vary, with deviation 1; single large values are cut off.

    Otherwise a few values of heavy-tailed noise decide a correlation, and chance reaches more.
    """
    spread = R.std(axis=0)
    varying = spread > 1e-12 * np.maximum(np.abs(R).max(axis=0), 1e-300)
    if varying.any():
        centred = R[:, varying] - np.median(R[:, varying], axis=0)
        typical = _NORMAL_DEVIATION * np.median(np.abs(centred), axis=0)
        unit = np.where(typical > 0.0, typical, spread[varying])
        cut = np.clip(centred / unit, -_MAX_UNITS, _MAX_UNITS)
        yield (cut - cut.mean(axis=0)) / cut.std(axis=0)

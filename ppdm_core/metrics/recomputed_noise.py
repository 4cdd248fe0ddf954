from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._record_seeds import measure_record_seeds
from ppdm_core.metrics._release import check_comparison
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.seeded_streams import (
    MAX_LENGTH,
    STREAMS,
    draw_all_seeds,
    draw_stream,
)

_VALUES = 128  # of the noise that are compared
_MIN_VALUES = 40
_ROWS = 300  # whose number may be the seed of their noise
_CONFIRMED_SEEDS = 20  # of each stream
_SCREENED_ORDERS = 64  # at once
_MAX_COLUMNS = 24  # of which all consecutive ones are compared; of more, some
_NORMAL_DEVIATION = 1.4826  # of normal numbers, in median sizes
_MAX_UNITS = 4.0
_MIN_DISTINCT = 20  # values of a column that is no category
_SEEDED_ROWS, _MIXED_ROWS = 40, 200  # compared with any seed for each
_MIN_SEEDED_SHARE = 0.25  # of these rows beyond all mixed ones: by chance, less than one in 1e12
_MIN_ROW_VALUES = 6  # fewer agree with some seed in any case
_MAX_DEVIATIONS = 6.8  # of a correlation by chance: one in 1e11, over less than 1e8 that are tried


class RecomputedNoise(ReleaseMetric):
    """Largest agreement of the noise with what a common generator draws from a small seed.

    Noise that is drawn from a guessable seed can be drawn again and subtracted. The noise is the
    difference between row and record, their ratio, or what a linear map of the records does not
    explain. It is compared with the first numbers of the streams of
    ``ppdm_core.numerics.seeded_streams`` for all seeds below 10,000, as if it had been drawn row by
    row for any consecutive columns, with and without columns of few values, or column by column.
    It is also compared with a seed for each row that is its number, with any seed for each row, as
    if it were a function of the record, and with larger seeds that are a rounded sum, length or
    value of the record. The value is the largest squared correlation; the baseline is what chance
    exceeds almost never.
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
        value = max(
            max(measure_agreement(residuals, name), measure_row_agreement(tables, name))
            for name in STREAMS
        )
        rng = comparison.rng(self.name)
        value = max(value, *(measure_any_seed_agreement(R, rng) for R in tables))
        records = comparison.X[comparison.records[:_ROWS]]
        if comparison.units is not None:
            offset, unit = comparison.units
            records = records * unit + offset
        value = max(value, measure_record_seeds(tables, records))
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
            parts = [part[:_ROWS] for R in tables for part in list_parts(R)]
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


def measure_row_agreement(tables: list[Floats], name: str) -> float:
    """Return the largest squared correlation if every row has its number as its own seed."""
    best = 0.0
    for R in tables:
        width = min(R.shape[1], MAX_LENGTH)
        for first in (0, 1):
            stream = draw_all_seeds(name, width)[first : first + len(R)]
            pair = normalise(np.stack([R[:, :width].ravel(), stream.ravel()]))
            best = max(best, float(pair[0] @ pair[1]) ** 2)
    return min(1.0, best)


def measure_any_seed_agreement(R: Floats, rng: np.random.Generator) -> float:
    """Return the squared correlation of rows with the best seed for each; 0 if chance explains it.

    Chance is what rows reach whose cells are those of different rows.
    """
    width = min(R.shape[1], MAX_LENGTH)
    if width < _MIN_ROW_VALUES or len(R) < _SEEDED_ROWS:
        return 0.0
    mixed = rng.permuted(np.tile(R[:, :width], (-(-_MIXED_ROWS // len(R)), 1)), axis=0)
    rows = scale_rows(np.vstack([R[:_SEEDED_ROWS, :width], mixed[:_MIXED_ROWS]]))
    best = np.zeros(len(rows))
    for name in STREAMS:
        streams = draw_all_seeds(name, width)
        agreement = np.abs(rows @ scale_rows(streams - streams.mean(axis=0)).T)
        best = np.maximum(best, agreement.max(axis=1))
    own, by_chance = np.split(best, [_SEEDED_ROWS])
    is_beyond = own > by_chance.max()
    return float(np.median(own[is_beyond])) ** 2 if is_beyond.mean() >= _MIN_SEEDED_SHARE else 0.0


def normalise(R: Floats) -> Floats:
    """Return rows with mean 0 and length 1."""
    return scale_rows(R - R.mean(axis=1, keepdims=True))


def scale_rows(R: Floats) -> Floats:
    """Return rows with length 1."""
    return np.asarray(R / np.maximum(np.linalg.norm(R, axis=1, keepdims=True), 1e-30))


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

"""What recipients keep: each draw compared with the original, and the figures of every metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.scores import Figures, average_notes, average_persons
from ppdm_core.metrics import Metric, ReleaseComparison, ReleaseMetric
from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.metrics.best_accuracy import BestAccuracy
from ppdm_core.metrics.deterioration import Deterioration
from ppdm_core.model.arrays import Ints
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.mean_limits import mean_interval

Measured = tuple[Metric, str, Figures, str]  # metric, name of the score, figures, story


def compare(
    truth: OriginalTable, draws: Sequence[ReleaseDraw], rng: Callable[[str], np.random.Generator]
) -> list[ReleaseComparison]:
    """Compare each draw with the original table; what is computed of the original is shared."""
    schema, X, label = truth.schema, truth.X, truth.label
    table = ReleaseComparison(
        X, label, X, PublicParameters("original", "original", schema.names), rng
    )
    words = [column.name for column in schema.categorical]
    units = None
    if truth.offset is not None and truth.unit is not None:
        units = truth.offset, truth.unit
    return [
        ReleaseComparison(
            X,
            label,
            draw.Y,
            draw.public,
            rng,
            source=draw.source,
            cells=draw.cells,
            C=truth.codes[:, [words.index(each.column.name) for each in draw.public.responses]],
            released_codes=draw.C,
            steward_map=draw.leaked_map,
            table=table,
            units=units,
        )
        for draw in draws
    ]


def measure_release(metric: ReleaseMetric, draws: Sequence[ReleaseComparison]) -> list[Measured]:
    """Return the figures of a metric; for an accuracy also its loss against the original."""
    if isinstance(metric, BestAccuracy):
        return [measure_best(metric, draws)]
    found: list[Measured] = [(metric, metric.name, measure_plain(metric, draws), "")]
    return [*found, measure_change(metric, draws)] if isinstance(metric, Accuracy) else found


def measure_plain(metric: ReleaseMetric, draws: Sequence[ReleaseComparison]) -> Figures:
    """Return the figures of one metric over the draws."""
    measured, n = [metric.measure(one) for one in draws], len(draws[0].X)

    def value_on(records: Ints) -> float:
        keep = np.zeros(n, dtype=np.bool_)
        keep[records] = True
        return float(np.mean([one.recompute(keep) for one in measured]))

    interval = None
    if metric.interval_method == "mean":
        units, found = zip(*(one.each for one in measured if one.each is not None), strict=True)
        interval = partial(mean_interval, average_persons(units, found), bounds=metric.bounds)
    elif metric.interval_method == "none":  # a fact about these draws
        value = float(np.mean([one.value for one in measured]))
        interval = partial(repeat_value, value)
    return Figures(
        values=[one.value for one in measured],
        n=min(n, metric.max_records),
        baseline=metric.baseline(draws[0]),
        value_on=value_on,
        units=n,
        interval=interval,
        original=metric.original(draws[0]),
        notes=average_notes([one.notes for one in measured]),
    )


def repeat_value(value: float, level: float) -> tuple[float, float]:
    """Return the interval of a figure without a sampling error."""
    return value, value


def measure_best(metric: BestAccuracy, draws: Sequence[ReleaseComparison]) -> Measured:
    """Measure the classifier with the best mean over the draws: a recipient uses only one."""
    found = {one: measure_plain(one, draws) for one in metric.find_applicable(draws[0])}
    best = max(found, key=lambda one: float(np.mean(found[one].values)))
    figures = replace(
        found[best],
        original=metric.original(draws[0]),
        candidate=best.name,
        choices=len(found),
        notes={},
    )
    return metric, metric.name, figures, best.subject


def measure_change(metric: Accuracy, draws: Sequence[ReleaseComparison]) -> Measured:
    """Measure the loss of accuracy against the original, on the same records."""
    measure = Deterioration()
    before = metric.cross_validate(draws[0].original).correct.astype(np.float64)
    changes = [before - metric.cross_validate(one).correct for one in draws]
    change = np.mean(changes, axis=0)
    figures = Figures(
        values=[measure.measure(each) for each in changes],
        n=len(change),
        baseline=float(np.mean(before)) - metric.baseline(draws[0]),
        value_on=lambda records: measure.measure(change[records]),
        units=len(change),
        interval=partial(mean_interval, change, bounds=measure.bounds),
    )
    return measure, f"{metric.name}.{measure.name}", figures, metric.subject

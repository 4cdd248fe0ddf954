"""What recipients get: each draw beside the original, and the figures of every metric of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ppdm_core.audit.scores import Figures, mean_notes
from ppdm_core.audit.simulation import Draw, Truth
from ppdm_core.metrics import METRICS, Compared, Metric, ReleaseMetric
from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.metrics.best_accuracy import BestAccuracy
from ppdm_core.metrics.deterioration import Deterioration
from ppdm_core.model.arrays import Ints
from ppdm_core.model.release import Public

Unscored = tuple[Metric, str, Figures, str]  # with the name of the score, and whom it is about


def compare(
    truth: Truth, draws: Sequence[Draw], rng: Callable[[str], np.random.Generator]
) -> list[Compared]:
    """All draws share the original, and what is worked out of it."""
    schema, X, label = truth.schema, truth.X, truth.label
    table = Compared(X, label, X, Public("original", "original", schema.names), rng)
    words = [column.name for column in schema.categorical]
    return [
        Compared(
            X,
            label,
            draw.Y,
            draw.public,
            rng,
            source=draw.source,
            C=truth.codes[:, [words.index(each.column.name) for each in draw.public.responses]],
            answers=draw.C,
            leak=draw.leak,
            table=table,
        )
        for draw in draws
    ]


def figures_of(metric: ReleaseMetric, draws: Sequence[Compared]) -> list[Unscored]:
    """One, and beside an accuracy how much worse it is than on the original."""
    if isinstance(metric, BestAccuracy):
        return [best_of(metric, draws)]
    found: list[Unscored] = [(metric, metric.name, plain_figures(metric, draws), "")]
    return [*found, change_of(metric, draws)] if isinstance(metric, Accuracy) else found


def plain_figures(metric: ReleaseMetric, draws: Sequence[Compared]) -> Figures:
    measured, n = [metric.measure(one) for one in draws], len(draws[0].X)

    def value_on(records: Ints) -> float:
        keep = np.zeros(n, dtype=np.bool_)
        keep[records] = True
        return float(np.mean([one.on(keep) for one in measured]))

    return Figures(
        values=[one.value for one in measured],
        n=min(n, metric.most),
        baseline=metric.baseline(draws[0]),
        value_on=value_on,
        units=n,
        original=metric.original(draws[0]),
        notes=mean_notes([one.notes for one in measured]),
    )


def best_of(metric: BestAccuracy, draws: Sequence[Compared]) -> Unscored:
    """By the means over the draws: a recipient takes one classifier, whatever the noise."""
    found = {one: plain_figures(one, draws) for one in metric.applicable(draws[0])}
    best = max(found, key=lambda one: float(np.mean(found[one].values)))
    figures = replace(
        found[best],
        original=metric.original(draws[0]),
        candidate=best.name,
        choices=len(found),
        notes={},
    )
    return metric, metric.name, figures, best.who


def change_of(metric: Accuracy, draws: Sequence[Compared]) -> Unscored:
    """Release against original, on the same records."""
    measure = METRICS["deterioration"]
    assert isinstance(measure, Deterioration)
    before = metric.answered(draws[0].original).correct.astype(np.float64)
    changes = [before - metric.answered(one).correct for one in draws]
    change = np.mean(changes, axis=0)
    figures = Figures(
        values=[measure.measure(each) for each in changes],
        n=len(change),
        baseline=float(np.mean(before)) - metric.baseline(draws[0]),
        value_on=lambda records: measure.measure(change[records]),
        units=len(change),
        change=change,
    )
    return measure, f"{metric.name}.{measure.name}", figures, metric.who

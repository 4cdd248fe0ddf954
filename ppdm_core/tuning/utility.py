"""The utility that a steward chose: one metric or several with weights, as one figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ppdm_core.metrics import METRICS, ReleaseMetric
from ppdm_core.model.errors import BadInput
from ppdm_core.model.score import Score, is_sound
from ppdm_core.settings.errors import suggest_name

UNIT = (0.0, 1.0)
LEAST_WAY = 0.02  # of the range of a metric, or of its baseline if the range has no end


@dataclass(frozen=True)
class UtilityFigure:
    """How much of a use a release keeps: 0 without the release, 1 with the original table."""

    share: float
    low: float
    high: float
    words: str  # the figures as they were measured


@dataclass(frozen=True)
class Utility:
    """What recipients need, by name of metric, with weights that add up to 1."""

    weights: Mapping[str, float]

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @property
    def title(self) -> str:
        """The uses in words, for headings."""
        titles = [METRICS[name].title for name in self.weights]
        return titles[0] if len(titles) == 1 else f"weighted: {', '.join(titles)}"

    def compute(self, scores: Iterable[Score]) -> UtilityFigure | None:
        """Return the figure of a trial; None if a metric was not measured."""
        by_name = {score.name: score for score in scores if is_sound(score)}
        found = [by_name.get(name) for name in self.weights]
        measured = [score for score in found if score is not None]
        if len(measured) < len(found):
            return None
        shares = [normalize(score) for score in measured]
        weights = list(self.weights.values())
        share, low, high = (
            sum(weight * each[i] for weight, each in zip(weights, shares, strict=True))
            for i in range(3)
        )
        return UtilityFigure(share, low, high, ", ".join(map(format_score, measured)))


def normalize(score: Score) -> tuple[float, float, float]:
    """Return value and interval as shares of the way from the baseline to the original.

    Where the original is hardly better than the baseline, or worse, the way is taken to be
    ``LEAST_WAY`` long, so that a better value never has a smaller share.
    """
    original = score.value if score.original is None else score.original
    sign = 1.0 if score.better == "up" else -1.0
    low, high = METRICS[score.name].bounds
    unit = high - low if math.isfinite(high - low) else max(abs(score.baseline), 1e-9)
    way = max(sign * (original - score.baseline), LEAST_WAY * unit)
    value, one, other = (
        sign * (each - score.baseline) / way for each in (score.value, score.low, score.high)
    )
    return value, min(one, other), max(one, other)


def format_score(score: Score) -> str:
    """Return a measured use in a few words: "best_accuracy 71.0 %"."""
    metric = METRICS[score.name]
    is_share = metric.bounds[1] == UNIT[1]
    figure = f"{100 * score.value:.1f} %" if is_share else f"{score.value:.3g}"
    return f"{metric.utility_name} {figure}"


def list_utilities() -> dict[str, ReleaseMetric]:
    """Return the metrics that a tune can aim at, by the name that a steward gives."""
    return {
        metric.utility_name: metric
        for metric in METRICS.values()
        if metric.goal == "release" and metric.utility_name
    }


def parse_utilities(texts: Sequence[str]) -> Utility:
    """Return the utility of texts such as "clusters" or "clusters=2"; raise BadInput."""
    known, weights = list_utilities(), dict[str, float]()
    for text in texts:
        name, _, given = text.partition("=")
        if name not in known:
            raise BadInput(f"There is no utility '{name}'.", remedy=suggest_name(name, list(known)))
        weights[known[name].name] = parse_weight(name, given)
    total = sum(weights.values())
    return Utility({name: weight / total for name, weight in weights.items()})


def parse_weight(name: str, given: str) -> float:
    """Return a weight above 0; 1 if none is given."""
    try:
        weight = float(given or 1.0)
    except ValueError:
        weight = 0.0
    if not 0 < weight < float("inf"):
        raise BadInput(
            f"The weight of the utility '{name}' must be a number above 0. Got '{given}'.",
            remedy=f"Write for example --utility {name}=2.",
        )
    return weight


def choose_default(has_label: bool, has_numbers: bool) -> Utility:
    """Return the first utility that such a table has: a classifier if there are classes."""
    for metric in list_utilities().values():
        is_labelled = has_label or not metric.needs_label
        if is_labelled and (has_numbers or "categorical" in metric.reads):
            return Utility({metric.name: 1.0})
    raise BadInput(
        "No utility applies to this table.", remedy="Release a numeric or categorical feature."
    )


def check_applies(utility: Utility, has_label: bool, has_numbers: bool) -> None:
    """Raise BadInput if a metric needs a label or numbers that the table does not have."""
    for name in utility.metrics:
        metric = METRICS[name]
        assert metric.goal == "release"
        if metric.needs_label and not has_label:
            raise BadInput(
                f"The utility '{metric.utility_name}' needs a label column, and no column has the "
                'role "label".',
                remedy='Give a column the role "label", or name another utility.',
            )
        if not has_numbers and "categorical" not in metric.reads:
            raise BadInput(
                f"The utility '{metric.utility_name}' works on numbers, and no numeric feature is "
                "released.",
                remedy="Name another utility.",
            )

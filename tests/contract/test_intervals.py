"""The interval of every score that a limit can judge covers, for every number of persons."""

from __future__ import annotations

import pytest

from ppdm_core.metrics import METRICS, Metric
from tests.contract import checks_intervals
from tests.support.slow_cases import mark_exhaustive

JUDGED = list(checks_intervals.list_judged())
MEANS = [name for name in JUDGED if METRICS[name].interval_method == "mean"]


def needs_training(metric: Metric) -> bool:
    """Return whether one score takes so long that many can be drawn in slow tests only."""
    return metric.goal == "release" and metric.interval_method == "mean"


@pytest.mark.parametrize("key", MEANS)
def test_metric_mean_has_one_value_for_each_person(key: str):
    if key == "best_accuracy":
        pytest.skip("it is one of the accuracies, which are checked one by one")
    checks_intervals.check_mean_of_each(METRICS[key])


@pytest.mark.extended
@pytest.mark.parametrize("key", [key for key in JUDGED if not needs_training(METRICS[key])])
def test_metric_interval_covers(key: str):
    if METRICS[key].interval_method == "none":
        pytest.skip("it is a fact about one release, without a sampling error")
    if key == "frequency_error":
        pytest.skip("it reads categorical columns, and the tables here are numbers")
    checks_intervals.check_interval_covers(METRICS[key])


DRAWS = {20: 400, 100: 200, 500: 60, 2_000: 20}  # by the number of persons


def list_sizes(key: str) -> list[int]:
    """Return the numbers of persons to try; training takes too long with many."""
    return [n for n in DRAWS if n <= 100 or not needs_training(METRICS[key])]


# Slow: each metric with one number of persons, in turn.
SIZES = {key: list_sizes(key) for key in JUDGED if METRICS[key].interval_method != "none"}
ALL_SIZES = [(key, n) for key, sizes in SIZES.items() for n in sizes]
ONE_SIZE = [(key, sizes[i % len(sizes)]) for i, (key, sizes) in enumerate(SIZES.items())]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "n"), mark_exhaustive(ALL_SIZES, slow=ONE_SIZE))
def test_metric_interval_wide_covers(key: str, n: int):
    if key == "frequency_error":
        pytest.skip("it reads categorical columns, and the tables here are numbers")
    is_trained = needs_training(METRICS[key])
    checks_intervals.check_interval_covers(
        METRICS[key], n, DRAWS[n] // 4 if is_trained else DRAWS[n]
    )

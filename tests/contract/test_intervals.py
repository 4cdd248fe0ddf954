"""The interval of every score that a limit can judge covers, for every number of persons."""

from __future__ import annotations

import pytest

from ppdm_core.metrics import METRICS, Metric
from tests.contract import checks_intervals

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


@pytest.mark.slow
@pytest.mark.parametrize(("n", "draws"), [(20, 400), (100, 200), (500, 60), (2_000, 20)])
@pytest.mark.parametrize("key", [key for key in JUDGED if METRICS[key].interval_method != "none"])
def test_metric_interval_wide_covers(key: str, n: int, draws: int):
    if key == "frequency_error":
        pytest.skip("it reads categorical columns, and the tables here are numbers")
    metric = METRICS[key]
    if needs_training(metric) and n > 100:
        pytest.skip("training takes too long, and the interval is that of any other mean")
    checks_intervals.check_interval_covers(
        metric, n, draws // 4 if needs_training(metric) else draws
    )

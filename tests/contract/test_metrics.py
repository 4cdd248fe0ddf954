from __future__ import annotations

from typing import get_args

import pytest

from ppdm_core.metrics import METRICS
from ppdm_core.model.attacker import Goal
from tests.contract import cases, checks_metrics
from tests.contract.checks import check_named_alike

each_key = pytest.mark.parametrize("key", METRICS)
UTILITY_KEYS = [key for key, m in METRICS.items() if (m.goal, m.kind) == ("release", "utility")]
each_utility_key = pytest.mark.parametrize("key", UTILITY_KEYS)


def test_metric_cases_complete():
    assert set(cases.METRICS) == set(METRICS)


@each_key
def test_metric_class_key_and_case_match(key: str):
    check_named_alike(type(METRICS[key]), key, cases.METRICS)


def skip_excused(key: str) -> None:
    if isinstance(cases.METRICS[key], str):
        pytest.skip(cases.METRICS[key])


@each_key
def test_metric_any_estimate_inside_bounds(key: str):
    skip_excused(key)
    checks_metrics.check_inside_bounds(METRICS[key])


@pytest.mark.parametrize(("key", "expected"), cases.METRICS.items(), ids=cases.METRICS)
def test_metric_copy_is_extreme(key: str, expected: float | str | None):
    skip_excused(key)
    checks_metrics.check_copy_is_extreme(METRICS[key], expected)


@each_key
def test_metric_noise_differs_from_copy(key: str):
    skip_excused(key)
    checks_metrics.check_noise_differs_from_copy(METRICS[key])


@each_utility_key
def test_metric_more_noise_is_worse(key: str):
    skip_excused(key)
    checks_metrics.check_more_noise_is_worse(METRICS[key])


@each_utility_key
def test_metric_same_input_same_result(key: str):
    skip_excused(key)
    checks_metrics.check_deterministic(METRICS[key])


@each_key
def test_metric_nan_refused(key: str):
    skip_excused(key)
    checks_metrics.check_nan_refused(METRICS[key])


@each_key
def test_metric_bad_shapes_refused(key: str):
    skip_excused(key)
    checks_metrics.check_bad_shapes_refused(METRICS[key])


@each_key
def test_metric_sentence_contains_value(key: str):
    checks_metrics.check_sentence(METRICS[key])


@each_key
def test_metric_capabilities_declared(key: str):
    checks_metrics.check_capabilities(METRICS[key])


def test_headline_metrics_one_for_each_goal():
    goals = sorted(m.goal for m in METRICS.values() if m.is_headline)
    assert goals == sorted(get_args(Goal))

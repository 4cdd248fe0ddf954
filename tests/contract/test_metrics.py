from __future__ import annotations

from typing import get_args

import pytest

from ppdm_core.metrics import METRICS
from ppdm_core.model.attacker import Goal
from tests.contract import cases, checks_metrics
from tests.contract.checks import check_named_alike

each_key = pytest.mark.parametrize("key", METRICS)
USEFUL = [key for key, m in METRICS.items() if (m.goal, m.kind) == ("release", "utility")]
each_of_use = pytest.mark.parametrize("key", USEFUL)


def test_every_metric_has_a_case():
    assert set(cases.METRICS) == set(METRICS)


@each_key
def test_named_alike(key: str):
    check_named_alike(type(METRICS[key]), key, cases.METRICS)


def skip_excused(key: str) -> None:
    if isinstance(cases.METRICS[key], str):
        pytest.skip(cases.METRICS[key])


@each_key
def test_inside_bounds(key: str):
    skip_excused(key)
    checks_metrics.check_inside_bounds(METRICS[key])


@pytest.mark.parametrize(("key", "expected"), cases.METRICS.items(), ids=cases.METRICS)
def test_extreme_on_a_copy(key: str, expected: float | str | None):
    skip_excused(key)
    checks_metrics.check_extreme_on_a_copy(METRICS[key], expected)


@each_key
def test_noise_is_told_from_a_copy(key: str):
    skip_excused(key)
    checks_metrics.check_noise_is_told_from_a_copy(METRICS[key])


@each_of_use
def test_worse_noise_is_worse(key: str):
    skip_excused(key)
    checks_metrics.check_worse_noise_is_worse(METRICS[key])


@each_of_use
def test_deterministic(key: str):
    skip_excused(key)
    checks_metrics.check_deterministic(METRICS[key])


@each_key
def test_nan_is_an_error(key: str):
    skip_excused(key)
    checks_metrics.check_nan_is_an_error(METRICS[key])


@each_key
def test_shapes_are_checked(key: str):
    skip_excused(key)
    checks_metrics.check_shapes_are_checked(METRICS[key])


@each_key
def test_speaks(key: str):
    checks_metrics.check_speaks(METRICS[key])


@each_key
def test_capabilities(key: str):
    checks_metrics.check_capabilities(METRICS[key])


def test_headline_metrics_one_for_each_goal():
    goals = sorted(m.goal for m in METRICS.values() if m.is_headline)
    assert goals == sorted(get_args(Goal))

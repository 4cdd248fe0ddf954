"""A statement holds for exactly one person, depending on how many persons it is tried on."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from ppdm_core import audit_tables
from ppdm_core.metrics.singling_rate import SinglingRate
from ppdm_core.model.policy import Attacker, Limit, Policy

METRIC = SinglingRate()
PEOPLE = np.array([0.1, 0.2, 0.3, 0.55, 0.6, 0.7, 0.9])[:, None]
STATEMENTS = np.array([[[0.0, 0.15]], [[0.05, 0.25]], [[0.5, 0.8]], [[0.0, 1.0]], [[0.4, 0.5]]])
POLICY = Policy(
    required=("singling_out",),
    limits={"singling_out.singling_rate": Limit(0.1, "DPO", "test")},
    attacker=Attacker(5, 0.05, 0.1),
    effort="quick",
)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_singling_rate_chance_alone_equals_baseline(n):
    """Over all choices of members, the rate of members and the baseline are equal."""
    values, baselines = [], []
    for members in combinations(range(7), n):
        inside, outside = PEOPLE[list(members)], np.delete(PEOPLE, members, axis=0)
        values.append(METRIC.measure(STATEMENTS, inside))
        baselines.append(METRIC.baseline(STATEMENTS, inside, outside))
    assert 0.1 < np.mean(values) == pytest.approx(np.mean(baselines))


def test_singling_baseline_more_persons_outside_expected():
    # Of 3 others two are chosen: 0.1 alone is met by 2 of the 3 choices, one of 0.6, 0.7 by 2.
    others = np.array([[0.1], [0.6], [0.7]])
    found = [METRIC.baseline(one[None], PEOPLE[:2], others) for one in STATEMENTS]
    assert found == pytest.approx([2 / 3, 2 / 3, 2 / 3, 0.0, 0.0])


def test_singling_baseline_fewer_persons_outside_expected():
    # Three members, two others. A member fills the third place: 0.3, 0.55 or 0.9.
    members, others = PEOPLE[[2, 3, 6]], PEOPLE[[0, 4]]
    found = [METRIC.baseline(one[None], members, others) for one in STATEMENTS]
    # 0.1 is the one for all three; 0.6 unless 0.55 is there. Two places stand for three.
    assert found == pytest.approx([1.0, 1.0, 2 / 3 * 3 / 2, 0.0, 0.0])


def test_singling_baseline_equal_groups_measured_directly():
    rng = np.random.default_rng(0)
    edges = np.sort(rng.random((40, 2, 2)), axis=2)
    members, others = rng.random((6, 2)), rng.random((6, 2))
    holds = [((others >= e[:, 0]) & (others <= e[:, 1])).all(axis=1) for e in edges]
    expected = np.mean([each.sum() == 1 for each in holds])
    assert 0.1 < expected == pytest.approx(METRIC.baseline(edges, members, others))


def measure_score(X: np.ndarray, Y: np.ndarray, control: np.ndarray, seed: int = 0):
    report = audit_tables(X, Y, control=control, policy=POLICY, seed=bytes([seed + 1]))
    (found,) = (s for s in report.scores if s.name == "singling_out.singling_rate")
    return found


@pytest.mark.slow
def test_audit_tables_noise_small_control_no_singling_out():
    """Tried on 110 persons in place of 200, 6 of these 12 intervals were above the baseline."""
    above = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        people, Y = rng.normal(size=(310, 3)), rng.normal(size=(200, 3))
        found = measure_score(people[:200], Y, people[200:], seed)
        above += found.low > found.baseline
    assert above <= 1


def test_audit_tables_copy_small_control_singled_out():
    rng = np.random.default_rng(1)
    people = rng.random((310, 4))
    found = measure_score(people[:200], people[:200], people[200:])
    assert found.value > 0.95
    assert found.low - found.baseline > 0.7

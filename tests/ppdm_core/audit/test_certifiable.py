from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.certifiable import compute_smallest_limits
from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import Policy
from ppdm_core.numerics.intervals import clopper_pearson
from tests.support.audit_cases import COPY, make_policy, make_truth


def limit_rates(*names: str, known: int = 10) -> Policy:
    """Return a policy that limits these scores to 0.05."""
    limits = dict.fromkeys(names, 0.05)
    return make_policy((), limits, "standard", known_records=known)


def test_compute_smallest_limits_150_records_upper_end_2_5_percent():
    found = compute_smallest_limits(
        limit_rates("record_linkage.rate", known=0), 167
    )  # a tenth is the sample
    assert found == {"record_linkage.rate": pytest.approx(1 - 0.025 ** (1 / 150))}


def test_compute_smallest_limits_fewer_records_larger_more_limits_equal():
    one = compute_smallest_limits(limit_rates("record_linkage.rate"), 1000)["record_linkage.rate"]
    both = compute_smallest_limits(
        limit_rates("record_linkage.rate", "known_pairs.breach_rate"), 1000
    )
    assert both["record_linkage.rate"] == one  # a PASS needs all limits, each at its own level
    fewer = compute_smallest_limits(limit_rates("record_linkage.rate"), 300)["record_linkage.rate"]
    assert fewer > one


def test_compute_smallest_limits_equals_interval_of_failed_attack():
    names = ("record_linkage.rate", "transform_inverse.breach_rate")
    plan, truth = limit_rates(*names), make_truth(400)
    found = compute_smallest_limits(plan, 400)
    auditor = Auditor(truth, [ReleaseDraw(truth.X, COPY)], plan, b"s")
    for name in names:
        attack = name.split(".")[0]
        counted = len(auditor.trials[0].participants.unknown)
        assert found[name] == clopper_pearson(0, counted, plan.level)[1], attack


MEMBER = "membership.true_positive_rate"


def test_compute_smallest_limits_membership_decreases_with_records():
    found = [
        compute_smallest_limits(limit_rates(MEMBER), n)[MEMBER] for n in (100, 300, 1000, 10_000)
    ]
    assert found == sorted(found, reverse=True) and found[0] > 0.15 and found[-1] < 0.02
    assert compute_smallest_limits(limit_rates(MEMBER, known=60), 50) == {MEMBER: 1.0}


def test_compute_smallest_limits_absolute_limit_includes_baseline():
    plan = limit_rates(MEMBER)
    absolute = replace(plan, limits={MEMBER: replace(plan.limits[MEMBER], absolute=True)})
    metric = METRICS["true_positive_rate"]
    baseline = metric.baseline(np.repeat([True, False], 100))  # type: ignore[arg-type]
    found = [compute_smallest_limits(each, 300)[MEMBER] for each in (absolute, plan)]
    assert baseline > 0 and found[0] - found[1] == pytest.approx(baseline)


@pytest.mark.slow
def test_compute_smallest_limits_membership_near_audit_of_noise():
    rng = np.random.default_rng(3)
    truth, plan, halves = make_truth(400), limit_rates(MEMBER), []
    for _ in range(plan.splits):
        members = np.sort(rng.permutation(400)[:200])
        noise = rng.random((200, truth.X.shape[1]))
        halves.append(ReleaseDraw(noise, COPY, members, members=members))
    auditor = Auditor(truth, [ReleaseDraw(truth.X, COPY)], plan, b"s", halves)
    (score,) = (one for one in auditor.run("membership") if one.name == MEMBER)
    assert score.high - score.baseline == pytest.approx(
        compute_smallest_limits(plan, 400)[MEMBER], rel=0.7
    )


def test_compute_smallest_limits_no_rate_or_no_target():
    assert (
        compute_smallest_limits(
            limit_rates("known_pairs.relative_error", "amplification.record"), 50
        )
        == {}
    )
    assert compute_smallest_limits(limit_rates("record_linkage.rate", known=60), 50) == {
        "record_linkage.rate": 1.0
    }

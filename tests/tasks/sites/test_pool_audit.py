"""What a site attacks the pool with: attacks of other sites with limits, and its own moments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.rows import Rows
from ppdm_core.sanitizers import Sanitizer
from tasks.audit.attack_inputs import read_inputs
from tasks.context import ReleaseContext
from tasks.sites import task as site_task
from tasks.sites.pool_audit import choose_pool_audits, extend_policy, measure_set_aside
from tests.support.common_release import CommonRelease
from tests.support.tables import read_cells

LINKAGE, PAIRS, WITHIN = (Limit(value, "DPO", "why") for value in (0.05, 0.1, 0.2))
LIMITS = {
    "record_linkage.rate": LINKAGE,
    "record_linkage.partial.rate": WITHIN,
    "known_pairs.breach_rate": PAIRS,
    "transform_inverse.breach_rate": WITHIN,
}
POLICY = Policy(required=("record_linkage",), limits=LIMITS)


def test_extend_policy_other_sites_are_limited_as_the_attacks_that_they_resemble():
    found = extend_policy(POLICY, has_moments=True)
    assert found.required == ("record_linkage", "pooled_moments", "colluding_sites")
    assert found.limits == {
        **LIMITS,
        "colluding_sites.rate": LINKAGE,
        "colluding_sites.partial.rate": WITHIN,
        "pooled_moments.breach_rate": PAIRS,  # the first that has a limit
    }


def test_extend_policy_without_moments_does_not_require_their_attack():
    found = extend_policy(POLICY, has_moments=False)
    assert found.required == ("record_linkage", "colluding_sites")
    assert not any(name.startswith("pooled_moments") for name in found.limits)


def test_extend_policy_every_attack_of_other_sites_is_required():
    """No attack that needs rows of other sites is left out because it names no limit."""
    found = extend_policy(POLICY, has_moments=True)
    needing = {name for name, attack in ATTACKS.items() if "partner_rows" in attack.needs}
    assert needing == set(found.required) - {"record_linkage"}


def test_choose_pool_audits_all_attacks_and_the_metrics_that_are_judged():
    limits = {**LIMITS, "best_accuracy": Limit(0.7, "DPO", "why", absolute=True)}
    policy = replace(POLICY, required=("record_linkage", "knn_accuracy"), limits=limits)
    found = choose_pool_audits(policy)
    assert set(ATTACKS) < set(found)
    assert {name for name in found if name in METRICS} == {"knn_accuracy", "best_accuracy"}


@pytest.mark.extended
def test_measure_set_aside_is_of_the_records_behind_the_moments_that_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sent: dict[str, np.ndarray] = {}
    read = site_task.read_fit_rows

    def keep(context: ReleaseContext, release_id: str, sanitizer: Sanitizer) -> Rows:
        rows = read(context, release_id, sanitizer)
        sent[context.home] = read_cells(rows)[:, : len(rows.schema.numeric)]
        return rows

    monkeypatch.setattr(site_task, "read_fit_rows", keep)
    release = CommonRelease(tmp_path / "x", "pca_laplace")
    context, release_id, _ = release.draw_all()["east"]
    work = context.open_store().home.work(release_id)
    with context.open_run(release_id) as (db, run):
        found = measure_set_aside(db, context, run, read_inputs(db, context, run, work))
    X = sent[context.home]
    assert found.n == len(X) > 4
    assert found.mean == pytest.approx(X.mean(axis=0), abs=1e-5)
    assert found.covariance == pytest.approx(np.cov(X.T), abs=1e-5)

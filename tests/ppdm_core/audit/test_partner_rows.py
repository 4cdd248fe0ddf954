"""Rows of other sites in a pool: seen by attacks, scored by none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import OriginalTable, PartnerRows, ReleaseDraw
from ppdm_core.audit.label_risk import score_label
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Categorical, Numeric, Schema

N, D, OTHERS = 120, 3, 600


def make_truth(seed: int = 0) -> OriginalTable:
    rng = np.random.default_rng(seed)
    schema = Schema(
        tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(D)), label=Categorical("y", ("a", "b"))
    )
    return OriginalTable(rng.random((N, D)), rng.integers(0, 2, N).astype(np.int32), schema)


def make_auditor(
    noise: float, *, partners: int = OTHERS, halves: bool = False, seed: int = 0
) -> Auditor:
    """An audit of rows with uniform noise, among rows of other sites."""
    truth, rng = make_truth(seed), np.random.default_rng([seed, 1])
    public = PublicParameters(
        "additive", "original", truth.schema.names, np.full(D, 0.5), np.eye(D)
    )
    others = PartnerRows(rng.random((partners, D)), rng.integers(0, 2, partners).astype(np.int32))
    policy = Policy(
        required=(), limits={}, attacker=Attacker(known_records=5), effort="quick", splits=1
    )

    def draw(members: np.ndarray | None) -> ReleaseDraw:
        X = truth.X if members is None else truth.X[members]
        Y = X + noise * rng.uniform(-1, 1, X.shape)
        return ReleaseDraw(
            Y,
            public,
            members,
            C=np.zeros((len(Y), 0), dtype=np.int32),  # as in a release
            members=members,
            partners=others if partners else None,
        )

    inside = [draw(rng.permutation(N)[: N // 2])] if halves else []
    return Auditor(truth, [draw(None)], policy, b"seed", inside)


def find_score(auditor: Auditor, attack: str, name: str):
    return next(score for score in auditor.run(attack) if score.name == name)


def test_linkage_exact_copies_found_among_rows_of_other_sites():
    score = find_score(make_auditor(0.0), "record_linkage", "record_linkage.rate")
    assert score.value == 1.0
    # A random row among about 360 of the pool with the person's label.
    assert score.baseline == pytest.approx(2 / (N + OTHERS), rel=0.15)


def test_linkage_pool_hides_rows_that_are_found_among_those_of_one_site():
    pooled = find_score(make_auditor(0.08), "record_linkage", "record_linkage.rate")
    alone = find_score(make_auditor(0.08, partners=0), "record_linkage", "record_linkage.rate")
    assert pooled.value < alone.value - 0.1


def test_colluding_sites_find_what_an_attack_on_one_site_finds():
    auditor = make_auditor(0.08)
    colluding = find_score(auditor, "colluding_sites", "colluding_sites.rate")
    alone = find_score(make_auditor(0.08, partners=0), "record_linkage", "record_linkage.rate")
    assert colluding.value == pytest.approx(alone.value, abs=0.08)
    assert colluding.baseline == pytest.approx(2 / N, rel=0.25)
    assert colluding.value > find_score(auditor, "record_linkage", "record_linkage.rate").value


def test_colluding_sites_without_a_pool_do_not_apply():
    with pytest.raises(NotApplicable, match="several sites in one pool"):
        make_auditor(0.1, partners=0).run("colluding_sites")


def test_reconstruction_counts_only_own_rows():
    auditor = make_auditor(0.0)
    score = find_score(auditor, "transform_inverse", "transform_inverse.breach_rate")
    assert score.value == 1.0 and score.n <= N
    (outcome,) = auditor.run_trials(ATTACKS["transform_inverse"])
    name = next(iter(outcome.candidates))
    assert outcome.candidates[name].shape == (N, D)
    assert outcome.estimate.candidates[name].shape == (N + OTHERS, D)


def test_membership_on_halves_sees_the_pool():
    auditor = make_auditor(0.0, halves=True)
    trial = auditor.half_trials[0]
    assert len(trial.build_view(0.1, "quick").Y) == N // 2 + OTHERS
    score = find_score(auditor, "membership", "membership.true_positive_rate")
    assert score.value > 0.9


def test_label_chance_counts_all_rows_of_the_pool():
    pooled, alone = make_auditor(0.1), make_auditor(0.1, partners=0)
    a, b = (score_label(one.truth, one.draws[0]) for one in (pooled, alone))
    labels = np.append(pooled.truth.label, pooled.draws[0].partners.label)
    expected = np.mean(1 / np.bincount(labels)[pooled.truth.label])
    assert a.value == pytest.approx(expected)
    assert a.baseline == 1 / (N + OTHERS) and b.baseline == 1 / N


@pytest.mark.parametrize("attack", ["known_pairs", "shrinkage", "source_record", "norm_bounds"])
def test_every_kind_of_attack_runs_or_does_not_apply(attack):
    result = make_auditor(0.1).run_one(attack)
    assert result.error is None


@pytest.mark.extended
def test_partner_rows_every_attack_of_a_standard_audit_runs_or_does_not_apply():
    """No attack fails on a pool; those that need earlier releases do not apply to one."""
    auditor = make_auditor(0.3, partners=60, halves=True)
    auditor.policy = replace(auditor.policy, effort="standard")
    applied = set()
    for name in ATTACKS:
        try:
            auditor.run(name)
        except NotApplicable:
            continue
        applied.add(name)
    assert {"record_linkage", "membership", "colluding_sites", "low_bits"} <= applied

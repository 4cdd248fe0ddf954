"""Attacks on halves use the reconstructions that work there, and halves may differ in size."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.audit_cases import (
    AS_IS,
    LAPLACE,
    draw_noisy,
    make_auditor,
    make_policy,
    make_truth,
)

ROTATED = PublicParameters(
    "random_rotation", "rotated", tuple(f"r{j}" for j in range(4)), preserves_distances=True
)


def audit_rotations(n: int = 80) -> Auditor:
    truth, rng = make_truth(n), np.random.default_rng(5)
    maps = [random_orthogonal(4, rng) for _ in range(3)]
    halves = [np.sort(rng.permutation(n)[: n // 2]) for _ in maps[1:]]
    halves = [
        ReleaseDraw(truth.X[half] @ M.T, ROTATED, source=half, members=half)
        for half, M in zip(halves, maps[1:], strict=True)
    ]
    whole = ReleaseDraw(truth.X @ maps[0].T, ROTATED)
    return Auditor(truth, [whole], make_policy(known_records=20, sample_share=0.2), b"s", halves)


def test_auditor_halves_uses_reconstructions_that_work_on_halves(monkeypatch):
    """The sample holds records of the complete release, but none of a half."""
    auditor = audit_rotations()
    best = ("known_pairs", "procrustes")
    misled = [("known_sample_pca", "overlay"), ("known_sample_ica", "matched"), best]
    monkeypatch.setattr(auditor, "_best_reconstructions", misled)
    (score,) = auditor.run("singling_out")
    assert auditor._best_on_halves[0] == best
    assert score.value > 0.9


def test_auditor_halves_some_too_small_to_imitate_membership_scored():
    """A third of the other records is the reference: 30 suffice to imitate a release, 29 do not."""
    n, rng = 178, np.random.default_rng(6)
    members = [np.sort(rng.permutation(n)[:size]) for size in (88, 91)]
    Y = draw_noisy(1, n=n)
    halves = [ReleaseDraw(Y[each], LAPLACE, source=each, members=each) for each in members]
    one = Auditor(make_truth(n), [ReleaseDraw(Y, LAPLACE)], make_policy(), b"s", halves)
    offered = [{*trial.candidates} for trial in one.run_trials(ATTACKS["membership"])]
    assert offered[0] - offered[1] == {"shadow"}
    scores = {score.name: score for score in one.run("membership")}
    assert set(scores) == {"membership.true_positive_rate", "membership.auc"}
    assert all(score.baseline < score.low < score.high for score in scores.values())


def test_auditor_only_known_records_drawn_not_applicable():
    """A resampled release may hold only rows of records that the attacker knows before."""
    one = make_auditor(make_truth(12).X, known_records=10)
    known = one.trials[0].participants.known
    resampled = ReleaseDraw(make_truth(12).X[known], AS_IS, source=known)
    two = Auditor(make_truth(12), [resampled], one.policy, b"s")
    for name in ("known_records", "record_linkage", "low_bits"):
        with pytest.raises(NotApplicable):
            two.run(name)


def test_auditor_one_draw_without_unknown_records_scored_on_the_other():
    one = make_auditor(make_truth(12).X, known_records=8)
    known = one.trials[0].participants.known
    X, public = make_truth(12).X, one.draws[0].public
    draws = [ReleaseDraw(X[known], public, source=known), ReleaseDraw(X, public)]
    found = {
        s.name: s for s in Auditor(make_truth(12), draws, one.policy, b"s").run("record_linkage")
    }
    assert found["record_linkage.rate"].value == 1.0
    assert found["record_linkage.rate"].n == 12 - 8 - 1  # one is the sample

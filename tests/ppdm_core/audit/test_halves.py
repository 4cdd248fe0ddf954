"""Attacks on halves use the reconstructions that work on halves."""

from __future__ import annotations

import numpy as np

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.audit_cases import make_policy, make_truth

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

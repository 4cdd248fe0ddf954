"""Releases whose rows are drawn from the records, some several times and some never."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.audit.evaluator import count_effective
from ppdm_core.metrics import METRICS, ReleaseComparison
from ppdm_core.model.errors import NotApplicable
from tests.support.audit_cases import AS_IS, COPY, D, N, make_policy, make_truth, run_all


def resample(seed: int, noise: float = 0.0, rows: int = N, public=AS_IS) -> ReleaseDraw:
    rng = np.random.default_rng(seed)
    source = rng.integers(0, N, rows)
    return ReleaseDraw(
        make_truth().X[source] + rng.normal(0.0, 1.0, (rows, D)) * noise, public, source
    )


def audit(*draws: ReleaseDraw) -> Auditor:
    return Auditor(make_truth(), draws, make_policy(), b"s")


def test_record_linkage_resampled_copies_finds_every_drawn_record():
    one = audit(resample(1), resample(2))
    found = run_all(one)
    assert found["record_linkage.rate"].value == 1.0
    assert found["transform_inverse.breach_rate"].value == 1.0
    targets = one.trials[0].participants.targets
    present = np.concatenate([targets[np.isin(targets, draw.records)] for draw in one.draws])
    assert found["record_linkage.rate"].n == len(np.unique(present)) < len(targets)


def test_auditor_resampled_noise_scores_baseline():
    found = run_all(audit(*(resample(seed, noise=50.0) for seed in range(8))))
    rate = found["record_linkage.rate"]
    assert 0.02 < rate.baseline < 0.05 and rate.value < 3 * rate.baseline
    assert found["transform_inverse.breach_rate"].value == 0.0


def test_auditor_shuffled_rows_same_scores():
    Y = make_truth().X + np.random.default_rng(3).normal(0.0, 0.1, (N, D))
    order = np.random.default_rng(4).permutation(N)
    aligned = run_all(audit(ReleaseDraw(Y, AS_IS)))
    moved = run_all(audit(ReleaseDraw(Y[order], AS_IS, order)))
    assert set(moved) == {
        *(f"transform_inverse.{m}" for m in METRICS if METRICS[m].goal == "reconstruct"),
        *(f"record_linkage.{s}" for s in ("rate", "surest.rate", "few.rate", "partial.rate")),
        *("knn_accuracy", "knn_accuracy.deterioration"),
    }
    for scenario in ("surest", "few", "partial"):  # ties are broken at random
        del moved[f"record_linkage.{scenario}.rate"]
    for name, score in moved.items():
        assert score.value == pytest.approx(aligned[name].value, rel=1e-12), name
        assert score.n == aligned[name].n, name
    assert set(aligned) - set(moved) >= {"distance_loss", "known_pairs.breach_rate"}


@pytest.mark.parametrize("name", ["known_pairs", "distance_loss"])
def test_auditor_resampled_rows_aligned_audits_not_applicable(name):
    with pytest.raises(NotApplicable, match="needs"):
        audit(resample(1)).run(name)


def test_knn_accuracy_resampled_without_map_not_applicable():
    with pytest.raises(NotApplicable, match="public map, or one row for each record"):
        audit(resample(1, public=replace(COPY, space="embedded"))).run("knn_accuracy")


def test_knn_accuracy_copies_of_record_do_not_vote():
    """Labels are random, so that votes of copies of the record would always be right."""
    label = np.random.default_rng(5).integers(0, 2, N).astype(np.int32)
    source = np.repeat(np.arange(N), 5)
    compared = ReleaseComparison(
        make_truth().X, label, make_truth().X[source], AS_IS, source=source
    )
    assert METRICS["knn_accuracy"].measure(compared).value < 0.75


def test_knn_accuracy_rows_of_one_record_classify_other_folds_only():
    source = np.zeros(10, dtype=np.int64)  # all rows are of one record
    label = (np.arange(N) % 2).astype(np.int32)
    compared = ReleaseComparison(
        make_truth().X, label, make_truth().X[source], AS_IS, source=source
    )
    correct = METRICS["knn_accuracy"].cross_validate(compared).correct
    assert 0 < correct.sum() <= np.count_nonzero(label == 0)


def test_count_effective_copies_add_nothing():
    assert count_effective(np.arange(7)) == 7
    assert count_effective(np.repeat(np.arange(7), 3)) == 7
    assert count_effective(np.array([0] * 9 + [1])) == 1  # (10 * 10) / (81 + 1)

"""Baselines of an attacker who ignores the release: the best constant guess."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.evaluators import find_mode, measure_best_constant
from ppdm_core.metrics import METRICS
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.model.score import Score
from tests.support.audit_cases import make_policy


def scores(X: np.ndarray, Y: np.ndarray, attack: str, **public: Any) -> dict[str, Score]:
    d = X.shape[1]
    original = OriginalTable(
        X,
        np.zeros(len(X), dtype=np.int32),
        Schema(tuple(Numeric(f"x{j}", 0.0, 10.0) for j in range(d))),
    )
    draw = ReleaseDraw(
        Y, PublicParameters("copy", "original", tuple(f"x{j}" for j in range(d)), **public)
    )
    auditor = Auditor(original, [draw], make_policy(known_records=20, sample_share=0.0), b"s")
    return {score.name.split(".")[-1]: score for score in auditor.run(attack)}


def test_breach_rate_constant_column_not_above_baseline():
    """Three ones among 1,000 zeros, and a release that is unrelated to them."""
    rng = np.random.default_rng(0)
    X = np.zeros((1_000, 1))
    X[:3] = 1.0
    rng.shuffle(X)
    score = scores(X, rng.random((1_000, 1)), "known_pairs")["breach_rate"]
    assert score.value > 0.99  # a constant, which ignores the release
    assert score.baseline > 0.99
    assert "guessing one value for all records" in score.sentence
    assert score.value <= score.baseline


def test_measure_best_constant_best_of_mean_median_mode():
    # Mean 3.4, median 2, mode 1: right to within a tenth for none, three and four of ten.
    X = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 5.0, 9.0, 10.0])[:, None]

    def baseline(name: str) -> float:
        metric = METRICS[name]
        return measure_best_constant(
            metric.better,
            X,
            lambda x: metric.measure(X, np.broadcast_to(x, X.shape), np.ptp(X), 0.1),
        )

    assert baseline("breach_rate") == 0.4
    errors = {x: np.mean(np.abs(X - x) / X) for x in (3.4, 2.0, 1.0)}
    assert errors[1.0] == min(errors.values())
    assert baseline("relative_error") == pytest.approx(errors[1.0])
    assert errors[1.0] == pytest.approx((0 * 4 + 0.5 * 3 + 0.8 + 8 / 9 + 0.9) / 10)


@pytest.mark.parametrize(
    ("column", "which"),
    [
        ([1.0, 1.0, 2.0, 4.0, 7.0], 1.0),
        ([3.0, 1.0, 2.0], 2.0),  # all are equally common
        ([5.0, 5.0, 1.0, 1.0, 9.0, 9.0, 2.0], 5.0),
    ],
)
def test_find_mode_ties_and_counts(column, which):
    assert find_mode(np.array(column)) == which


def test_measure_best_constant_long_tail_uses_median():
    """A long tail: the mean is far from all values."""
    X = np.append(np.linspace(9.5, 10.5, 99), 100_000.0)[:, None]
    metric = METRICS["breach_rate"]
    found = measure_best_constant(
        metric.better, X, lambda x: metric.measure(X, np.full_like(X, x), np.ptp(X), 0.1)
    )
    assert found == 0.99


def test_norm_breach_rate_baseline_uses_one_length():
    rng = np.random.default_rng(1)
    X = np.where(rng.random((200, 1)) < 0.9, 1.0, 50.0)
    score = scores(X, X, "norm_bounds", preserves_distances=True)["norm_breach_rate"]
    assert score.baseline > 0.8
    assert "guessing one length for all records" in score.sentence

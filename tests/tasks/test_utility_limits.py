"""Limits on utility scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Limit
from ppdm_core.settings.limits import check_limit
from tasks.settings_check import needs_label

ABSOLUTE = Limit(0.5, "who", "why", absolute=True)


@pytest.mark.parametrize("name", ["best_accuracy", "knn_accuracy.deterioration", "stress"])
def test_check_limit_utility_score_accepted(name: str) -> None:
    check_limit(name, ABSOLUTE)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("deterioration", "Use knn_accuracy.deterioration or "),
        ("stress.deterioration", "Use stress."),
        ("best_accuracy.deterioration", "Use best_accuracy."),
        ("knn_accuracy.stress", "Use knn_accuracy."),
    ],
)
def test_check_limit_unknown_score_refused(name: str, remedy: str) -> None:
    with pytest.raises(BadInput, match="can never be judged") as caught:
        check_limit(name, ABSOLUTE)
    assert caught.value.remedy is not None and caught.value.remedy.startswith(remedy)


def test_check_limit_relative_loss_refused() -> None:
    with pytest.raises(BadInput, match="no baseline that it could exceed"):
        check_limit("knn_accuracy.deterioration", replace(ABSOLUTE, absolute=False))


def test_needs_label_only_class_scores_true() -> None:
    names = ("best_accuracy", "knn_accuracy.deterioration", "class_compactness")
    assert all(map(needs_label, names))
    assert not any(map(needs_label, ("stress", "record_linkage.rate", "amplification.record")))

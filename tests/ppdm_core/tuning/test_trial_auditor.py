from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.model.policy import Limit
from ppdm_core.tuning import trial_auditor
from ppdm_core.tuning.trial_auditor import TrialAuditor
from tests.support.audit_cases import COPY, draw_noisy, make_policy, make_truth

N = 120
LINKAGE, PARTIAL, ACCURACY = "record_linkage", "record_linkage.partial.rate", "knn_accuracy"


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_auditor, "ORIGINALS", {})


def make(kind: type[Auditor], draw: int = 1, limited: str = "record_linkage.rate") -> Auditor:
    policy = make_policy(limits={limited: Limit(0.05, "DPO", "r")})
    return kind(make_truth(N), (ReleaseDraw(draw_noisy(draw, n=N), COPY),), policy, b"s")


def test_trial_auditor_scores_are_those_of_the_audit_without_unjudged_scenarios():
    whole = {score.name: score for score in make(Auditor).run(LINKAGE)}
    brief = {score.name: score for score in make(TrialAuditor).run(LINKAGE)}
    assert PARTIAL in whole and PARTIAL not in brief
    assert brief == {name: score for name, score in whole.items() if "partial" not in name}


def test_trial_auditor_limit_on_the_scenario_it_is_measured():
    names = {score.name for score in make(TrialAuditor, limited=PARTIAL).run(LINKAGE)}
    assert PARTIAL in names


def test_trial_auditor_second_setting_original_is_not_measured_again():
    first, second = make(TrialAuditor), make(TrialAuditor, draw=2)
    first.run(ACCURACY)
    known = second.comparisons[0].original.get_or_compute(ACCURACY, lambda: None)
    assert known is not None
    assert second.run(ACCURACY) == make(Auditor, draw=2).run(ACCURACY)


def test_trial_auditor_other_records_measured_again():
    make(TrialAuditor).run(ACCURACY)
    truth = make_truth(N)
    other = TrialAuditor(
        replace(truth, X=np.sort(truth.X, axis=0)),
        (ReleaseDraw(draw_noisy(1, n=N), COPY),),
        make_policy(),
        b"s",
    )
    assert other.comparisons[0].original.get_or_compute(ACCURACY, lambda: None) is None

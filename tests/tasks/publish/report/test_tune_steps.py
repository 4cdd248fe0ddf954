"""What the report of a refused release says of the last tune."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.tuning.trade_offs import list_trade_offs
from tasks.publish.report.build import build_view
from tasks.tune.result import TuneResult
from tests.ppdm_core.tuning.trials import ACCURACY, LINKAGE, make_trial
from tests.ppdm_core.tuning.trials import LIMITS as TRIED
from tests.support.report_facts import LIMITS, make_facts, make_refused, make_summary

TRIALS = (make_trial(0.01, 0.71), make_trial(0.07, 0.8))
SAME = {name: limit.value for name, limit in LIMITS.items()}
TUNE = TuneResult(
    dataset="wine",
    data="d",
    source="s" * 64,
    policy="p",
    utility=ACCURACY,
    records=519,
    sample=519,
    tried=24,
    tried_in_all=24,
    trials=TRIALS,
    limits=SAME,
    chosen=TRIALS[0].setting.digest,
    has_margin=True,
    trade_offs=list_trade_offs(TRIALS, ACCURACY, TRIED),
    number=3,
)


def list_texts(tune: TuneResult | None) -> list[str]:
    view = build_view(replace(make_facts(make_refused()), tune=tune), "steward")
    return [f"{step.text} {step.command}" for step in view.steps]


def test_refused_release_tuned_broken_limit_and_proposed_setting_quoted():
    texts = " ".join(list_texts(TUNE))
    assert TUNE.trade_offs[0].sentence in texts
    assert "wine tune 3 (24 settings tried)" in texts
    assert f"wine tune 3 proposed {TRIALS[0].setting.title}, with best_accuracy 71.0 %" in texts


def test_refused_release_other_limit_since_then_no_figure_quoted():
    texts = " ".join(list_texts(replace(TUNE, limits={**SAME, LINKAGE: 0.04})))
    assert "wine tune 3 was made under other limits" in texts
    assert TUNE.trade_offs[0].sentence not in texts and "proposed" not in texts


def test_refused_release_no_setting_kept_the_policy_said():
    texts = " ".join(list_texts(replace(TUNE, chosen="")))
    assert "wine tune 3 found no setting that keeps every limit; 24 were tried." in texts


def test_refused_release_never_tuned_command_named():
    assert any("ppdm tune FILE" in text for text in list_texts(None))


def test_published_release_tuned_no_step_of_a_refusal():
    view = build_view(replace(make_facts(make_summary()), tune=TUNE), "steward")
    assert not any("tune" in step.text for step in view.steps)


def test_refused_release_tune_of_other_records_not_quoted():
    texts = " ".join(list_texts(replace(TUNE, data="other", source="other")))
    assert TUNE.name not in texts and "ppdm tune FILE" in texts

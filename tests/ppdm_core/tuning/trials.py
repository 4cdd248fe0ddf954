"""Trials with given figures."""

from __future__ import annotations

from typing import Any

from ppdm_core.gates.score_limits import judge
from ppdm_core.model.policy import Limit
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Finding
from ppdm_core.tuning.setting import Setting
from ppdm_core.tuning.trial import Trial
from ppdm_core.tuning.utility import Utility

LINKAGE = "record_linkage.rate"
ACCURACY = Utility({"best_accuracy": 1.0})
LIMITS = {LINKAGE: Limit(0.05, "DPO", "1 in 20")}
BOUND = Guarantee("bounded", 1.0, 1.0, 6.0)


def make_score(name: str, value: float, half: float = 0.01, **changes: Any) -> Score:
    fields: dict[str, Any] = {
        "name": name,
        "kind": "privacy",
        "better": "down",
        "value": value,
        "low": max(0.0, value - half),
        "high": value + half,
        "n": 500,
        "baseline": 0.0,
        "worst": value,
    }
    return Score(**{**fields, **changes})


def make_accuracy(value: float) -> Score:
    return make_score(
        "best_accuracy", value, kind="utility", better="up", baseline=0.5, original=0.9
    )


def make_trial(risk: float, accuracy: float, half: float = 0.01, **changes: Any) -> Trial:
    """Return a trial with these figures, judged by the real gate."""
    score = make_score(LINKAGE, risk, half)
    finding = judge(score, LIMITS[LINKAGE])
    fields: dict[str, Any] = {
        "setting": Setting("additive_noise", {"b": risk + accuracy}),
        "round": 1,
        "records": 500,
        "scores": (score, make_accuracy(accuracy)),
        "findings": (finding, *changes.pop("more", ())),
        "guarantee": BOUND,
    }
    return Trial(**{**fields, **changes})


def fail(check: str) -> Finding:
    return Finding(check, "FAIL", "It does not hold.")

"""Evidence that a gate may pass, and every way to break it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ppdm_core.gates import Evidence
from ppdm_core.policy import Limit, Policy
from ppdm_core.types import AuditReport, Guarantee, Score

NAN, INF = math.nan, math.inf
BREACH, LINK, USE = "known_pairs.breach_rate", "record_linkage.rate", "knn_accuracy"
OTHER = "shrinkage.relative_error"  # measured, without a limit


def score(name: str, value: float, width: float = 0.01, **changed: Any) -> Score:
    score = Score(
        name=name,
        kind="utility" if name == USE else "privacy",
        better="up" if name in (USE, OTHER) else "down",
        value=value,
        low=value - width,
        high=value + width,
        n=500,
        baseline=0.0,
        worst=value,
        sentence="Measured.",
    )
    return replace(score, **changed)


def limit(value: float, **changed: Any) -> Limit:
    return Limit(value, set_by="DPO", reason="for the test", **changed)


def good() -> Evidence:
    return Evidence(
        report=AuditReport(
            scores=(score(BREACH, 0.02), score(LINK, 0.02), score(USE, 0.9), score(OTHER, 0.5))
        ),
        guarantee=Guarantee("bounded", 1.0, 2.0, 3.0, ("One release.",)),
        method="pca_laplace",
        policy=Policy(
            required=("known_pairs", "record_linkage"),
            limits={
                "amplification.record": limit(30.0),
                BREACH: limit(0.1),
                LINK: limit(0.1),
                USE: limit(0.8, absolute=True),
            },
        ),
    )


def with_score(name: str, **changed: Any) -> Evidence:
    scores = tuple(replace(s, **changed) if s.name == name else s for s in good().report.scores)
    return with_report(scores=scores)


def with_report(**changed: Any) -> Evidence:
    evidence = good()
    return replace(evidence, report=replace(evidence.report, **changed))


def with_limit(name: str, value: float) -> Evidence:
    evidence = good()
    limits = {**evidence.policy.limits, name: limit(value)}
    return replace(evidence, policy=replace(evidence.policy, limits=limits))


def with_limits(value: float) -> Evidence:
    evidence = good()
    limits = {name: replace(old, value=value) for name, old in evidence.policy.limits.items()}
    return replace(evidence, policy=replace(evidence.policy, limits=limits))


def only(*names: str) -> Evidence:
    evidence = with_report(scores=tuple(s for s in good().report.scores if s.name in names))
    return replace(evidence, policy=replace(evidence.policy, required=()))


def with_promise(kind: str, ln_record: float) -> Evidence:
    return replace(good(), guarantee=Guarantee(kind, 1.0, 2.0, ln_record))  # type: ignore[arg-type]


BROKEN: dict[str, Evidence] = {
    "empty report": with_report(scores=()),
    "required audit failed": with_report(failed={"known_pairs": "ValueError"}),
    "required audit skipped": with_report(skipped={"known_pairs": "It has no pairs."}),
    "required audit missing": with_report(scores=good().report.scores[1:]),
    "nobody tried to link": only(BREACH, USE, OTHER),
    "nobody tried to reconstruct": only(LINK, USE),
    "no bound": with_promise("empirical", INF),
    "gamma is NaN": with_promise("bounded", NAN),
    "gamma too large": with_promise("bounded", math.log(30.0) + 1e-6),
    "unknown unit": with_limit("amplification.family", 1e9),
    "limit is NaN": with_limits(NAN),
    "value is NaN": with_score(BREACH, value=NAN),
    "low is NaN": with_score(BREACH, low=NAN),
    "high is infinite": with_score(USE, high=INF),
    "baseline is NaN": with_score(LINK, baseline=NAN),
    "worst draw is NaN": with_score(LINK, worst=NAN),
    "interval upside down": with_score(LINK, low=0.03, high=0.01),
    "value outside its interval": with_score(LINK, value=0.2),
    "no records": with_score(LINK, n=0),
    "an unlimited score is NaN": with_score(OTHER, value=NAN),
    "limited score missing": with_report(scores=good().report.scores[:2]),
    "over the limit": with_score(LINK, value=0.3, low=0.2, high=0.4, worst=0.3),
    "useless": with_score(USE, value=0.5, low=0.4, high=0.6, worst=0.5),
    "too few records to tell": with_score(LINK, low=0.0, high=0.2),
    "measured twice, once over the limit": with_report(
        scores=(score(LINK, 0.3), *good().report.scores)
    ),
}

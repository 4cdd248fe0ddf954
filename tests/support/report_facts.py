"""A release as reports read it: scores with long digits, limits and findings by the real gate."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ppdm_core.gates.amplification import judge as judge_gamma
from ppdm_core.gates.score_limits import judge
from ppdm_core.metrics import METRICS, SentenceValues
from ppdm_core.model.column_risks import ColumnRisk, ColumnRisks
from ppdm_core.model.policy import Attacker, Limit, Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.release import Guarantee, PublicParameters
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.self_test import LeakTest, PolicyCheck, ReleaseTest, SelfTestResult
from ppdm_core.model.verdict import Finding, Verdict, worst
from tasks.publish.report.facts import ReportFacts
from tasks.release_summary import Summary
from tests.support.facts import make_sanitized_facts, make_validated_facts
from warehouse.database import Run
from warehouse.dataset_history import PastRelease
from warehouse.publishing.released_profile import ReleasedProfile, read_released_profile
from warehouse.stage_facts import ColumnFacts, SettingsFacts
from warehouse.stages import Stage

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
SCHEMA = Schema(
    (Numeric("x", 0.0, 1.0), Numeric("y", 0.0, 1.0)),
    label=Categorical("mood", ("calm", "tense")),
    drops_rows=True,
)
LIMITS = {
    "amplification.record": Limit(1100, "DPO", "a bound for all"),
    "record_linkage.rate": Limit(0.05, "DPO", "1 in 20"),
    "known_pairs.breach_rate": Limit(0.1, "DPO", "insiders exist"),
    "membership.true_positive_rate": Limit(0.15, "DPO", "3 in 20"),
    "best_accuracy": Limit(0.75, "partners", "useless below", absolute=True),
}
POLICY = Policy(("record_linkage",), LIMITS, Attacker(40, 0.05, 0.1))


def make_score(name: str, value: float, baseline: float, **given: Any) -> Score:
    """Return a score with an interval around its value."""
    metric = METRICS[name.split(".")[-1]]
    low, high = max(0.0, value - 0.0123), min(1.0, value + 0.0234)
    score = Score(name, metric.kind, metric.better, value, low, high, 519, baseline, value, **given)
    words = SentenceValues(value, baseline, "A story.", 0.1, score.original)
    return replace(score, sentence=metric.sentence(words))


SCORES = (
    make_score("record_linkage.rate", 0.010314, 0.003861, worst_decile=0.023137, victims=0.047),
    make_score("record_linkage.partial.rate", 0.008317, 0.003861, worst_decile=0.0147),
    make_score("known_pairs.breach_rate", 0.006637, 0.009123, worst_group=0.034, group="mood=calm"),
    make_score("membership.true_positive_rate", 0.036629, 0.029412),
    make_score("attribute_inference.inference_rate", 0.91637, 0.91234),
    make_score("best_accuracy", 0.915701, 0.627417, original=0.970123, candidate="knn_accuracy"),
    make_score("knn_accuracy", 0.823456, 0.627417, original=0.970123),
    make_score("distance_correlation", 0.345678, 0.0, original=1.0),
    replace(make_score("distance_loss", 0.704321, 1.0), low=0.65, high=0.75),
)
SELF_TEST = SelfTestResult(
    "c",
    "p",
    (LeakTest("record_linkage", "identity", 20, 20),),
    PolicyCheck(100, (ReleaseTest("identity", ("record_linkage",)),), ReleaseTest("noise", ())),
)
REPORT = AuditReport(
    SCORES,
    skipped={"column_order": Skip(Reason.MISSING_KNOWLEDGE, "It needs a secret order.")},
    self_test=SELF_TEST,
)
GUARANTEE = Guarantee("bounded", 1.3, 1.3, 6.945, ("One release.",))


def make_verdict(scores: tuple[Score, ...], *more: Finding) -> Verdict:
    """Return the verdict of the limits on these scores."""
    findings = [judge(score, LIMITS[score.name]) for score in scores if score.name in LIMITS]
    gamma = judge_gamma("amplification.record", LIMITS["amplification.record"], GUARANTEE, "m")
    all_findings = (gamma, *findings, Finding("required.record_linkage", "PASS", "Ran."), *more)
    return Verdict(worst(all_findings), all_findings, "p" * 64, "d" * 64, "c" * 16)


def make_summary(stage: Stage = Stage.PUBLISHED, **changes: Any) -> Summary:
    """Return a release that kept its limits; the changes replace fields of the summary."""
    run = Run("wine-0001", "wine", 1, "s" * 64, "f" * 64, "c" * 16, stage, 1, None, NOW)
    fields: dict[str, Any] = {
        "settings": SettingsFacts("registry", "partners", POLICY, '{"dataset": {"name": "wine"}}'),
        "validated": make_validated_facts(
            n=570,
            schema=SCHEMA,
            clamped={"x": 4},
            imputed={"y": 0},
            dropped_rows=7,
            dropped_empty={"mood": 7},
        ),
        "sanitized": make_sanitized_facts(
            released=519,
            set_aside=51,
            set_aside_fits=("fit",),
            schema=SCHEMA,
            guarantee=GUARANTEE,
            method="pca_laplace",
            public=PublicParameters("pca_laplace", "components", ("component_1",)),
        ),
        "report": REPORT,
        "verdict": make_verdict(SCORES),
        "ledger": {"gamma_added": "1,038", "gamma_so_far": "1,038", "collusion_waiver": ""},
        "ln_ledger": 6.945,
    }
    return Summary(Path("home"), run, **{**fields, **changes})


def make_broken_scores() -> tuple[Score, ...]:
    """Return the scores of a release in which all persons are found."""
    found = make_score("record_linkage.rate", 1.0, 0.003861, worst_decile=1.0)
    return (found, *SCORES[1:])


def make_refused() -> Summary:
    """Return a release that broke a limit."""
    scores = make_broken_scores()
    report = replace(REPORT, scores=scores)
    return make_summary(Stage.REFUSED, report=report, verdict=make_verdict(scores))


def make_waiting() -> Summary:
    """Return a release that a reviewer decides about."""
    doubt = Finding("earlier_refusals", "REVIEW", "The same data did not pass before.")
    return make_summary(Stage.AWAITING_REVIEW, verdict=make_verdict(SCORES, doubt))


# Without x, the attacker finds measurably fewer persons.
COLUMNS = ColumnFacts(
    ColumnRisks(
        519,
        0.41234,
        (ColumnRisk("y", 0.40123, -0.02, 0.04), ColumnRisk("x", 0.05123, 0.31, 0.41)),
    )
)


def make_facts(summary: Summary) -> ReportFacts:
    """Return a summary with two other releases of the dataset and their ledger."""
    names = ("record_linkage.rate", "best_accuracy")
    this = summary.run
    releases = [
        PastRelease(
            this.release_id,
            NOW,
            this.stage,
            "PASS",
            "pca_laplace",
            dict(zip(names, (0.0103, 0.9157), strict=True)),
        ),
        PastRelease(
            "wine-0002",
            NOW,
            Stage.REFUSED,
            "FAIL",
            "random_rotation",
            dict(zip(names, (1.0, 0.97), strict=True)),
        ),
        PastRelease("wine-0003", NOW, Stage.ABANDONED, None, None),
    ]
    entry = {
        "release_id": this.release_id,
        "audience": "partners",
        "kind": "charged",
        "spent": 0.0,
        "asked": 2.0,
        "total": 2.0,
        "happened": NOW,
        "terms": '{"limits": {"ledger.record": 1000}, "waived": [], "collusion_waiver": ""}',
    }
    second = {**entry, "release_id": "wine-0002", "kind": "refused", "spent": 2.0, "total": 4.0}
    event = {"kind": "created", "detail": "{}", "happened": NOW}
    return ReportFacts(summary, [event], releases, [entry, second], COLUMNS)


def make_released_profile(folder: Path, count: int, n: int = 500) -> ReleasedProfile:
    """Return the profile of a table with this many columns, the last one a label."""
    rng = np.random.default_rng(count)
    name = "a_rather_long_name_of_a_measured_column"
    columns = {f"{name}_{j:03d}": rng.laplace(0.0, 1.0, n) * 1.7**j for j in range(count - 1)}
    path = folder / "data.parquet"
    label = ["calm"] * (n - 9) + ["tense"] * 9
    pq.write_table(pa.table({**columns, "mood": label}), path)
    found = read_released_profile(path)
    assert found is not None
    return found

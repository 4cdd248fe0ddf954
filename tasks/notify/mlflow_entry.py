"""What MLflow shows of a release: names, figures and words.

The names are the same for every method, so that any two runs stand in the same rows. MLflow makes
a section of what is before the slash, and sorts. After it comes the name that a limit has:

    metrics   privacy/record_linkage.rate            what an attacker gets
              utility/knn_accuracy                   what a recipient gets
              utility/knn_accuracy.deterioration     what the original table gives more
              worst_case/amplification.record.ln     ln gamma; none where there is no bound
              zoom/record_linkage.rate.low           all else about a score
    params    method, method/b                       as in the release file
              gamma/record                           in words, also "unbounded"
              limit/record_linkage.rate              in words
              attacker/known_records
    tags      dataset, release_id, version, method, outcome, verdict, ...
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ppdm_core.gates.amplification import FIGURES
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import Policy
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import Score
from ppdm_core.model.shown_text import escape_markdown, show_line
from ppdm_core.model.verdict import Verdict
from ppdm_core.numerics.amplification import MAX_USEFUL_GAMMA, format_gamma
from warehouse.stages import Stage

NOTE = "mlflow.note.content"  # MLflow shows this tag as the description
ZOOM = "zoom/"  # before the parts of a score
SERIES_NOTE = "All releases of the dataset in one run: the step is the number of the release."
SCORE_PARTS = (
    "low",
    "high",
    "baseline",
    "worst",
    "worst_decile",
    "worst_group",
    "victims",
    "original",
    "expected",
)


@dataclass(frozen=True)
class ReleaseEntry:
    """A release as MLflow shows it; nothing in it is private."""

    dataset: str
    number: int
    release_id: str
    started: datetime
    outcome: Stage  # the stage that the release ended in
    outcome_sentence: str  # the outcome in one or two sentences
    method: str
    parameters: Mapping[str, Any]
    policy: Policy
    verdict: Verdict
    scores: tuple[Score, ...]
    guarantee: Guarantee
    code_version: str
    flow_run_id: str | None
    card: str  # markdown
    report: str  # HTML, the steward's edition

    @property
    def name(self) -> str:
        return f"{self.release_id} {self.outcome}"

    @property
    def was_refused(self) -> bool:
        return self.outcome == Stage.REFUSED

    def metrics(self) -> dict[str, float]:
        """Return every figure; judged scores come first, because pages keep this order."""
        scores = sorted(self.scores, key=lambda score: score.name not in self._judged)
        values = {f"{score.kind}/{score.name}": score.value for score in scores}
        for unit, ln_gamma in self._ln_gammas.items():
            values[f"worst_case/amplification.{unit}.ln"] = ln_gamma
        for score in scores:
            parts = {part: getattr(score, part) for part in SCORE_PARTS}
            present = {part: value for part, value in parts.items() if value is not None}
            values |= {f"{ZOOM}{score.name}.{part}": value for part, value in present.items()}
        # MLflow would store infinity as a large number.
        return {name: round_figure(value) for name, value in values.items() if math.isfinite(value)}

    def main_metrics(self) -> dict[str, float]:
        """Return the figures that are compared over releases: all but the parts of scores."""
        return {name: value for name, value in self.metrics().items() if not name.startswith(ZOOM)}

    def list_columns(self) -> list[str]:
        """Return the columns of the list of runs: outcome, method, judged scores and gamma."""
        judged = [s for s in self.scores if s.name in self._judged]
        judged.sort(key=lambda score: score.kind)  # privacy, then utility
        metrics = [f"{score.kind}/{score.name}" for score in judged]
        return [
            "tags.`outcome`",
            "tags.`verdict`",
            "params.`method`",
            *(f"metrics.`{name}`" for name in metrics),
            "params.`gamma/record`",
        ]

    def params(self) -> dict[str, str]:
        limits = {f.check: f.limit for f in self.verdict.findings if f.limit}
        infinite = [score for score in self.scores if not math.isfinite(score.value)]
        params = {
            "method": self.method,
            **{f"method/{name}": str(value) for name, value in self.parameters.items()},
            **self._gammas(),
            **{f"limit/{check}": limit for check, limit in limits.items()},
            **{f"attacker/{name}": str(v) for name, v in asdict(self.policy.attacker).items()},
            **{f"{score.kind}/{score.name}": "not a finite number" for score in infinite},
        }
        return {name: show_line(text) for name, text in params.items()}

    def _gammas(self) -> dict[str, str]:
        """Return figures alone, because plots cut longer texts, and whether they are useful."""
        figures = {
            unit: format_gamma(ln).partition(" (")[0] for unit, ln in self._ln_gammas.items()
        }
        is_useful = self.guarantee.ln_record <= math.log(MAX_USEFUL_GAMMA)
        return {
            **{f"gamma/{unit}": text for unit, text in figures.items()},
            "gamma/worst_case": "useful bound" if is_useful else "no useful bound",
        }

    def tags(self) -> dict[str, str]:
        tags = {
            "dataset": self.dataset,
            "release_id": self.release_id,
            "method": self.method,
            "outcome": self.outcome,
            "verdict": self.verdict.outcome,
            "guarantee": self.guarantee.kind,
            "policy_digest": self.policy.digest,
            "code_version": self.code_version,
            NOTE: self._note(),
        }
        if self.outcome == Stage.PUBLISHED:
            tags["version"] = f"{self.number:04d}"
        if self.flow_run_id is not None:
            tags["prefect_flow_run_id"] = self.flow_run_id
        return tags

    def _note(self) -> str:
        """Return one paragraph of Markdown: outcome, guarantee, and sentences of judged scores."""
        gammas = [f"{unit} {format_gamma(ln)}" for unit, ln in self._ln_gammas.items()]
        sentences = [score.sentence for score in self.scores if score.name in self._judged]
        new = [sentence for sentence in sentences if sentence not in self.outcome_sentence]
        parts = [self.outcome_sentence, f"Gamma: {', '.join(gammas)}.", *new]
        return escape_markdown(" ".join(parts))

    @property
    def _judged(self) -> set[str]:
        return {finding.check for finding in self.verdict.findings}

    @property
    def _ln_gammas(self) -> dict[str, float]:
        return {unit: getattr(self.guarantee, figure) for unit, figure in FIGURES.items()}


def withdrawal_tags(release_id: str, at: str) -> dict[str, str]:
    """Return the tags that show that a release was withdrawn, and when."""
    stage = Stage.WITHDRAWN
    return {"outcome": stage, "withdrawn": at, "mlflow.runName": f"{release_id} {stage}"}


def round_figure(value: float) -> float:
    """Round to six digits: pages show all of them, and no interval is that narrow."""
    return float(f"{value:.6g}")


def experiment_tags(dataset: str) -> dict[str, str]:
    """Return the tags of a dataset's experiment: which metrics are better up or down."""
    better = {way: [m.name for m in METRICS.values() if m.better == way] for way in ("up", "down")}
    note = (
        f"Releases of {dataset}, one run each. "
        f"Higher is better: {', '.join(better['up'])}. "
        f"Lower is better: {', '.join(better['down'])}, amplification."
    )
    return {NOTE: note}

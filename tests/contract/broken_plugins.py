"""Attacks, metrics and gates with one bug each, for the checks to find."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks import Attack
from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.gates import GateInput
from ppdm_core.gates.amplification import Amplification
from ppdm_core.gates.score_limits import ScoreLimits
from ppdm_core.metrics import Measurement, ReleaseComparison
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.breach_rate import BreachRate
from ppdm_core.metrics.distance_loss import DistanceLoss
from ppdm_core.metrics.interval_privacy import IntervalPrivacy
from ppdm_core.metrics.rate import Rate
from ppdm_core.metrics.relative_error import RelativeError
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.model.policy import Limit
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Finding, Verdict
from tests.contract.weak_releases import make_trial, plant_noise

Generator = np.random.Generator


@dataclass(frozen=True)
class IgnoresTheRelease:
    """Guesses like the baseline, whatever attack it stands for."""

    original: Attack

    @property
    def goal(self) -> Goal:
        return self.original.goal

    @property
    def needs(self) -> frozenset[str]:
        return self.original.needs

    @property
    def leak_variant(self) -> str:
        return self.original.leak_variant

    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        assert view.targets is not None
        targets, d = view.targets, len(view.schema.numeric)
        m, t, c = len(view.Y), view.targets.n, len(view.schema.categorical)
        mean = targets.X.mean(axis=0)
        guesses = {
            "reconstruct": lambda: np.tile(mean, (m, 1)),
            "norms": lambda: np.full(m, np.linalg.norm(targets.X, axis=1).mean()),
            "link": lambda: rng.integers(0, m, t),
            "source": lambda: rng.integers(0, t, (m, 1)),
            "member": lambda: rng.random(t),
            "infer": lambda: np.tile(np.append(mean, np.zeros(c)), (t, 1)),
            "pair": lambda: rng.integers(0, t, t),
            "single_out": lambda: draw_blind_statements(targets.X, d + c + 1, rng),
        }
        claims = {"blind": np.full((m, 1), 1 / t)} if self.goal == "source" else {}
        return Estimate({"blind": guesses[self.goal]()}, claims)


def draw_blind_statements(X: np.ndarray, width: int, rng: Generator) -> np.ndarray:
    """Return boxes at random places within the range of the columns."""
    statements = np.empty((200, width, 2))
    statements[:] = -np.inf, np.inf
    d = X.shape[1]
    ends = np.sort(rng.uniform(X.min(axis=0), X.max(axis=0), (2, 200, d)), axis=0)
    statements[:, :d] = np.moveaxis(ends, 0, -1)
    return statements


class KnowsTheTruth(TransformInverse):
    """Reads the original records from outside its view."""

    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        for seed in range(10):
            trial = make_trial(self, plant_noise(self, seed), seed).trial
            if np.array_equal(trial.draw.Y[trial.shuffle], view.Y):
                return Estimate({"truth": trial.truth.X[trial.shuffle]})
        return super().attack(view, rng)


class RunsWithoutItsNeeds(TransformInverse):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        return Estimate({"inverse": view.Y * 1.0})


class WritesToItsView(KnownPairs):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        view.Y[:, 0] = 0.0
        return super().attack(view, rng)


class SortsItsTargets(RecordLinkage):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        estimate = super().attack(view, rng)
        if view.targets is not None and view.targets.X.flags.writeable:
            view.targets.X.sort(axis=0)
        return estimate


class ReturnsItsView(KnownPairs):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        return Estimate({"copy": view.Y})


class EstimatesTooFew(TransformInverse):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        return Estimate({"inverse": super().attack(view, rng).candidates["inverse"][1:]})


class EstimatesNan(TransformInverse):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        return Estimate({"inverse": super().attack(view, rng).candidates["inverse"] * math.nan})


class PointsBehindTheTable(RecordLinkage):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        links = super().attack(view, rng).candidates
        return Estimate({name: link + len(view.Y) for name, link in links.items()})


class LinksByPosition(RecordLinkage):
    """Links the i-th target to the i-th row, which is right on every table that is not shuffled."""

    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        assert view.targets is not None
        return Estimate({"position": np.arange(view.targets.n)})


class UsesGlobalNumpy(TransformInverse):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        X_hat = super().attack(view, rng).candidates["inverse"]
        return Estimate({"inverse": X_hat + np.random.normal(0.0, 1e-3, X_hat.shape)})


class HasNoStory(TransformInverse):
    """It names no source."""

    story = "attacks"


class NoticesUnknownLeak(TransformInverse):
    must_notice: ClassVar = {"no such leak": 0.85}


class NoticesByPercent(TransformInverse):
    must_notice: ClassVar = {"identity": 85}


class ReadsUnknownColumns(TransformInverse):
    reads: ClassVar = frozenset({"words"})


class ScoresAboveOne(BreachRate):
    def measure(self, *args, **kwargs) -> float:
        return 2.0 * super().measure(*args, **kwargs)


class ScoresNan(RelativeError):
    def measure(self, *args, **kwargs) -> float:
        return math.nan


class ScoresAllReleasesEqually(RelativeError):
    def measure(self, *args, **kwargs) -> float:
        super().measure(*args, **kwargs)
        return 0.0


class ScoresUpsideDown(BreachRate):
    def measure(self, *args, **kwargs) -> float:
        return 1.0 - super().measure(*args, **kwargs)


class SkipsNan(RelativeError):
    def measure(self, X, X_hat, ranges, epsilon) -> float:
        used = np.isfinite(X).all(axis=1) & np.isfinite(X_hat).all(axis=1)
        return super().measure(X[used], X_hat[used], ranges, epsilon)


class CountsNanAsMiss(Rate):
    def measure(self, link, truth) -> float:
        return float(np.mean(link == truth))


class ScoresWhatItGets(Rate):
    def measure(self, link, truth) -> float:
        n = min(len(link), len(truth))
        return float(np.sum(link[:n] == truth[:n]) / max(n, 1))


class PrefersNoise(DistanceLoss):
    def measure(self, compared: ReleaseComparison) -> Measurement:
        found = super().measure(compared)
        return replace(found, value=-found.value)


class ScoresAtRandom(DistanceLoss):
    def measure(self, compared: ReleaseComparison) -> Measurement:
        return replace(super().measure(compared), value=float(np.random.default_rng().random()))


class ForgetsThePart(DistanceLoss):
    """Its value on a part of the records is always zero."""

    def measure(self, compared: ReleaseComparison) -> Measurement:
        return replace(super().measure(compared), recompute=lambda keep: 0.0)


class DeclaresNoInterval(Rate):
    interval_method = "wide"


class AveragesSomethingElse(Rate):
    def measure(self, link, truth) -> float:
        return super().measure(link, truth) ** 2


class BelievesWhatItSaw(Rate):
    """Has an interval of (0, 0) if nobody was found."""

    def bound_values(self, values) -> tuple[float, float]:
        return float(values.min()), float(values.max())


class CountsAllPairs(Auc):
    def interval(self, trials, members, others, level) -> tuple[float, float]:
        return super().interval(trials, members * others, members * others, level)


class TrustsItsQuantiles(IntervalPrivacy):
    def interval(self, tables, ranges, level) -> tuple[float, float]:
        value = float(np.mean([self.measure(X, X_hat, ranges, 0.1) for X, X_hat in tables]))
        return 0.98 * value, 1.02 * value


class HasSentenceWithoutFigures(Rate):
    def sentence(self, values) -> str:
        return "Some were found."


class DeclaresFlagAsText(Rate):
    in_summary = "no"  # type: ignore[assignment]


def make_verdict(outcome: str) -> Verdict:
    return Verdict(outcome, (Finding("all", "PASS", "Fine."),), "p", "d", "c")  # type: ignore[arg-type]


class PassesNan(ScoreLimits):
    """Refuses what is above the limit; NaN is above nothing."""

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        for score, line in list_limited(gate_input):
            broken = score.high > line.value if score.better == "down" else score.low < line.value
            yield Finding(score.name, "FAIL" if broken else "PASS", "Measured.")


class PassesAlways(ScoreLimits):
    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        yield Finding("all", "PASS", "Fine.")


class RefusesAlways(ScoreLimits):
    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        yield Finding("all", "FAIL", "No.")


class HasNoFinding(ScoreLimits):
    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        return iter(())


class GivesNoReason(ScoreLimits):
    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        for finding in super().check(gate_input):
            yield Finding(finding.check, finding.outcome, "")


class PrefersWorseScores(ScoreLimits):
    """Takes the limit in the other direction."""

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        for score, line in list_limited(gate_input):
            is_over = score.low >= line.value
            kept = is_over if score.better == "down" else not is_over
            yield Finding(score.name, "PASS" if kept else "FAIL", "Measured.")


class JudgesTheFavourableEnd(ScoreLimits):
    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        for score, line in list_limited(gate_input):
            is_down = score.better == "down"
            kept = score.low <= line.value if is_down else score.high >= line.value
            yield Finding(score.name, "PASS" if kept else "FAIL", "Measured.")


def list_limited(gate_input: GateInput) -> Iterator[tuple[Score, Limit]]:
    for score in gate_input.report.scores:
        if score.name in gate_input.policy.limits:
            yield score, gate_input.policy.limits[score.name]


class WaivesEveryMethod(Amplification):
    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        waived = gate_input.guarantee.kind == "empirical"
        for finding in super().check(gate_input):
            yield Finding(finding.check, "PASS" if waived else finding.outcome, "Waived.")


def decide_by_majority(gate_input: GateInput, *, data_digest: str, code_version: str) -> Verdict:
    from ppdm_core.gates import GATES

    outcomes = [f.outcome for gate in GATES.values() for f in gate.check(gate_input)]
    return make_verdict("PASS" if outcomes.count("PASS") > len(outcomes) / 2 else "FAIL")


def refuse_everything(gate_input: GateInput, *, data_digest: str, code_version: str) -> Verdict:
    return make_verdict("FAIL")

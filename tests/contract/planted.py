"""Attacks, metrics and gates with one bug each, for the checks to find."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.gates import GateInput
from ppdm_core.gates.amplification import Amplification
from ppdm_core.gates.score_limits import ScoreLimits
from ppdm_core.metrics import Measurement, ReleaseComparison
from ppdm_core.metrics.breach_rate import BreachRate
from ppdm_core.metrics.distance_loss import DistanceLoss
from ppdm_core.metrics.rate import Rate
from ppdm_core.metrics.relative_error import RelativeError
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.model.policy import Limit
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Finding, Verdict
from tests.contract.scenes import independent_noise, staged

Generator = np.random.Generator


@dataclass(frozen=True)
class IgnoresTheRelease:
    """The baseline in an attack's clothes."""

    name: str
    goal: Goal

    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        assert view.targets is not None
        people, d = view.targets, len(view.schema.numeric)
        m, t, c = len(view.Y), view.targets.n, len(view.schema.categorical)
        mean = people.X.mean(axis=0)
        answers = {
            "reconstruct": lambda: np.tile(mean, (m, 1)),
            "norms": lambda: np.full(m, np.linalg.norm(people.X, axis=1).mean()),
            "link": lambda: rng.integers(0, m, t),
            "source": lambda: rng.integers(0, t, (m, 1)),
            "member": lambda: rng.random(t),
            "infer": lambda: np.tile(np.append(mean, np.zeros(c)), (t, 1)),
            "pair": lambda: rng.integers(0, t, t),
            "single_out": lambda: blind_statements(people.X, d + c + 1, rng),
        }
        claims = {"blind": np.full((m, 1), 1 / t)} if self.goal == "source" else {}
        return Estimate({"blind": answers[self.goal]()}, claims)


def blind_statements(X: np.ndarray, width: int, rng: Generator) -> np.ndarray:
    """Boxes somewhere in the range of the columns."""
    statements = np.empty((200, width, 2))
    statements[:] = -np.inf, np.inf
    d = X.shape[1]
    ends = np.sort(rng.uniform(X.min(axis=0), X.max(axis=0), (2, 200, d)), axis=0)
    statements[:, :d] = np.moveaxis(ends, 0, -1)
    return statements


class KnowsTheTruth(TransformInverse):
    """Finds the originals somewhere outside its view."""

    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        for seed in range(10):
            stage = staged(independent_noise(np.random.default_rng(seed)), seed).stage
            if np.array_equal(stage.draw.Y[stage.shuffle], view.Y):
                return Estimate({"peeked": stage.truth.X[stage.shuffle]})
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


class AnswersTooShort(TransformInverse):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        return Estimate({"inverse": super().attack(view, rng).candidates["inverse"][1:]})


class AnswersNan(TransformInverse):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        return Estimate({"inverse": super().attack(view, rng).candidates["inverse"] * math.nan})


class PointsBehindTheTable(RecordLinkage):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        links = super().attack(view, rng).candidates
        return Estimate({name: link + len(view.Y) for name, link in links.items()})


class AnswersByPosition(RecordLinkage):
    """The i-th target is the i-th row: right on every table that nobody shuffled."""

    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        assert view.targets is not None
        return Estimate({"position": np.arange(view.targets.n)})


class UsesGlobalNumpy(TransformInverse):
    def attack(self, view: AttackerView, rng: Generator) -> Estimate:
        X_hat = super().attack(view, rng).candidates["inverse"]
        return Estimate({"inverse": X_hat + np.random.normal(0.0, 1e-3, X_hat.shape)})


class TellsNoStory(TransformInverse):
    """It names no source."""

    story = "attacks"


class ScoresAboveOne(BreachRate):
    def measure(self, *args, **kwargs) -> float:
        return 2.0 * super().measure(*args, **kwargs)


class ScoresNan(RelativeError):
    def measure(self, *args, **kwargs) -> float:
        return math.nan


class ScoresEverythingAlike(RelativeError):
    def measure(self, *args, **kwargs) -> float:
        super().measure(*args, **kwargs)
        return 0.0


class ScoresUpsideDown(BreachRate):
    def measure(self, *args, **kwargs) -> float:
        return 1.0 - super().measure(*args, **kwargs)


class SkipsNan(RelativeError):
    def measure(self, X, X_hat, schema, epsilon, ranges=None) -> float:
        used = np.isfinite(X).all(axis=1) & np.isfinite(X_hat).all(axis=1)
        return super().measure(X[used], X_hat[used], schema, epsilon, ranges)


class CountsNanAsMiss(Rate):
    def measure(self, link, truth) -> float:
        return float(np.mean(link == truth))


class ScoresWhatItGets(Rate):
    def measure(self, link, truth) -> float:
        n = min(len(link), len(truth))
        return float(np.sum(link[:n] == truth[:n]) / max(n, 1))


class LikesNoise(DistanceLoss):
    def measure(self, compared: ReleaseComparison) -> Measurement:
        found = super().measure(compared)
        return replace(found, value=-found.value)


class TossesCoins(DistanceLoss):
    def measure(self, compared: ReleaseComparison) -> Measurement:
        return replace(super().measure(compared), value=float(np.random.default_rng().random()))


class ForgetsThePart(DistanceLoss):
    """Of some records it says what it says of nobody."""

    def measure(self, compared: ReleaseComparison) -> Measurement:
        return replace(super().measure(compared), recompute=lambda keep: 0.0)


class SpeaksWithoutFigures(Rate):
    def sentence(self, told) -> str:
        return "Some were found."


class DeclaresFlagAsText(Rate):
    in_summary = "no"  # type: ignore[assignment]


def verdict(outcome: str) -> Verdict:
    return Verdict(outcome, (Finding("all", "PASS", "Fine."),), "p", "d", "c")  # type: ignore[arg-type]


class PassesNan(ScoreLimits):
    """Refuses what is above the limit, and NaN is never above anything."""

    def check(self, evidence: GateInput) -> Iterator[Finding]:
        for score, line in limited(evidence):
            broken = score.high > line.value if score.better == "down" else score.low < line.value
            yield Finding(score.name, "FAIL" if broken else "PASS", "Measured.")


class PassesAlways(ScoreLimits):
    def check(self, evidence: GateInput) -> Iterator[Finding]:
        yield Finding("all", "PASS", "Fine.")


class RefusesAlways(ScoreLimits):
    def check(self, evidence: GateInput) -> Iterator[Finding]:
        yield Finding("all", "FAIL", "No.")


class SaysNothing(ScoreLimits):
    def check(self, evidence: GateInput) -> Iterator[Finding]:
        return iter(())


class GivesNoReason(ScoreLimits):
    def check(self, evidence: GateInput) -> Iterator[Finding]:
        for finding in super().check(evidence):
            yield Finding(finding.check, finding.outcome, "")


class LikesItWorse(ScoreLimits):
    """Took the limit for the other direction."""

    def check(self, evidence: GateInput) -> Iterator[Finding]:
        for score, line in limited(evidence):
            is_over = score.low >= line.value
            kept = is_over if score.better == "down" else not is_over
            yield Finding(score.name, "PASS" if kept else "FAIL", "Measured.")


class JudgesTheFavourableEnd(ScoreLimits):
    def check(self, evidence: GateInput) -> Iterator[Finding]:
        for score, line in limited(evidence):
            is_down = score.better == "down"
            kept = score.low <= line.value if is_down else score.high >= line.value
            yield Finding(score.name, "PASS" if kept else "FAIL", "Measured.")


def limited(evidence: GateInput) -> Iterator[tuple[Score, Limit]]:
    for score in evidence.report.scores:
        if score.name in evidence.policy.limits:
            yield score, evidence.policy.limits[score.name]


class WaivesForEverybody(Amplification):
    def check(self, evidence: GateInput) -> Iterator[Finding]:
        waived = evidence.guarantee.kind == "empirical"
        for finding in super().check(evidence):
            yield Finding(finding.check, "PASS" if waived else finding.outcome, "Waived.")


def passes_by_majority(evidence: GateInput, *, data_digest: str, code_version: str) -> Verdict:
    from ppdm_core.gates import GATES

    outcomes = [f.outcome for gate in GATES.values() for f in gate.check(evidence)]
    return verdict("PASS" if outcomes.count("PASS") > len(outcomes) / 2 else "FAIL")


def refuses_everything(evidence: GateInput, *, data_digest: str, code_version: str) -> Verdict:
    return verdict("FAIL")

"""One attack on one planted release, measured as every audit measures: is the leak noticed?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.evaluators import SCORERS
from ppdm_core.audit.runner import Auditor
from ppdm_core.audit.self_test.leaks import Plant
from ppdm_core.audit.simulation import Cast, Draw, Past, Stage, Truth, cast_all, cast_split
from ppdm_core.metrics import METRICS, Compared
from ppdm_core.model.attacker import AttackerView, Goal, Versions
from ppdm_core.model.policy import Attacker, Effort, Policy
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import wilson

LEVEL = 0.01  # one-sided, over all candidates of an attack
HEADLINE: dict[Goal, str] = {
    "reconstruct": "breach_rate",
    "norms": "norm_breach_rate",
    "link": "rate",
    "source": "source_rate",
    "member": "auc",
    "infer": "inference_rate",
    "pair": "pair_rate",
    "single_out": "singling_rate",
}


def is_noticed(score: Score) -> bool:
    """The worst candidate surely beats the baseline, and one lucky hit is not enough for that."""
    return score.low > max(score.baseline, 1 / score.n)


@dataclass(frozen=True, eq=False)
class PlantStage(Stage):
    plant: Plant | None = None

    def view(self, epsilon: float, effort: Effort) -> AttackerView:
        view, plant = super().view(epsilon, effort), self.plant
        assert plant is not None
        # Scenarios with less knowledge are not what is measured here.
        return replace(view, sample=plant.sample, partial=None)


class Trial(Auditor):
    """An audit of one planted release by one attack."""

    def __init__(self, plant: Plant, name: str, seed: bytes) -> None:
        policy = Policy(
            required=(name,),
            limits={},
            attacker=Attacker(known_records=plant.known),
            effort="quick",
        )
        truth = Truth(plant.X, plant.label, plant.schema)
        draw = Draw(plant.Y, plant.public, plant.source, members=plant.members)
        super().__init__(truth, [draw], policy, seed)
        self.plant = plant

    @cached_property
    def stages(self) -> list[Stage]:
        n, d = self.plant.X.shape
        return [self._set(cast_all(n, d, self.policy.attacker, self.rng("people")))]

    @cached_property
    def split_stages(self) -> list[Stage]:
        (n, d), members = self.plant.X.shape, self.plant.members
        if members is None:
            return []
        return [self._set(cast_split(n, d, members, self.policy.attacker, self.rng("people")))]

    def _set(self, cast: Cast) -> Stage:
        one, past = (
            Stage.set(self.truth, self.draws[0], cast, self.rng("shuffle")),
            kept(self.plant),
        )
        return PlantStage(one.truth, one.draw, one.cast, one.shuffle, one.right, past, self.plant)

    def attacked(self, name: str) -> Score:
        """The figure by which people know this kind of attack."""
        attack = ATTACKS[name]
        metric, played = METRICS[HEADLINE[attack.goal]], self.play(attack)
        assert metric.goal != "release" and metric.goal != "change"
        scorer = SCORERS[attack.goal](self.truth, played, self.policy.attacker.epsilon, "")
        self.level = 1.0 - 2.0 * LEVEL / max(1, len(scorer.names))
        return self._score_attack(attack, metric, scorer)

    def measured(self, name: str, twin: Plant) -> Score:
        """A figure of the release itself, against the same without the leak."""
        metric = METRICS[name]
        assert metric.goal == "release"
        value, baseline = (
            metric.measure(
                Compared(each.X, each.label, each.Y, each.public, self.rng, each.source)
            ).value
            for each in (self.plant, twin)
        )
        n = len(self.plant.Y)
        low, high = wilson(value, n, 1.0 - 2.0 * LEVEL)
        return Score(name, metric.kind, metric.better, value, low, high, n, baseline, value)


def kept(plant: Plant) -> Past:
    """All releases before the last one, by somebody who put their rows together."""
    rows = np.arange(len(plant.Y))
    versions = tuple(Versions(rows, Y, plant.public) for Y in plant.earlier)
    since = np.zeros_like(rows) if plant.since is None else plant.since
    return Past(versions, np.full_like(plant.Y, np.nan), since)

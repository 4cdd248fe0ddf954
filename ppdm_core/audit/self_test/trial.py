"""One attack on one planted leak, scored as in every audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import EarlierReleases, OriginalTable, PartnerRows, ReleaseDraw
from ppdm_core.audit.self_test.leaks import PlantedLeak
from ppdm_core.audit.simulation import (
    AttackTrial,
    Participants,
    choose_half_participants,
    choose_participants,
)
from ppdm_core.metrics import METRICS, AttackMetric, ReleaseComparison
from ppdm_core.metrics._chance import ChanceMetric
from ppdm_core.model.arrays import Ints
from ppdm_core.model.attacker import AttackerView, EarlierRows, Goal
from ppdm_core.model.policy import Attacker, Effort, Policy
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import clopper_pearson

ERROR_RATE = 0.01  # one-sided, over all candidates of an attack


def find_headline_metric(goal: Goal) -> AttackMetric:
    """Return the metric by which attacks with this goal are judged here."""
    for metric in METRICS.values():
        if metric.goal == "release" or metric.goal == "change":
            continue
        if metric.goal == goal and metric.is_headline:
            return metric
    raise KeyError(goal)


def is_noticed(score: Score) -> bool:
    """Return whether the worst candidate surely beats the baseline, and not by one lucky hit."""
    return score.low > max(score.baseline, 1 / score.n)


@dataclass(frozen=True, eq=False)
class LeakTrial(AttackTrial):
    """A trial on a planted leak, with the sample that belongs to it."""

    planted: PlantedLeak | None = None

    def build_view(self, epsilon: float, effort: Effort) -> AttackerView:
        assert self.planted is not None
        view = super().build_view(epsilon, effort)
        # Scenarios with less or more knowledge are not measured here.
        return replace(view, sample=self.planted.sample, partial_columns=None)

    def build_half_known_views(self, view: AttackerView) -> Iterator[tuple[Ints, AttackerView]]:
        return iter(())


class LeakAuditor(Auditor):
    """An audit of one planted leak by one attack."""

    def __init__(self, planted: PlantedLeak, name: str, seed: bytes) -> None:
        policy = Policy(
            required=(name,),
            limits={},
            attacker=Attacker(known_records=planted.known),
            effort="quick",
            level=1.0 - 2.0 * ERROR_RATE,
        )
        truth = OriginalTable(planted.X, planted.label, planted.schema)
        draw = ReleaseDraw(
            planted.Y,
            planted.public,
            planted.source,
            members=planted.members,
            partners=collect_partners(planted),
        )
        super().__init__(truth, [draw], policy, seed)
        self.planted = planted
        self.is_label_column = False  # labels of planted leaks are no secret

    @cached_property
    def trials(self) -> list[AttackTrial]:
        n, d = self.planted.X.shape
        participants = choose_participants(n, d, self.policy.attacker, self.rng("people"))
        return [self._make_trial(participants)]

    @cached_property
    def half_trials(self) -> list[AttackTrial]:
        (n, d), members = self.planted.X.shape, self.planted.members
        if members is None:
            return []
        attacker, rng = self.policy.attacker, self.rng("people")
        return [self._make_trial(choose_half_participants(n, d, members, attacker, rng))]

    def _make_trial(self, participants: Participants) -> AttackTrial:
        trial = AttackTrial.create(self.truth, self.draws[0], participants, self.rng("shuffle"))
        return LeakTrial(
            trial.truth,
            trial.draw,
            trial.participants,
            trial.shuffle,
            trial.right_order,
            collect_earlier(self.planted),
            self.planted.related,
            self.planted,
        )

    def score(self, name: str) -> Score:
        """Return the headline score of an attack."""
        return self.score_attack(ATTACKS[name], find_headline_metric(ATTACKS[name].goal))

    def compare(self, name: str, quiet: PlantedLeak) -> Score:
        """Return a metric of the release, with that of the same release without the leak.

        Metrics that are compared with chance state themselves what chance explains, as for limits.
        """
        metric = METRICS[name]
        assert metric.goal == "release"
        comparison = self.build_comparison(self.planted)
        value, n = metric.measure(comparison).value, len(self.planted.Y)
        if isinstance(metric, ChanceMetric):
            low, high, baseline = value, value, metric.baseline(comparison)
        else:
            low, high = clopper_pearson(value * n, n, 1.0 - 2.0 * ERROR_RATE)
            baseline = metric.measure(self.build_comparison(quiet)).value
        return Score(name, metric.kind, metric.better, value, low, high, n, baseline, value)

    def build_comparison(self, release: PlantedLeak) -> ReleaseComparison:
        return ReleaseComparison(
            release.X,
            release.label,
            release.Y,
            release.public,
            self.rng,
            release.source,
            cells=release.Y,
        )


def collect_partners(planted: PlantedLeak) -> PartnerRows | None:
    """Return what other sites hold; their rows have labels as frequent as those of the records."""
    if planted.partners is None:
        return None
    label = planted.label[np.arange(len(planted.partners)) % len(planted.label)]
    return PartnerRows(planted.partners, label, planted.moments)


def collect_earlier(planted: PlantedLeak) -> EarlierReleases:
    """Return all releases before the last one, with their rows matched by record."""
    rows = np.arange(len(planted.Y))
    versions = tuple(EarlierRows(rows, Y, planted.public) for Y in planted.earlier)
    since = np.zeros_like(rows) if planted.since is None else planted.since
    return EarlierReleases(versions, np.full_like(planted.Y, np.nan), since)

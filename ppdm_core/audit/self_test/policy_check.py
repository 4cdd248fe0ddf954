"""Check on a sample of the records whether a policy would refuse broken releases of this table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ppdm_core.attacks import ATTACKS, Attack
from ppdm_core.audit.auditor import Auditor, name_score
from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw
from ppdm_core.audit.evaluators import GOALS_WITH_OUTSIDERS
from ppdm_core.audit.self_test.broken_releases import (
    NOISE_HOLE,
    REARRANGED,
    BrokenRelease,
    draw_broken_release,
    make_broken_releases,
    make_copy,
    make_noise,
)
from ppdm_core.audit.self_test.matrix import list_limited
from ppdm_core.gates.score_limits import (
    compute_ceiling,
    compute_distances,
    judge_outcome,
)
from ppdm_core.metrics import AttackMetric
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.score import Score, is_sound
from ppdm_core.model.self_test import NOISE, PolicyCheck, ReleaseTest

MAX_RECORDS = 500
LEAKS = frozenset({NOISE_HOLE, REARRANGED})  # tried if an attack with a limit must notice them
KNOWN_RECORD_DIVISOR = 4  # the attacker knows at most n / 4 records, so that targets remain


def check_policy(auditor: Auditor) -> PolicyCheck:
    """Return which broken releases of a sample of the records the policy refuses."""
    trial, draw = PolicyTrial(auditor), auditor.draws[0]
    names = list_limited(auditor.policy)
    broken: list[ReleaseTest] = []
    able: list[str] = []
    for name, release in make_broken_releases(trial.truth, draw, auditor.rng("plants")):
        if name in LEAKS and not any(name in ATTACKS[each].must_notice for each in names):
            continue  # the policy limits no attack that finds this
        # On the first one every attack shows its power; each further one needs one refusal.
        weak = [each for each in names if each not in able]
        refusing = trial.find_refusing(name, release, [*able, *weak])
        found = list(refusing) if not broken else take_first(refusing)
        open_figures = () if found else (trial.observed, trial.refusing_limits)
        broken.append(ReleaseTest(name, tuple(found), *open_figures))
        able += [each for each in found if each not in able]
    weak = [name for name in names if name not in able]
    copy = make_copy(trial.truth, draw.public)
    able += trial.find_refusing("copy", copy, weak) if weak else []
    noise = make_noise(
        trial.truth, draw, auditor.rng("noise"), is_label_column=auditor.is_label_column
    )
    return PolicyCheck(
        records=len(trial.truth.X),
        bad=tuple(broken),
        noise=ReleaseTest(NOISE, tuple(trial.find_refusing(NOISE, noise, names))),
        powerless={name: trial.reasons[name] for name in names if name not in able},
    )


def take_first(found: Iterator[str]) -> list[str]:
    """Return a list of the first element, empty if there is none."""
    return [name for name in [next(found, None)] if name is not None]


def find_refusing_limits(scores: Sequence[Score], limits: Mapping[str, Limit]) -> dict[str, float]:
    """Return a limit that each score would surely break, in two digits; none if there is none.

    It is at most the ceiling of the metric, above which a limit is weak.
    """
    found = {}
    for score in scores:
        favourable, _ = compute_distances(score, limits[score.name])
        if score.better == "down" and favourable > 0:
            unit = 10.0 ** (math.floor(math.log10(favourable)) - 1)
            line = min((math.ceil(favourable / unit) - 1) * unit, compute_ceiling(score))
            if line > 0:
                found[score.name] = float(f"{line:.2g}")
    return found


class PolicyTrial:
    """Broken releases of some of the records, judged by the limits of a policy."""

    def __init__(self, auditor: Auditor) -> None:
        self.auditor = auditor
        self.truth = sample_records(auditor.truth, auditor.rng("sampled"))
        self.policy = limit_effort(auditor.policy, len(self.truth.X))
        self.reasons: dict[str, str] = {}  # why an attack refused nothing the last time
        self.observed: dict[str, float] = {}  # scores of the last release
        self.refusing_limits: dict[str, float] = {}  # that would have refused it

    def find_refusing(
        self, name: str, release: BrokenRelease, attacks: Sequence[str]
    ) -> Iterator[str]:
        """Yield the attacks that surely break a limit on this release."""
        auditor = self.make_auditor(name, release)
        self.observed, self.refusing_limits = {}, {}
        for attack in attacks:
            try:
                scores = auditor.run(attack)
            except NotApplicable as why:
                self.reasons[attack] = str(why)
                continue
            self.reasons[attack] = f"{attack} keeps its limit even on a copy of the table."
            limits = self.policy.limits
            sound = list(filter(is_sound, scores))
            self.observed |= {score.name: score.value for score in sound}
            self.refusing_limits |= find_refusing_limits(sound, limits)
            if any(judge_outcome(score, limits[score.name]) == "FAIL" for score in sound):
                yield attack

    def make_auditor(self, name: str, release: BrokenRelease) -> Auditor:
        rng = self.auditor.rng("plant", name)
        n, is_aligned = len(self.truth.X), self.auditor.draws[0].source is None
        draw = draw_broken_release(release, is_aligned=is_aligned, members=None, rng=rng)
        goals = {ATTACKS[each].goal for each in list_limited(self.policy)}
        count = self.policy.splits * bool(goals & GOALS_WITH_OUTSIDERS)
        members = (np.sort(rng.permutation(n)[: n // 2]) for _ in range(count))
        halves = [
            draw_broken_release(release, is_aligned=is_aligned, members=half, rng=rng)
            for half in members
        ]
        earlier = None if self.auditor.earlier is None else make_first_release(draw)
        found = LimitsAuditor(self.truth, [draw], self.policy, rng.bytes(32), halves, earlier)
        found.is_label_column = self.auditor.is_label_column  # the sample has smaller classes
        return found


class LimitsAuditor(Auditor):
    """An audit that measures only what a limit judges."""

    def score_attack(self, attack: Attack, metric: AttackMetric, scenario: str = "") -> Score:
        name = name_score(attack, metric, scenario)
        if name not in self.policy.limits:
            raise NotApplicable(f"No limit is on {name}.")
        return super().score_attack(attack, metric, scenario)


def make_first_release(draw: ReleaseDraw) -> EarlierReleases:
    """Return the history of a first release, for attacks that compare releases."""
    return EarlierReleases((), np.full_like(draw.Y, np.nan), np.zeros(len(draw.Y), dtype=np.int64))


def sample_records(truth: OriginalTable, rng: np.random.Generator) -> OriginalTable:
    """Return at most MAX_RECORDS random records, in their order."""
    keep = np.sort(rng.permutation(len(truth.X))[:MAX_RECORDS])
    return OriginalTable(truth.X[keep], truth.label[keep], truth.schema, truth.codes[keep])


def limit_effort(policy: Policy, n: int) -> Policy:
    """Return the same limits with quick effort, and an attacker who knows at most a share."""
    attacker = replace(
        policy.attacker,
        known_records=min(policy.attacker.known_records, n // KNOWN_RECORD_DIVISOR),
        sample_share=min(policy.attacker.sample_share, 1 / KNOWN_RECORD_DIVISOR),
    )
    return replace(policy, attacker=attacker, effort="quick", shadow_draws=1)

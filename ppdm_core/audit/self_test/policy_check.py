"""Would this policy refuse a bad release of this table? Tried on a sample of its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.evaluators import OUTSIDERS_NEEDED, Scorer
from ppdm_core.audit.runner import Auditor
from ppdm_core.audit.self_test.broken_releases import Bad, bad_releases, copied, drawn, pure_noise
from ppdm_core.audit.self_test.must_catch import limited
from ppdm_core.audit.simulation import Draw, Past, Truth
from ppdm_core.gates.score_limits import is_sound, outcome_of
from ppdm_core.metrics import AttackMetric
from ppdm_core.model.attacker import Attack
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import Score
from ppdm_core.model.self_test import NOISE, Coverage, Covered

MOST_RECORDS = 500
MOST_KNOWN = 4  # at most one record in so many is the attacker's: somebody must be left to find


@dataclass(frozen=True)
class Cover:
    """What the attacking process is asked, which holds the table."""

    def answer(self, auditor: Auditor) -> Coverage:
        return cover(auditor)


def cover(auditor: Auditor) -> Coverage:
    """What the policy of this audit refuses, of a sample of its records."""
    tried, draw = Tried(auditor), auditor.draws[0]
    names = limited(auditor.policy)
    bad: list[Covered] = []
    able: list[str] = []
    for plant, release in bad_releases(tried.truth, draw, auditor.rng("plants")):
        # On the first one every attack shows what it can do; each other one needs one refusal.
        weak = [name for name in names if name not in able]
        refusing = tried.refusing(plant, release, [*able, *weak])
        found = list(refusing) if not bad else [*first(refusing)]
        bad.append(Covered(plant, tuple(found)))
        able += [name for name in found if name not in able]
    weak = [name for name in names if name not in able]
    able += tried.refusing("copy", copied(tried.truth, draw.public), weak) if weak else []
    noise = pure_noise(tried.truth, draw, auditor.rng("noise"))
    return Coverage(
        records=len(tried.truth.X),
        bad=tuple(bad),
        noise=Covered(NOISE, tuple(tried.refusing(NOISE, noise, names))),
        powerless={name: tried.reasons[name] for name in names if name not in able},
    )


def first(found: Iterator[str]) -> list[str]:
    return [name for name in [next(found, None)] if name is not None]


class Tried:
    """Bad releases of some of the records, judged by the limits of an audit."""

    def __init__(self, auditor: Auditor) -> None:
        self.auditor = auditor
        self.truth = sampled(auditor.truth, auditor.rng("sampled"))
        self.policy = bounded(auditor.policy, len(self.truth.X))
        self.reasons: dict[str, str] = {}  # why an attack refused nothing, lastly

    def refusing(self, plant: str, release: Bad, names: Sequence[str]) -> Iterator[str]:
        """The attacks of these that surely break a limit."""
        audit = self.audit(plant, release)
        for name in names:
            try:
                scores = audit.run(name)
            except NotApplicable as why:
                self.reasons[name] = str(why)
                continue
            self.reasons[name] = f"{name} keeps its limit even on a copy of the table."
            limits = self.policy.limits
            sound = filter(is_sound, scores)
            if any(outcome_of(score, limits[score.name]) == "FAIL" for score in sound):
                yield name

    def audit(self, plant: str, release: Bad) -> Auditor:
        rng = self.auditor.rng("plant", plant)
        n, is_aligned = len(self.truth.X), self.auditor.draws[0].source is None
        everybody = drawn(release, is_aligned=is_aligned, members=None, rng=rng)
        needed = any(ATTACKS[name].goal in OUTSIDERS_NEEDED for name in limited(self.policy))
        halves = (np.sort(rng.permutation(n)[: n // 2]) for _ in range(self.policy.splits * needed))
        splits = [drawn(release, is_aligned=is_aligned, members=half, rng=rng) for half in halves]
        past = None if self.auditor.past is None else first_release(everybody)
        return LimitsOnly(self.truth, [everybody], self.policy, rng.bytes(32), splits, past)


class LimitsOnly(Auditor):
    """An audit that measures nothing but what a limit judges."""

    def _score_attack(self, attack: Attack, metric: AttackMetric, scorer: Scorer) -> Score:
        name = ".".join(filter(None, (attack.name, scorer.scenario, metric.name)))
        if name not in self.policy.limits:
            raise NotApplicable(f"No limit is on {name}.")
        return super()._score_attack(attack, metric, scorer)


def first_release(draw: Draw) -> Past:
    """What attacks that compare releases find at first: the rows that leave now."""
    return Past((), np.full_like(draw.Y, np.nan), np.zeros(len(draw.Y), dtype=np.int64))


def sampled(truth: Truth, rng: np.random.Generator) -> Truth:
    keep = np.sort(rng.permutation(len(truth.X))[:MOST_RECORDS])
    return Truth(truth.X[keep], truth.label[keep], truth.schema, truth.codes[keep])


def bounded(policy: Policy, n: int) -> Policy:
    """The same limits, with little effort, and an attacker who knows no more than a share."""
    attacker = replace(
        policy.attacker,
        known_records=min(policy.attacker.known_records, n // MOST_KNOWN),
        sample_share=min(policy.attacker.sample_share, 1 / MOST_KNOWN),
    )
    return replace(policy, attacker=attacker, effort="quick", shadow_draws=1)

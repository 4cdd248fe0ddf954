"""Show that an attack works: it notices planted leaks, and does not take noise for one.

The same code gives the same counts: every table comes from a seed that names its repetition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.evaluators import GOALS_WITH_OUTSIDERS
from ppdm_core.audit.self_test.leaks import PlantedLeak, plant_leak, replace_by_noise
from ppdm_core.audit.self_test.matrix import REPETITIONS, find_leaks
from ppdm_core.audit.self_test.trial import LeakAuditor, is_noticed
from ppdm_core.metrics import METRICS
from ppdm_core.model.self_test import NOISE, LeakTest


@dataclass(frozen=True)
class KnownAnswersQuestion:
    """The question to the attack process: all leak tests of one attack."""

    name: str

    def answer(self, auditor: Auditor | None = None) -> tuple[LeakTest, ...]:
        return tuple(run_leak_tests(self.name))


def run_leak_tests(name: str) -> Iterator[LeakTest]:
    """Try each leak that must be noticed, then the first of them with noise in its place."""
    if name not in ATTACKS and name not in METRICS:
        raise KeyError(name)
    leaks = tuple(find_leaks(name))
    for leak in leaks:
        noticed = sum(is_leak_noticed(name, leak, i) for i in range(REPETITIONS))
        yield LeakTest(name, leak, int(noticed), REPETITIONS)
    if leaks:
        alarms = sum(is_leak_noticed(name, leaks[0], i, NOISE) for i in range(REPETITIONS))
        yield LeakTest(name, NOISE, int(alarms), REPETITIONS)


def is_leak_noticed(name: str, leak: str, repetition: int, instead: str = "") -> bool:
    """Return whether an attack or metric notices a leak; ``instead`` NOISE: in noise."""
    rng = make_rng(name, leak, instead, repetition)
    planted = plant_leak_for(name, leak, rng)
    quiet = replace_by_noise(planted, rng)
    if instead == NOISE:
        planted, quiet = quiet, replace_by_noise(planted, rng)
    auditor = LeakAuditor(planted, name, rng.bytes(32))
    score = auditor.score(name) if name in ATTACKS else auditor.compare(name, quiet)
    return is_noticed(score)


def plant_leak_for(name: str, leak: str, rng: np.random.Generator) -> PlantedLeak:
    """Return the leak in the variant that suits an attack."""
    if name not in ATTACKS:
        return plant_leak(leak, "", needs_outsiders=False, rng=rng)
    attack = ATTACKS[name]
    needs_outsiders = attack.goal in GOALS_WITH_OUTSIDERS
    return plant_leak(leak, attack.leak_variant, needs_outsiders=needs_outsiders, rng=rng)


def make_rng(*name: object) -> np.random.Generator:
    """Return a generator whose seed is the name."""
    digest = hashlib.blake2b("/".join(map(str, name)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))

"""The attack works: it notices leaks that were planted for it, and takes noise for none.

The same code gives the same counts: every table comes from a key that names its repetition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.evaluators import OUTSIDERS_NEEDED
from ppdm_core.audit.runner import Auditor
from ppdm_core.audit.self_test.leaks import Plant, planted, silenced
from ppdm_core.audit.self_test.must_catch import REPETITIONS, plants_for
from ppdm_core.audit.self_test.trial import Trial, is_noticed
from ppdm_core.model.self_test import NOISE, Proof


@dataclass(frozen=True)
class KnownAnswers:
    """What the attacking process is asked: all trials of one attack."""

    name: str

    def answer(self, auditor: Auditor | None = None) -> tuple[Proof, ...]:
        return tuple(prove(self.name))


def prove(name: str) -> Iterator[Proof]:
    """Each leak that it must notice; then the first of them with noise in its place."""
    plants = plants_for(name)
    for plant in plants:
        noticed = sum(notices(name, plant, i) for i in range(REPETITIONS))
        yield Proof(name, plant, int(noticed), REPETITIONS)
    if plants:
        alarms = sum(notices(name, plants[0], i, NOISE) for i in range(REPETITIONS))
        yield Proof(name, NOISE, int(alarms), REPETITIONS)


def notices(name: str, plant: str, repetition: int, instead: str = "") -> bool:
    rng = derived(name, plant, instead, repetition)
    release = suited(name, plant, rng)
    twin = silenced(release, rng)
    if instead == NOISE:
        release, twin = twin, silenced(release, rng)
    trial = Trial(release, name, rng.bytes(32))
    score = trial.attacked(name) if name in ATTACKS else trial.measured(name, twin)
    return is_noticed(score)


def suited(name: str, plant: str, rng: np.random.Generator) -> Plant:
    """The leak as this attack can meet it: some need people who are not in the release."""
    needs_outsiders = name in ATTACKS and ATTACKS[name].goal in OUTSIDERS_NEEDED
    return planted(plant, name, needs_outsiders=needs_outsiders, rng=rng)


def derived(*name: object) -> np.random.Generator:
    digest = hashlib.blake2b("/".join(map(str, name)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))

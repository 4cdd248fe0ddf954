"""Releases that an attack must break, and one that is independent noise, as an attacker sees them.

A weak release is a leak that the product plants for its own test, or one of
``tests.support.leaks``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ppdm_core.attacks import Attack
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.evaluators import GOALS_WITH_OUTSIDERS
from ppdm_core.audit.self_test.leaks import LEAKS as PRODUCT_LEAKS
from ppdm_core.audit.self_test.leaks import PlantedLeak, plant_leak, remove_half
from ppdm_core.audit.self_test.trial import collect_earlier, collect_partners
from ppdm_core.audit.simulation import AttackTrial, choose_half_participants, choose_participants
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.policy import Attacker
from ppdm_core.numerics.linear_map import has_map, invert
from tests.support.leaks import LEAKS, release_noise

EPSILON = 0.1
WEAK_RELEASES = frozenset({*PRODUCT_LEAKS, *LEAKS})


@dataclass(frozen=True, eq=False)
class WeakTrial:
    """A trial on a weak release; the attacker sees only the view."""

    trial: AttackTrial
    planted: PlantedLeak
    needs_history: bool  # the attack compares the release with earlier ones

    @property
    def view(self) -> AttackerView:
        view = self.trial.build_view(EPSILON, "standard")
        if self.needs_history:
            view = self.trial.add_earlier_releases(view)
        copies = {"inverse": invert(view.public, view.Y)} if has_map(view.public) else {}
        if view.public.space == "original":
            copies = {"as_is": view.Y.copy()}
        return replace(view, sample=self.planted.sample, reconstructions=copies)


def plant_weak_release(attack: Attack, weak: str, seed: int) -> PlantedLeak:
    """Return a leak by its name, in the variant that suits the attack."""
    rng = np.random.default_rng(seed)
    if weak in LEAKS:
        return LEAKS[weak](rng)
    needs_outsiders = attack.goal in GOALS_WITH_OUTSIDERS
    return plant_leak(weak, attack.leak_variant, needs_outsiders=needs_outsiders, rng=rng)


def plant_noise(attack: Attack, seed: int) -> PlantedLeak:
    """Return a release that is independent of every record."""
    planted = release_noise(np.random.default_rng(seed))
    if attack.goal not in GOALS_WITH_OUTSIDERS:
        return planted
    return replace(remove_half(planted), known=planted.known)


def make_trial(attack: Attack, planted: PlantedLeak, seed: int) -> WeakTrial:
    """Choose the participants of a planted leak and shuffle its rows."""
    rng = np.random.default_rng([seed, 1])
    n, d = planted.X.shape
    truth = OriginalTable(planted.X, planted.label, planted.schema)
    draw = ReleaseDraw(
        planted.Y,
        planted.public,
        planted.source,
        members=planted.members,
        partners=collect_partners(planted),
    )
    attacker = Attacker(known_records=planted.known, epsilon=EPSILON)
    participants = (
        choose_participants(n, d, attacker, rng)
        if planted.members is None
        else choose_half_participants(n, d, planted.members, attacker, rng)
    )
    trial = AttackTrial.create(truth, draw, participants, rng)
    needs_history = bool(attack.needs & {"earlier_releases", "arrival_batches"})
    trial = replace(trial, earlier=collect_earlier(planted), related=planted.related)
    return WeakTrial(trial, planted, needs_history)


def make_weak_trial(attack: Attack, weak: str, seed: int = 0) -> WeakTrial:
    return make_trial(attack, plant_weak_release(attack, weak, seed), seed)


def remove_need(view: AttackerView, need: str) -> AttackerView:
    """Return the same view for an attacker who lacks one thing."""
    public = view.public
    if need == "public.map":
        return replace(view, public=replace(public, loadings=None, centre=None))
    if need == "public.noise":
        return replace(view, public=replace(public, scales=None, law=None))
    if need == "map_or_leak":
        return replace(remove_need(view, "public.map"), leaked_map=None)
    if need == "known_or_sample":
        return replace(view, known=None, records=None, sample=None)
    if need == "public.lengths":
        return replace(view, public=replace(public, facts={}, preserves_distances=False))
    if need == "public.part":
        return replace(view, public=replace(public, facts={}))
    if need == "public.resampled":
        return replace(view, public=replace(public, method="other", facts={}))
    if need == "reconstructions":
        return replace(view, reconstructions={}, public=replace(public, space="rotated"))
    return replace(view, **{need: None})


def list_arrays(view: Any, name: str = "") -> dict[str, np.ndarray]:
    """Return every array in a view, by the path of its fields."""
    if isinstance(view, np.ndarray):
        return {name: view}
    found: dict[str, np.ndarray] = {}
    if is_dataclass(view):
        inside = {field.name: getattr(view, field.name) for field in fields(view)}
    elif isinstance(view, dict):
        inside = view
    elif isinstance(view, tuple):
        inside = {str(i): each for i, each in enumerate(view)}
    else:
        return found
    for key, each in inside.items():
        found |= list_arrays(each, f"{name}.{key}" if name else key)
    return found

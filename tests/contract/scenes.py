"""Releases that an attack must break, and one that tells nothing, as an attacker sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.self_test.known_answers import plant_leak_for
from ppdm_core.audit.self_test.matrix import find_leaks
from ppdm_core.audit.simulation import AttackTrial, choose_half_participants, choose_participants
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Batches, EarlierRows
from ppdm_core.model.policy import Attacker
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.linear_map import has_map, invert
from tests.contract import (
    scene_attribute_inference,
    scene_correlation_filter,
    scene_kernel_support,
    scene_known_records,
    scene_linkability,
    scene_membership,
    scene_release_averaging,
    scene_shrinkage,
    scene_singling_out,
    scene_source_record,
    scene_trilateration,
)

N, D = 150, 4
KNOWN, SAMPLE = 20, 30
EPSILON = 0.1


@dataclass(frozen=True, eq=False)
class Weak:
    """A table, a release of it, and what the attacker holds beside."""

    X: Floats  # (n, d)
    Y: Floats  # (m, s)
    public: PublicParameters
    source: Ints | None = None
    members: Ints | None = None
    label: np.ndarray | None = None
    C: np.ndarray | None = None  # released codes
    codes: np.ndarray | None = None  # true ones
    schema: Schema | None = None
    sample: Floats | None = None
    earlier: tuple[Floats, ...] = ()
    since: Ints | None = None
    leak: PublicParameters | None = None
    known: int = KNOWN


@dataclass(frozen=True, eq=False)
class Scene:
    """A view, and what only the scorer knows."""

    stage: AttackTrial
    weak: Weak

    @property
    def view(self) -> AttackerView:
        weak, view = self.weak, self.stage.build_view(EPSILON, "standard")
        copies = {"inverse": invert(view.public, view.Y)} if has_map(view.public) else {}
        if view.public.space == "original":
            copies = {"as_is": view.Y.copy()}
        return replace(
            view,
            sample=weak.sample,
            earlier_releases=tuple(
                EarlierRows(self.stage.inverse_shuffle, Y, weak.public) for Y in weak.earlier
            ),
            arrival_batches=self.arrival_batches,
            reconstructions=copies,
        )

    @property
    def arrival_batches(self) -> Batches:
        """All at once, if the scene does not say."""
        n, stage = len(self.weak.X), self.stage
        since = np.zeros(n, dtype=np.int64) if self.weak.since is None else self.weak.since
        behind = stage.draw.records[stage.shuffle]
        return Batches(since[behind], since[stage.participants.targets])


def people(rng: np.random.Generator, n: int) -> Floats:
    """Correlated, inside [0, 1], far enough apart that a guess of the mean finds nobody."""
    return np.clip(0.7 * rng.random((n, D)) + 0.3 * rng.random((n, 1)), 0.0, 1.0)


def orthogonal(rng: np.random.Generator, d: int = D) -> Floats:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return np.asarray(Q * np.sign(np.diag(R)))


def unit_box(d: int) -> Schema:
    return Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d)))


def laplace_public(L: Floats, b: float) -> PublicParameters:
    return PublicParameters(
        method="pca_laplace",
        space="components",
        columns=tuple(f"component_{i}" for i in range(L.shape[1])),
        centre=np.full(len(L), 0.5),
        loadings=L,
        law="laplace",
        scales=np.full(L.shape[1], b),
    )


def rotation(rng: np.random.Generator) -> Weak:
    X = people(rng, N)
    columns = tuple(f"rotated_{i}" for i in range(D))
    public = PublicParameters("random_rotation", "rotated", columns, preserves_distances=True)
    return Weak(X, X @ orthogonal(rng).T, public, sample=people(rng, SAMPLE))


def noisy(rng: np.random.Generator, b: float) -> Weak:
    X, M = people(rng, N), orthogonal(rng)
    Y = (X - 0.5) @ M + rng.laplace(0.0, b, X.shape)
    return Weak(X, Y, laplace_public(M, b), sample=people(rng, SAMPLE))


def slight_noise(rng: np.random.Generator) -> Weak:
    return noisy(rng, 0.005)


def slight_noise_on_half(rng: np.random.Generator) -> Weak:
    return half(slight_noise(rng), rng)


def independent_noise(rng: np.random.Generator) -> Weak:
    X, M = people(rng, N), orthogonal(rng)
    Y = rng.laplace(0.0, 1.0, X.shape)
    return Weak(X, Y, laplace_public(M, 1.0), sample=people(rng, SAMPLE))


def half(weak: Weak, rng: np.random.Generator) -> Weak:
    """The same with every other person outside the release."""
    members = np.sort(rng.permutation(len(weak.X))[: len(weak.X) // 2])
    return replace(weak, Y=weak.Y[members], source=members, members=members)


SCENES: dict[str, Callable[[np.random.Generator], Weak]] = {
    "rotation": rotation,
    "slight noise": slight_noise,
    "slight noise on half": slight_noise_on_half,
    "silence": independent_noise,
}
for _module in (
    scene_attribute_inference,
    scene_linkability,
    scene_release_averaging,
    scene_singling_out,
    scene_correlation_filter,
    scene_kernel_support,
    scene_known_records,
    scene_membership,
    scene_shrinkage,
    scene_source_record,
    scene_trilateration,
):
    _name = _module.__name__.rpartition("scene_")[2]
    SCENES[f"for {_name}"] = lambda rng, make=_module.weak: Weak(**make(rng))
# What the audit plants for its own test is weak enough for these.
for _attack in (
    "column_order",
    "known_sample_ica",
    "known_sample_pca",
    "low_bits",
    "norm_bounds",
    "release_differencing",
):
    SCENES[f"for {_attack}"] = lambda rng, attack=_attack: planted_for(attack, rng)


def planted_for(attack: str, rng: np.random.Generator) -> Weak:
    plant = plant_leak_for(attack, next(iter(find_leaks(attack))), rng)
    same = {field.name: getattr(plant, field.name) for field in fields(plant)}
    return Weak(**same)


def scene(kind: str, seed: int = 0) -> Scene:
    return staged(SCENES[kind](np.random.default_rng(seed)), seed)


def staged(weak: Weak, seed: int) -> Scene:
    rng = np.random.default_rng([seed, 1])
    n, d = weak.X.shape
    label = np.zeros(n, dtype=np.int32) if weak.label is None else weak.label
    truth = OriginalTable(weak.X, label, weak.schema or unit_box(d), weak.codes)
    draw = ReleaseDraw(weak.Y, weak.public, weak.source, weak.C, weak.members, weak.leak)
    attacker = Attacker(known_records=weak.known, epsilon=EPSILON)
    participants = (
        choose_participants(n, d, attacker, rng)
        if weak.members is None
        else choose_half_participants(n, d, weak.members, attacker, rng)
    )
    return Scene(AttackTrial.create(truth, draw, participants, rng), weak)


def without(view: AttackerView, need: str) -> AttackerView:
    """The same view for an attacker who lacks one thing."""
    public = view.public
    if need == "public.map":
        return replace(view, public=replace(public, loadings=None, centre=None))
    if need == "public.noise":
        return replace(view, public=replace(public, scales=None, law=None))
    if need == "map_or_leak":
        return replace(without(view, "public.map"), leaked_map=None)
    if need == "known_or_sample":
        return replace(view, known=None, records=None, sample=None)
    if need == "public.lengths":
        return replace(view, public=replace(public, facts={}, preserves_distances=False))
    if need == "public.resampled":
        return replace(view, public=replace(public, method="other", facts={}))
    if need == "reconstructions":
        return replace(view, reconstructions={}, public=replace(public, space="rotated"))
    return replace(view, **{need: None})


def arrays(view: Any, name: str = "") -> dict[str, np.ndarray]:
    """Everything in a view that could be written to."""
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
        found |= arrays(each, f"{name}.{key}" if name else key)
    return found

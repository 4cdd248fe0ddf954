"""The weak releases of the contract tests as single attacks are shown them, with their truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ppdm_core.model.attacker import AttackerView, RecordSet
from ppdm_core.numerics.linear_map import has_map, invert
from tests.contract import scene_kernel_support, scene_membership, scene_source_record
from tests.contract.scene_source_record import people, picked


def everybody(scene: dict[str, Any]) -> RecordSet:
    n = len(scene["X"])
    return RecordSet(scene["X"], np.zeros((n, 0), dtype=np.int32), scene["label"])


def by_row(scene: dict[str, Any]) -> dict[str, Any]:
    """Records and labels in the order of the rows."""
    source = scene["source"]
    kept = {name: scene[name] for name in ("Y", "public", "schema", "source")}
    return {**kept, "X": scene["X"][source], "label": scene["label"][source]}


def source_scene(rng: np.random.Generator) -> dict[str, Any]:
    scene = scene_source_record.weak(rng)
    return {**by_row(scene), "targets": everybody(scene)}


def member_scene(rng: np.random.Generator, b: float = 0.02) -> dict[str, Any]:
    return with_targets(scene_membership.weak(rng, b), rng)


def kernel_scene(rng: np.random.Generator) -> dict[str, Any]:
    return with_targets(scene_kernel_support.weak(rng), rng)


def with_targets(scene: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    order = rng.permutation(len(scene["X"]))
    return {
        **by_row(scene),
        "targets": picked(everybody(scene), order),
        "order": order,
        "is_member": np.isin(order, scene["members"]),
        "reference": people(150, rng),
    }


def make_target_view(scene: dict[str, Any]) -> AttackerView:
    """Return the view of an attacker who holds the targets of the scene."""
    names = ("Y", "label", "public", "schema", "targets")
    return AttackerView(epsilon=0.1, **{name: scene[name] for name in names})


def make_member_view(scene: dict[str, Any]) -> AttackerView:
    """Return the same with the reference, and with the inverse of a public map."""
    view = replace(make_target_view(scene), reference=scene["reference"])
    if not has_map(view.public):
        return view
    return replace(view, reconstructions={"inverse": invert(view.public, view.Y)})

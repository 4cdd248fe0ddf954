"""Weak releases with their truth, for tests of single attacks that name sources or members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ppdm_core.audit.self_test.leaks import PlantedLeak, leak_kernels
from ppdm_core.model.attacker import AttackerView, RecordSet
from ppdm_core.numerics.linear_map import has_map, invert
from tests.support.leaks import draw_persons, leak_components_of_half, select_records
from tests.support.views import make_records


def make_source_case(rng: np.random.Generator) -> dict[str, Any]:
    """Return rows drawn from narrow kernels, and all records as targets."""
    planted = leak_kernels(rng, 150, 150)
    return {**order_by_row(planted), "targets": collect_records(planted)}


def make_member_case(rng: np.random.Generator, b: float = 0.02) -> dict[str, Any]:
    """Return components with noise of scale ``b``, and targets of which half are members."""
    return add_targets(leak_components_of_half(rng, b), rng)


def make_kernel_case(rng: np.random.Generator) -> dict[str, Any]:
    """Return ten rows around each member, and targets of which half are members."""
    return add_targets(leak_kernels(rng, 300, 1500, np.arange(150)), rng)


def add_targets(planted: PlantedLeak, rng: np.random.Generator) -> dict[str, Any]:
    order = rng.permutation(len(planted.X))
    return {
        **order_by_row(planted),
        "targets": select_records(collect_records(planted), order),
        "order": order,
        "is_member": np.isin(order, planted.members),
        "reference": draw_persons(150, rng),
    }


def collect_records(planted: PlantedLeak) -> RecordSet:
    return make_records(planted.X, label=planted.label)


def order_by_row(planted: PlantedLeak) -> dict[str, Any]:
    """Return the release, with records and labels in the order of its rows."""
    return {
        "Y": planted.Y,
        "public": planted.public,
        "schema": planted.schema,
        "source": planted.source,
        "X": planted.X[planted.source],
        "label": planted.label[planted.source],
    }


def make_target_view(case: dict[str, Any]) -> AttackerView:
    """Return the view of an attacker who holds the targets of the case."""
    names = ("Y", "label", "public", "schema", "targets")
    return AttackerView(epsilon=0.1, **{name: case[name] for name in names})


def make_member_view(case: dict[str, Any]) -> AttackerView:
    """Return the same with the reference, and with the inverse of a public map."""
    view = replace(make_target_view(case), reference=case["reference"])
    if not has_map(view.public):
        return view
    return replace(view, reconstructions={"inverse": invert(view.public, view.Y)})

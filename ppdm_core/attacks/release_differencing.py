"""Compare releases: a record that arrived, changed or left with few others is easily found."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import AttackerView, Batches, Estimate, Goal
from ppdm_core.model.errors import NotApplicable


@dataclass(frozen=True)
class ReleaseDifferencing(Attack):
    """A subscriber compares the releases, and knows in which of them a person's record was new.

    A record that does not change keeps its row. So rows that no earlier release has belong to
    records that arrived or changed since, and only these need to be searched for such a person. The
    same goes for every earlier release: a batch is all rows that exactly the same releases hold.
    Labels rule out rows as in ``record_linkage``, whose
    candidates are tried within each batch; ``blind`` is any row of it.

    The scenario ``left``: a person is known to have left since the last release, among as many rows
    as are gone from it. Their records are not stored, so others are used in their place, in random
    batches of that size. In a first release all rows are one batch, and no person has left.

    References: Denning, Denning (1979), inference from answers about nearly the same people.
    """

    name: ClassVar[str] = "release_differencing"
    story: ClassVar[str] = (
        "A subscriber compares releases, knowing when a person's record arrived or changed."
    )
    title: ClassVar[str] = "Compares several releases"
    goal: ClassVar[Goal] = "link"
    needs: ClassVar[frozenset[str]] = frozenset({"arrival_batches", "targets"})
    must_notice: ClassVar[Mapping[str, float]] = {"arrivals": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.arrival_batches is not None
        found = link_within_batches(view, view.arrival_batches, rng)
        if view.departure_batches is None:
            return Estimate(found)
        return Estimate(
            found, scenarios={"left": link_within_batches(view, view.departure_batches, rng)}
        )


def link_within_batches(
    view: AttackerView, batches: Batches, rng: np.random.Generator
) -> dict[str, Ints]:
    """Return candidates of ``record_linkage`` with rows of the target's own batch only.

    Other batches are ruled out in the same way as other labels.
    """
    assert view.targets is not None
    rows, target_codes = encode_batches(view, batches)
    seen = replace(
        view,
        label=rows,
        targets=replace(view.targets, label=target_codes),
        partial_columns=None,
        further=None,  # batches are known of the rows in memory
    )
    found = {"blind": guess_rows(view.Y, rows, target_codes, rng)}
    with suppress(NotApplicable):  # where values cannot be compared
        found |= RecordLinkage().attack(seen, rng).candidates
    return found


def encode_batches(view: AttackerView, batches: Batches) -> tuple[Codes, Codes]:
    """Return one code of rows and of targets for each label of each batch."""
    assert view.targets is not None
    label = np.concatenate([view.label, view.targets.label])
    batch = np.concatenate([batches.rows, batches.targets])
    _, code = np.unique(np.column_stack([batch, label]), axis=0, return_inverse=True)
    return tuple(np.split(code.ravel().astype(np.int32), [len(view.label)]))  # type: ignore[return-value]


def guess_rows(Y: Floats, rows: Codes, target_codes: Codes, rng: np.random.Generator) -> Ints:
    """Draw any row of the same code for each target, independent of row positions; -1 for none."""
    order = np.lexsort((*Y.T, rows))
    first = np.searchsorted(rows[order], target_codes)
    count = np.searchsorted(rows[order], target_codes, side="right") - first
    place = first + np.floor(rng.random(len(target_codes)) * count).astype(np.int64)
    return np.where(count > 0, order[place.clip(max=len(rows) - 1)], -1)

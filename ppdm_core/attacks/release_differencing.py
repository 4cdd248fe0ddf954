"""Compare releases: who came, changed or left with few others is easily found among their rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import Attack, AttackerView, Batches, Estimate, Goal
from ppdm_core.model.errors import NotApplicable


@dataclass(frozen=True)
class ReleaseDifferencing(Attack):
    """A subscriber compares the releases, and knows in which of them somebody's record was new.

    A record that does not change keeps its row. So rows that no earlier release has belong to
    people who came or changed since, and only these need to be searched for such a person. The
    same goes for every earlier release: a batch is all rows that just the same releases had.
    Labels rule out rows as in ``record_linkage``, whose
    candidates are tried within each batch; ``blind`` is any row of it.

    The scenario ``left``: somebody is known to have left since the last release, among as many rows
    as are gone from it. Their records are not kept, so others stand in for them, in random batches
    of that size. Of a first release all rows are one batch, and nobody has left.

    References: Denning, Denning (1979), inference from answers about nearly the same people.
    """

    name: ClassVar[str] = "release_differencing"
    story: ClassVar[str] = "A subscriber compares releases, knowing when a person came or changed."
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
    """Whoever is in another batch is ruled out as somebody with another label is."""
    assert view.targets is not None
    rows, people = encode_batches(view, batches)
    seen = replace(
        view, label=rows, targets=replace(view.targets, label=people), partial_columns=None
    )
    found = {"blind": guess_rows(view.Y, rows, people, rng)}
    with suppress(NotApplicable):  # where values cannot be compared
        found |= RecordLinkage().attack(seen, rng).candidates
    return found


def encode_batches(view: AttackerView, batches: Batches) -> tuple[Codes, Codes]:
    """Of rows and targets: one number for each label of each batch."""
    assert view.targets is not None
    label = np.concatenate([view.label, view.targets.label])
    batch = np.concatenate([batches.rows, batches.targets])
    _, code = np.unique(np.column_stack([batch, label]), axis=0, return_inverse=True)
    return tuple(np.split(code.ravel().astype(np.int32), [len(view.label)]))  # type: ignore[return-value]


def guess_rows(Y: Floats, rows: Codes, people: Codes, rng: np.random.Generator) -> Ints:
    """(t,) any row of the same code, wherever it stands; -1 where there is none."""
    order = np.lexsort((*Y.T, rows))
    first = np.searchsorted(rows[order], people)
    count = np.searchsorted(rows[order], people, side="right") - first
    place = first + np.floor(rng.random(len(people)) * count).astype(np.int64)
    return np.where(count > 0, order[place.clip(max=len(rows) - 1)], -1)

"""Find persons of one site in a pool, with the help of all other sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.model.arrays import Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, KnownRows


@dataclass(frozen=True)
class ColludingSites(Attack):
    """All other sites of a common release work together against one of them.

    Each recognises its own rows in the pool, because it made them. Without them, the rows of one
    site remain, and the colluding sites look among these for persons whose full records they know,
    as ``record_linkage`` does.

    If the sites exchanged moments, one of the estimates in which they look is that of
    ``pooled_moments``. It finds more persons of whom only some columns are known. For complete
    records the moments add nothing: how likely a row is for a record follows from the public noise,
    and how likely it is for any person from the rows themselves.

    References: Bonawitz et al., "Practical secure aggregation for privacy-preserving machine
    learning" (2017), section 4: what a sum hides from all but one of the parties.
    """

    name: ClassVar[str] = "colluding_sites"
    story: ClassVar[str] = (
        "All other sites remove their rows from the pool and look for persons in what remains."
    )
    title: ClassVar[str] = "Other sites work together"
    goal: ClassVar[Goal] = "link"
    needs: ClassVar[frozenset[str]] = frozenset({"partner_rows", "targets", "reconstructions"})
    must_notice: ClassVar[Mapping[str, float]] = {"pooled rows": 0.85}
    limited_as: ClassVar[tuple[str, ...]] = (RecordLinkage.name,)

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.partner_rows is not None
        rest = np.setdiff1d(np.arange(len(view.Y)), view.partner_rows)
        found = RecordLinkage().attack(select_view_rows(view, rest), rng)

        def restore(links: Mapping[str, Ints]) -> dict[str, Ints]:
            return {name: np.append(rest, -1)[each] for name, each in links.items()}

        return Estimate(
            restore(found.candidates),
            scenarios={name: restore(links) for name, links in found.scenarios.items()},
        )


def select_view_rows(view: AttackerView, rows: Ints) -> AttackerView:
    """Return the view with some of its rows; no row of a partner is left."""
    known = view.known
    if known is not None:
        known = KnownRows(known.X, np.searchsorted(rows, known.rows))
    return replace(
        view,
        Y=view.Y[rows],
        label=view.label[rows],
        C=None if view.C is None else view.C[rows],
        known=known,
        partner_rows=None,
        reconstructions={name: each[rows] for name, each in view.reconstructions.items()},
    )

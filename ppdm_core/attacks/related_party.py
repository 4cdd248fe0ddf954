"""Infer the columns of one party from related columns of another one and a common release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._map_fitting import ridge
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.other_party import round_to_values
from ppdm_core.attacks.shrinkage import filter_with_sample
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.numerics.linear_map import (
    compute_components,
    get_centre_and_loadings,
    has_noise,
    noise_variance,
)


@dataclass(frozen=True)
class RelatedParty(Attack):
    """Another party of a common release holds columns that are related to those of this one.

    It knows its own columns of every person, and which row is whose. From the known records it
    learns how the columns follow from its own, by ridge regression, and how far they are from that.
    What remains of the release, after it subtracted its own part, corrects this guess by a linear
    filter with the known map and the scale of the noise. Of persons outside the release it has the
    guess alone: the excess over them is what the release adds.

    Candidates, within the declared bounds: ``corrected``, and ``rounded``, which moves it to the
    nearest value that a known record has.

    A party that attacks its own part does not have the columns of the others. An audit gives the
    attacker one column for each of its own, with normal noise, at a correlation of 0.9.

    References: Mukherjee, Chen, Gangopadhyay (2008), section 3.4, which does not consider the
    other party.
    """

    name: ClassVar[str] = "related_party"
    story: ClassVar[str] = (
        "Another party of the common release holds columns that are related to these, and "
        "combines them with what remains after it subtracts its own part."
    )
    title: ClassVar[str] = "Another party holds related columns"
    goal: ClassVar[Goal] = "infer"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"known", "targets", "related", "public.map", "public.part"}
    )
    must_notice: ClassVar[Mapping[str, float]] = {"related columns": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.known is not None
        assert view.related is not None
        low, high = view.schema.lows, view.schema.highs
        found = np.clip(correct_by_release(view), low, high)
        rounded = round_to_values(found, view.known.X)
        none = np.zeros((len(found), len(view.schema.categorical)))
        return Estimate(
            {name: np.hstack([X, none]) for name, X in (("corrected", found), ("rounded", rounded))}
        )


def correct_by_release(view: AttackerView) -> Floats:
    """Return the columns of the targets; the row of a target corrects what its columns say."""
    known, related, public = view.known, view.related, view.public
    assert known is not None
    assert related is not None
    k = len(known.X)
    guess = ridge(related.known, known.X, np.concatenate([related.known, related.targets]))
    centre, loadings = get_centre_and_loadings(public)
    noise = noise_variance(public) if has_noise(public) else np.zeros(loadings.shape[1])
    correct = filter_with_sample(noise, np.zeros(len(centre)), loadings, known.X - guess[:k])
    found: Floats = guess[k:].copy()
    inside = related.rows >= 0
    Z = compute_components(view)[related.rows[inside]]
    found[inside] += correct(Z - (found[inside] - centre) @ loadings)
    return found

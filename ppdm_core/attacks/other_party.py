"""Recover the columns of one party from a common release with other columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.shrinkage import filter_with_sample
from ppdm_core.attacks.transform_inverse import fill_dropped_directions, make_inverses
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows, RowMap
from ppdm_core.numerics.linear_map import get_centre_and_loadings, has_noise, noise_variance


@dataclass(frozen=True)
class OtherParty(Attack):
    """Another party of a common release subtracts its own part and looks at what remains.

    Parties hold different columns of the same persons, and the release is the sum of their parts.
    Every party knows its own columns of every person, its own noise, and the order of persons and
    columns: what remains is the part of the other party, under a known map.

    Candidates, all within the declared bounds:
    ``clipped`` inverts the map;
    ``middle`` takes the middle of the bounds where the map keeps nothing;
    ``predicted`` also uses mean and covariance of the records that the party knows, and the scale
    of the noise;
    ``rounded`` moves these estimates to the nearest value that a known record has, for columns of
    few values.

    What the party's own columns add is measured by ``related_party``.

    References: Mukherjee, Chen, Gangopadhyay (2008), section 3.4, which lets parties add their
    coefficients and does not consider the other party.
    """

    name: ClassVar[str] = "other_party"
    story: ClassVar[str] = (
        "Another party of the common release subtracts its own part and inverts what remains."
    )
    title: ClassVar[str] = "Another party subtracts its part"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"public.map", "public.part"})
    must_notice: ClassVar[Mapping[str, float]] = {"part of a sum": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        low, high = view.schema.lows, view.schema.highs
        maps: dict[str, RowMap] = {
            "clipped": make_inverses(view)["clipped"],
            "middle": fill_dropped_directions(view)["middle"],
        }
        held = collect_records(view)
        if len(held) > 1:
            centre, loadings = get_centre_and_loadings(view.public)
            noise = noise_variance(view.public) if has_noise(view.public) else None
            variance = np.zeros(loadings.shape[1]) if noise is None else noise
            predict = filter_with_sample(variance, centre, loadings, held)
            maps["predicted"] = lambda Y: np.clip(predict(Y), low, high)
            maps["rounded"] = lambda Y: round_to_values(predict(Y), held)
        return Estimate(MappedRows(view.Y, maps, view.known))


def collect_records(view: AttackerView) -> Floats:
    """Return the records that the party knows, and its sample of the population."""
    held = [X for X in (view.records, view.sample) if X is not None]
    return np.concatenate(held) if held else np.empty((0, len(view.schema.numeric)))


def round_to_values(X_hat: Floats, records: Floats) -> Floats:
    """Return estimates moved to the nearest value of the same column in the records."""
    found = np.empty_like(X_hat)
    for j, column in enumerate(records.T):
        values = np.unique(column)
        middles = (values[1:] + values[:-1]) / 2
        found[:, j] = values[np.searchsorted(middles, X_hat[:, j])]
    return found

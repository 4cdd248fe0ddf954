"""Match the independent components of a sample of the population with those of the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._fast_ica import fit_independent_components
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._rigid_registration import draw_rows, find_rigid_map
from ppdm_core.attacks._secret_map import (
    check_secret_map,
    find_origin,
    fit_rotation,
    has_original_units,
    polar,
    read_sample,
    sort_rows,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows, RowMap
from ppdm_core.model.policy import Effort

MAX_FITTED_ROWS = 10_000  # of the release that components are fitted on
ICA_STARTS: dict[Effort, int] = {"quick": 2, "standard": 4, "thorough": 16}
RANDOM_ROTATIONS: dict[Effort, int] = {"quick": 4, "standard": 24, "thorough": 96}
_MAX_QUANTILES = 200


@dataclass(frozen=True)
class KnownSampleIca(Attack):
    """An attacker with a sample of the same population finds independent components in both tables.

    Where columns are made of independent parts that are not normal, the parts can be found from
    either table, whatever the map. They are matched by their densities: for each pair and both
    signs the distance of the two one-dimensional distributions, then the cheapest assignment. This
    needs no distinct variances, and no orthogonal map. Candidates:
    ``matched`` mixes the release's components as the sample's are mixed;
    ``affine`` goes on from there, and from random starts: with all components at variance 1 any
    map is a rotation or a part of one, and the one under which the sample is likeliest is sought;
    ``orthogonal`` takes the nearest distance-preserving map to that;
    ``overlay`` seeks the likeliest rotation of the original columns from there.
    The last two are offered where the release keeps distances.

    With fewer released than original columns each released component takes its best match, and
    the components without a match are estimated by their mean. Components of the release are
    fitted on 10,000 random rows at most; effort is the number of starts of either search. Notes:
    ``matching_cost``, the mean distance between matched densities, in standard deviations;
    ``strength`` of the weakest component of the release, its negentropy: 0 for a normal one, which
    cannot be distinguished from others.

    References: the attack by independent components on random projections is discussed in Liu,
    Kargupta, Ryan, "Random projection-based multiplicative data perturbation for privacy
    preserving distributed data mining" (2006); Hyvarinen, "Fast and robust fixed-point algorithms
    for independent component analysis" (1999). Matching against a sample is our own.
    """

    name: ClassVar[str] = "known_sample_ica"
    story: ClassVar[str] = (
        "An attacker with a sample of the same population matches independent parts of both tables."
    )
    title: ClassVar[str] = "Has a sample, matches independent parts"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"sample"})
    must_notice: ClassVar[Mapping[str, float]] = {"rotation": 0.85}
    leak_variant: ClassVar[str] = "skewed columns and sample"

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_secret_map(self, view)
        check_needs(self, view)
        sample = read_sample(self, view)
        origin, count = find_origin(view, sample), ICA_STARTS[view.effort]
        theirs = fit_independent_components(sample, rng, starts=count)
        Y = sort_rows(view.Y)
        ours = fit_independent_components(draw_rows(Y, MAX_FITTED_ROWS, rng), rng, starts=count)
        zero, image = theirs.mean, ours.mean  # a record, and what the map makes of it
        if origin is not None:
            zero, image = origin, np.zeros(Y.shape[1])
        U, V = theirs.components(sample, zero), ours.components(Y, image)
        turn, cost = match_components(U, V)
        x0, y0 = theirs.mean, view.Y.mean(axis=0)
        back = ours.unmixing @ turn @ theirs.mixing  # (s, d)
        maps: dict[str, RowMap] = {"matched": lambda Y: x0 + (Y - y0) @ back}
        places = [
            polar(rng.standard_normal(turn.shape)) for _ in range(RANDOM_ROTATIONS[view.effort])
        ]
        affine = find_rigid_map([turn, *places], U, V, rng, has_origin=False)
        maps["affine"] = lambda Y: zero + affine.apply(ours.components(Y, image)) @ theirs.mixing
        if has_original_units(view.public):
            maps |= _estimate_rigid(back, view, sample, origin, rng)
        notes = {"matching_cost": cost, "strength": float(ours.negentropy.min())}
        return Estimate(MappedRows(view.Y, maps), notes=notes)


def match_components(U: Floats, V: Floats) -> tuple[Floats, float]:
    """Return a signed permutation T such that V T matches the columns of U, and its mean cost.

    The cost of a pair is the mean distance between equal quantiles about the means (a Wasserstein
    distance) plus that of the means. The latter counts up to one standard deviation only, because
    far from zero a small error of a direction moves a mean a lot. If V has fewer columns than U,
    the others of U stay without a match.
    """
    from scipy.optimize import linear_sum_assignment

    u0, v0 = U.mean(axis=0), V.mean(axis=0)
    levels = (np.arange(count := min(len(U), len(V), _MAX_QUANTILES)) + 0.5) / count
    A = np.quantile(U - u0, levels, axis=0).T  # (k, levels)
    B = np.quantile(V - v0, levels, axis=0).T
    same = np.abs(B[:, None] - A).mean(axis=2) + np.minimum(np.abs(v0[:, None] - u0), 1.0)
    turned = -B[:, None, ::-1]
    opposite = np.abs(turned - A).mean(axis=2) + np.minimum(np.abs(-v0[:, None] - u0), 1.0)
    costs = np.minimum(same, opposite)
    pairs = linear_sum_assignment(costs)
    T = np.zeros(costs.shape)
    T[pairs] = np.where(same <= opposite, 1.0, -1.0)[pairs]
    return T, float(costs[pairs].mean())


def _estimate_rigid(
    back: Floats,
    view: AttackerView,
    sample: Floats,
    origin: Floats | None,
    rng: np.random.Generator,
) -> dict[str, RowMap]:
    """Return the two estimates by a distance-preserving map."""
    Q = fit_rotation(view.Y, back)
    shift = np.zeros(sample.shape[1]) if origin is None else origin
    overlay = find_rigid_map(
        [Q], sample - shift, sort_rows(view.Y), rng, has_origin=origin is not None
    )
    x0, y0 = sample.mean(axis=0), view.Y.mean(axis=0)
    return {
        "orthogonal": lambda Y: x0 + (Y - y0) @ Q,
        "overlay": lambda Y: shift + overlay.apply(Y),
    }

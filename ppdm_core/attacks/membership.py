"""Decide whether a person is in the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._membership_features import (
    Features,
    MembershipTables,
    Odds,
    compute_features,
    make_kernel_odds,
    make_noise_odds,
)
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.attacks._row_posterior import find_verbatim_values, read_noisy_columns
from ppdm_core.attacks._shadow_releases import (
    Imitator,
    learn_shadow_score,
    make_noise_imitator,
    make_resampling_imitator,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, RecordSet
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import Response
from ppdm_core.numerics.distances import squared_distances
from ppdm_core.numerics.kernel_model import KernelSetting, is_resampled
from ppdm_core.numerics.linear_map import compute_components, has_map, has_noise, project
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS

_SHADOW_RELEASES = {"quick": 2, "standard": 4, "thorough": 16}
_MIN_REFERENCE_RECORDS = 30  # needed to imitate a release
_MAX_RECONSTRUCTIONS = 3  # the best ones are tried
_COMPARED_ROWS = 500  # of both tables, for the energy distance


@dataclass(frozen=True)
class Membership(Attack):
    """An attacker with a person's record and reference records asks whether the person is in it.

    Compared within the person's class, in the components where the map is public, otherwise in
    the reconstructions that resemble the reference records most (by energy distance of 500 rows):
    the best three, numbered.

    ``closest``: how near the closest row is; ``closest_ratio``: against the closest reference
    record; ``density_ratio``: the same with the fifth closest. Where the distribution of the noise
    or of the resampling is public also ``likelihood``: the log odds by that distribution (and by
    the probabilities of released categories), of the rows against their density under other
    persons, with at most 2,000 reference records of a class; and ``shadow``: releases of a third of
    the reference records are imitated (quick 2, standard 4, thorough 16 times, with 2,000 records
    at most), and a logistic regression learns there how to weigh the others.

    ``found_again``: in how many columns the person's value stands, to the last digits, of those
    columns in which most rows have a unique value.

    References: Carlini, Chien, Nasr, Song, Terzis, Tramer (2022), and Chen, Yu, Zhang, Fritz
    (2020), on membership in what a generator was fitted to.
    """

    name: ClassVar[str] = "membership"
    story: ClassVar[str] = (
        "An attacker with full records asks who is in the release, and knows persons who are not."
    )
    title: ClassVar[str] = "Compares a full record with the release"
    goal: ClassVar[Goal] = "member"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "reference", "reconstructions"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85, "slight noise": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        found = self._compare(view, rng)
        X_hat = read_noisy_columns(view)
        if X_hat is not None and view.targets is not None:
            found["found_again"] = (
                find_verbatim_values(view, view.targets.X, X_hat).sum(axis=1) * 1.0
            )
        return Estimate(found)

    def _compare(self, view: AttackerView, rng: np.random.Generator) -> Features:
        """Return all scores but ``found_again``, in the best available space."""
        if not has_map(view.public):
            return _compare_reconstructions(view, _list_reconstructions(self.name, view))
        tables = _collect_tables(
            view, lambda records: project(view.public, records.X), compute_components(view)
        )
        odds: Odds | None = None
        imitate: Imitator | None = None
        if is_resampled(view.public):
            around = KernelSetting.from_public(view.public, view.schema, view.Y)
            odds, imitate = make_kernel_odds(around), make_resampling_imitator(around)
        elif has_noise(view.public) and view.public.law in SAMPLED_DISTRIBUTIONS:
            noise = read_noise(view.public)
            tables = tables.rescale(noise.scales)
            odds, imitate = (
                make_noise_odds(noise.distribution, _released_responses(view)),
                make_noise_imitator(noise.distribution),
            )
        found = compute_features(tables, odds)
        if imitate is not None and len(tables.R) >= _MIN_REFERENCE_RECORDS:
            times = _SHADOW_RELEASES[view.effort]
            found["shadow"] = learn_shadow_score(
                tables, found, odds, imitate, _released_responses(view), times, rng
            )
        del found["isolation"]
        return found


def _collect_tables(
    view: AttackerView, place: Callable[[RecordSet], Floats], Z: Floats
) -> MembershipTables:
    """Return release, targets and reference in the space of ``Z``."""
    targets, reference = view.targets, view.reference
    assert targets is not None
    assert reference is not None
    R = place(reference)
    unit = np.maximum(R.std(axis=0), 1e-9 * max(1.0, float(np.abs(R).max(initial=0.0))))
    names = [column.name for column in view.schema.categorical]
    columns = [names.index(response.column.name) for response in _released_responses(view)]
    given = np.zeros((len(Z), 0), dtype=np.int32) if view.C is None else view.C
    return MembershipTables(
        Z=Z,
        label=view.label,
        T=place(targets),
        target_label=targets.label,
        R=R,
        reference_label=reference.label,
        unit=unit,
        responses=given[:, : len(columns)],
        target_codes=targets.C[:, columns],
        reference_codes=reference.C[:, columns],
    )


def _released_responses(view: AttackerView) -> tuple[Response, ...]:
    """Return the categorical columns that were released, if there are any."""
    return () if view.C is None else view.public.responses


def _list_reconstructions(name: str, view: AttackerView) -> list[Floats]:
    """Return the release in the original columns; raise NotApplicable if there is none."""
    found = list(view.reconstructions.values())
    if not found and view.public.space == "original":
        found = [view.Y]
    if not found or found[0].shape[1] != len(view.schema.numeric):
        raise NotApplicable(
            f"The attack {name} needs a public map, the original columns or a reconstruction."
        )
    return found


def _compare_reconstructions(view: AttackerView, reconstructions: list[Floats]) -> Features:
    """Return scores for the reconstructions that resemble the reference most, best first."""
    assert view.reference is not None
    R = view.reference.X
    gaps = [_energy_distance(X_hat, R) for X_hat in reconstructions]
    best = np.argsort(gaps, kind="stable")[:_MAX_RECONSTRUCTIONS]
    found: Features = {}
    for rank, place in enumerate(best.tolist(), start=1):
        tables = _collect_tables(view, lambda records: records.X, reconstructions[place])
        for name, score in compute_features(tables, None).items():
            if name != "isolation":
                found[f"{name}:{rank}"] = score
    return found


def _energy_distance(A: Floats, B: Floats) -> float:
    """Return the energy distance of two samples; rows are taken evenly over their values."""
    A, B = (X[np.lexsort(X.T)[:: max(1, len(X) // _COMPARED_ROWS)]] for X in (A, B))

    def mean(P: Floats, Q: Floats) -> float:
        parts = [np.sqrt(D).sum() for _, D in squared_distances(P, Q)]
        return float(np.sum(parts)) / (len(P) * len(Q))

    return 2.0 * mean(A, B) - mean(A, A) - mean(B, B)

"""Find known records in the release by the distances between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._approximate_matching import find_approximate_rows, is_believable
from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._exact_matching import find_exact_rows
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.known_pairs import estimate_from_pairs, find_rotation
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, KnownRows, MappedRows

_LENGTH_TOLERANCE = 1e-6
_MAX_DISTANCES = {
    "quick": 2e8,
    "standard": 1e9,
    "thorough": 2e10,
}  # distances between rows, at most


@dataclass(frozen=True)
class KnownRecords(Attack):
    """An insider knows some persons' records and finds their rows by their distances.

    If distances are exact, one row that sees others at the distances at which a known record sees
    the other records determines all of them. Lengths tell where to look first when the map
    leaves zero, or the published centre, in its place. If distances are kept roughly, sets of rows
    at fitting distances and the main axes of both tables are starts of a matching that alternates
    with fitting the map; it is believed if records that belong to no person fit much worse.
    Then follows what ``known_pairs`` does with such pairs: ``orthogonal`` (its ``optimal``, where
    the pairs fit a rotation, else as ``procrustes``), ``procrustes`` and ``regression``.
    Without a match all estimates are the means of the known records, and the note ``matched`` is 0.

    Bounded by ``view.effort``: exact matching looks at up to 2e8, 1e9 or 2e10 distances between
    rows (one of k rows is found after about n^2 / k), a fifth of that if the release does not say
    that it preserves distances; approximate matching has sets of rows as starts
    in releases of up to 600, 1,500 or 6,000 rows, and main axes in all. Approximate matching needs
    some more records than released columns, as 70 % of them must overdetermine the map.

    References: Liu, Giannella, Kargupta (2006), section 4, where the pairs are given;
    Besl and McKay (1992) for matching and fitting in turns.
    """

    name: ClassVar[str] = "known_records"
    story: ClassVar[str] = "An insider knows {k} records, but not which released rows are theirs."
    title: ClassVar[str] = "Knows some records, not their rows"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"records"})
    must_notice: ClassVar[Mapping[str, float]] = {"identity": 0.85, "rotation": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        records = view.records
        assert records is not None
        rows, notes = find_rows(view, records, rng)
        is_found = rows >= 0
        notes["matched"] = float(is_found.mean())
        if not is_found.any():
            mean = records.mean(axis=0)
            names = ("orthogonal", "procrustes", "regression")
            nothing = {name: np.zeros(len(view.Y)) for name in names}
            same = {name: lambda Y: np.tile(mean, (len(Y), 1)) for name in names}
            return Estimate(MappedRows(view.Y, same), nothing, notes=notes)
        known = KnownRows(records[is_found], rows[is_found])
        pairs = estimate_from_pairs(view, known, rng)
        assert isinstance(pairs.candidates, MappedRows)
        best = "procrustes" if find_rotation(view, known) is None else "optimal"
        taken = {"orthogonal": best, "procrustes": "procrustes", "regression": "regression"}
        maps = {name: pairs.candidates.maps[each] for name, each in taken.items()}
        claims = {name: pairs.claims[each] for name, each in taken.items()}
        return Estimate(MappedRows(view.Y, maps, known), claims, notes=notes)


def find_rows(
    view: AttackerView, records: Floats, rng: np.random.Generator
) -> tuple[Ints, dict[str, float]]:
    """Return the row of each record, -1 for none, and how well the distances agree."""
    grid = 0.0 if view.public.grid is None else float(np.max(view.public.grid))
    near = length_gap(view, records)
    pairs = _MAX_DISTANCES[view.effort] * (1.0 if view.public.preserves_distances else 0.2)
    rows = find_exact_rows(records, view.Y, near, grid, pairs, rng)
    if rows is not None:
        return rows, {"residual": 0.0}
    alone = _find_by_length(records, view)
    if alone is not None:
        return alone, {"residual": 0.0}
    sample = np.zeros((0, records.shape[1])) if view.sample is None else view.sample
    rows, ratio = find_approximate_rows(records, sample, view.Y, view.public, view.effort, rng)
    notes = {"residual": min(ratio, 1.0)}
    return (rows if is_believable(ratio) else np.full(len(records), -1)), notes


def length_gap(view: AttackerView, records: Floats) -> Floats:
    """Return the gap between each row's length and that of the nearest record, (m,).

    Lengths are taken about a fixed point: zero, or the published centre.
    """
    gap = np.full(len(view.Y), np.inf)
    length = np.linalg.norm(view.Y, axis=1)
    for x0 in (np.zeros(records.shape[1]), view.public.centre):
        if x0 is not None:
            own = np.sort(np.linalg.norm(records - x0, axis=1))
            place = np.clip(np.searchsorted((own[1:] + own[:-1]) / 2.0, length), 0, len(own) - 1)
            gap = np.minimum(gap, np.abs(length - own[place]))
    return gap


def _find_by_length(records: Floats, view: AttackerView) -> Ints | None:
    """Return the rows of one or two records by their lengths, which a rotation about zero keeps.

    So few records have hardly a pattern of distances. None if a length fits no row or several.
    """
    if len(records) > 2 or not view.public.preserves_distances:
        return None
    origins = [np.zeros(records.shape[1]), view.public.centre]
    length = np.linalg.norm(view.Y, axis=1)
    for x0 in origins:
        if x0 is None:
            continue
        own = np.linalg.norm(records - x0, axis=1)
        fits = np.abs(length - own[:, None]) <= _LENGTH_TOLERANCE * own[:, None]  # (k, m)
        if np.all(fits.sum(axis=1) == 1):
            return np.asarray(fits.argmax(axis=1))
    return None

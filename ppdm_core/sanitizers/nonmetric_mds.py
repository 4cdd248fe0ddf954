"""Non-metric multidimensional scaling: preserves only the order of the distances."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats, Keys
from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import (
    check_choice,
    check_count_or_share,
    check_share,
    is_count,
    parameter_error,
)
from ppdm_core.model.release import Guarantee, PublicParameters, Released
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.amplification import make_empirical_guarantee
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from ppdm_core.numerics.rounding import round_outward
from ppdm_core.numerics.scaling import check_finite
from ppdm_core.sanitizers._nonmetric import (
    compute_classical_start,
    draw_random_start,
    fit_monotone_map,
    lay_out,
    least_squares_scale,
    median_gap,
    rank_dissimilarities,
)
from ppdm_core.sanitizers._placement import Placement
from ppdm_core.sanitizers._sanitizer import Direction, Fitted, Sanitizer
from ppdm_core.sanitizers._sweep import Axes, SweepScope, list_counts

STEP = 2.0**-20  # far above rounding errors of a placement, far below relevant distances
MAX_LANDMARKS = 10_000
MIN_GAP_SHARE = 0.25  # of the median gap of classical scaling; with less, records coincide


@dataclass(frozen=True, kw_only=True)
class NonmetricMds(Sanitizer):
    """Replaces records by points in fewer dimensions whose distances keep their order.

    A sample of records, the landmarks, gets coordinates that minimise Kruskal's stress; every other
    record is placed among them by its distances to them. Records with equal values get equal
    points. Distances are scaled to the original ones, directions are secret.

    The fit is made once, stored in private with the landmarks' records, and reused: an unchanged
    record keeps its point, a new one is placed among the same landmarks. On one kind of machine
    all bytes repeat. On another one the same fit gives the same points to a step of 2^-20; a new
    fit may reach other coordinates, with nearly the same stress.

    **Parameters**:
    ``dimensions``: number of released dimensions: a count below that of the columns (the paper: one
    less) or a share of them.
    ``landmarks``: number of distinct records that are laid out together, or all records if there
    are fewer. Time and memory grow with its square.
    ``ties``: "secondary" (pairs with equal distances stay equal; above 20,000 different distances,
    steps merge close ones while that raises the stress by at most 5 %) or "primary" (pairs with
    equal distances may differ; slower).
    ``start``: "classical" (principal components) or "random", which needs many more steps.
    ``tolerance``: the fit ends when three steps lower the stress by less than this share.
    ``iterations``: the largest number of steps.

    **Public**: stress, number of landmarks, mean and variance of the change of squared distances.
    **Broken by**: ``known_pairs`` and ``trilateration``: nearly all distances are nearly preserved,
    so that a few more known records than dimensions give the map; with one dimension less than
    columns it is close to a rotation. Unless dimensions are few, ``known_records`` identifies the
    rows of known records, and ``known_sample_pca`` needs only a sample with persons who are in the
    release. Then ``record_linkage`` identifies rows, ``membership`` decides who is in the release,
    and ``attribute_inference`` reads their values.
    **Guarantee**: none. The order of all distances determines the points almost up to scale and
    direction.
    **References**: Alotaibi and others, non-metric multidimensional scaling for privacy-preserving
    data clustering (2012); Kruskal, "Nonmetric multidimensional scaling: a numerical method"
    (1964), stress-1 and both treatments of ties.
    """

    name: ClassVar[str] = "nonmetric_mds"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True
    min_features: ClassVar[int] = 2  # one dimension is always lost
    example: ClassVar[Mapping[str, Any]] = {"dimensions": 0.5}
    more_private: ClassVar[Mapping[str, Direction]] = {"dimensions": "lower"}

    dimensions: int | float = 0.5
    landmarks: int = 1000
    ties: str = "secondary"
    start: str = "classical"
    tolerance: float = 1e-4
    iterations: int = 300

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        counts = list_counts(scope.numeric - 1)
        return {"dimensions": [{"dimensions": count} for count in counts]}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "ties", ("primary", "secondary"))
        check_choice(self, "start", ("classical", "random"))
        check_share(self, "tolerance", self.tolerance)
        for name, low, high in (("landmarks", 3, MAX_LANDMARKS), ("iterations", 1, 100_000)):
            if not is_count(value := getattr(self, name)) or not low <= value <= high:
                raise parameter_error(self, name, f"an int in [{low}, {high:,}]", value)
        check_count_or_share(self, "dimensions", self.dimensions)

    @property
    def learns(self) -> bool:
        return True

    def check_features(self, d: int) -> None:
        super().check_features(d)
        if isinstance(self.dimensions, int) and self.dimensions >= d:
            raise parameter_error(self, "dimensions", f"an int in [1, {d - 1}]", self.dimensions)

    def fit_parameters(self) -> dict[str, Any]:
        names = ("dimensions", "landmarks", "ties", "start", "tolerance", "iterations")
        return {**super().fit_parameters(), **{name: getattr(self, name) for name in names}}

    def fit(self, rows: Rows) -> Fitted:
        from scipy.spatial.distance import pdist

        self.check_features(len(rows.schema.numeric))
        p = self._count_dimensions(len(rows.schema.numeric))
        keys, X = choose_landmarks(rows, self.landmarks)
        if len(X) < p + 2:
            raise BadInput(
                f"A layout in {p} dimensions needs at least {p + 2} different records to learn "
                f"from; there are {len(X)}.",
                remedy="Lower 'dimensions', or raise 'landmarks' if there are more records.",
            )
        delta = pdist(X)
        order = rank_dissimilarities(delta, self.ties)
        classical = compute_classical_start(X, p)
        if self.start == "classical":
            Y = classical
        else:
            seed = int.from_bytes(hashlib.sha256(keys.tobytes()).digest(), "little")
            Y = draw_random_start(delta, len(X), p, np.random.default_rng(seed))
        Y, stress = lay_out(Y, delta, order, self.tolerance, self.iterations)
        scale = least_squares_scale(delta, pdist(Y))
        Y = np.rint((Y - Y.mean(axis=0)) * (scale / STEP)) * STEP + 0.0
        d = pdist(Y)
        check_spread(d, pdist(classical), delta)
        farthest = float(np.linalg.norm(rows.schema.widths))
        change = d**2 - delta**2
        return {
            "columns": list(rows.schema.names),
            "landmarks": X.tolist(),
            "coordinates": Y.tolist(),
            "knots": fit_monotone_map(delta, order.fit(d), farthest).tolist(),
            "stress": round_outward(stress),
            "distance_distortion_mean": round_outward(float(change.mean())),
            "distance_distortion_variance": round_outward(float(change.var())),
        }

    def _count_dimensions(self, d: int) -> int:
        if isinstance(self.dimensions, int):
            return self.dimensions
        return max(1, math.floor(self.dimensions * d))

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        return [fitted[name] for name in ("landmarks", "coordinates", "knots")]

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        X, Y, knots = (np.array(numbers) for numbers in self.mechanism(rows.schema, fitted))
        p = Y.shape[1]
        M = random_orthogonal(
            p, noise.generator("directions", self.fingerprint(rows.schema, fitted))
        )
        placement = Placement(X, Y @ M.T, knots)

        def step(block: Block) -> Block:
            check_finite(block, rows.schema.numeric)
            return replace(block, X=np.rint(placement.place(block.X) / STEP) * STEP + 0.0)

        # A placed point is at most the mean of its wanted distances away from the landmarks' mean.
        reach = round_outward(
            max(float(knots[-1, 1]), float(np.linalg.norm(Y, axis=1).max())) * 1.01
        )
        columns = tuple(f"dimension_{i + 1}" for i in range(p))
        numeric = tuple(Numeric(name, -reach, reach) for name in columns)
        moments = ("stress", "distance_distortion_mean", "distance_distortion_variance")
        return Released(
            rows=rows.map(step, replace(rows.schema, numeric=numeric)),
            public=PublicParameters(
                method=self.name,
                space="embedded",
                columns=columns,
                grid=np.full(p, STEP),
                facts={**{name: fitted[name] for name in moments}, "landmarks": float(len(X))},
            ),
            atom=STEP,
        )

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        return make_empirical_guarantee(
            "The order of all distances has no worst-case bound: it nearly determines them.",
            "The layout is learned from the released records; what it reveals is not covered.",
            *self.list_weaker_promises(schema),
        )


def choose_landmarks(rows: Rows, count: int) -> tuple[Keys, Floats]:
    """Return distinct records with the smallest keys, in key order; keys are pseudo-random."""

    def step(block: Block) -> tuple[Keys, Floats]:
        check_finite(block, rows.schema.numeric)
        return select_smallest_keys(block.key, block.X, count)

    def merge(a: tuple[Keys, Floats], b: tuple[Keys, Floats]) -> tuple[Keys, Floats]:
        return select_smallest_keys(
            np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]), count
        )

    return rows.reduce(step, merge)


def select_smallest_keys(key: Keys, X: Floats, count: int) -> tuple[Keys, Floats]:
    """Return distinct records with the smallest keys, in key order."""
    place = np.lexsort(key.T[::-1])
    _, first = np.unique(X[place], axis=0, return_index=True)
    kept = place[np.sort(first)[:count]]
    return key[kept], X[kept]


def check_spread(d: Floats, classical: Floats, delta: Floats) -> None:
    """Raise BadInput if the layout preserves the order by moving most records together.

    This happens if groups, or a few records, are far from all others: one point for each group has
    no stress. Long distances then stay correct, so only the short ones show it.
    """
    usual = median_gap(classical) * least_squares_scale(delta, classical)
    if median_gap(d) < MIN_GAP_SHARE * usual:
        raise BadInput(
            "The order of the distances is preserved best by a layout in which most records "
            "coincide, because some are far from all others.",
            remedy='Use scale = "minmax", exclude columns that hardly vary or that set groups '
            "apart, or lower 'iterations'.",
        )

"""Learn the map from known records and their released rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._breach_claims import learn_claims
from ppdm_core.attacks._map_fitting import procrustes, ridge
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._secret_map import polar
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import (
    AttackerView,
    Estimate,
    Goal,
    KnownRows,
    MappedRows,
    RowMap,
)
from ppdm_core.numerics.decompositions import decompose_singular
from ppdm_core.numerics.random_orthogonal import random_orthogonal

Estimator = Literal["uniform", "projection", "optimal"]
_MAX_RELATIVE_ERROR = 1e-6  # far below any noise, far above rounding
_RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class KnownPairs(Attack):
    """An insider knows some persons' records and recognises their rows in the release.

    If the pairs fit an orthogonal map exactly (about the origin, the published centre, or after
    subtracting one known record), the map is determined on their span, and on the rest
    ``uniform`` draws one compatible map at random (the paper's attacker);
    ``projection`` estimates the part in the span only, error = distance to it, with certainty;
    ``optimal`` shrinks the random part for the largest breach probability.

    ``procrustes`` and ``regression`` learn the map from the pairs whatever the release is.
    All but ``uniform`` are clipped to the declared bounds. Claims hold the attacker's own breach
    probability for each row, exact but for the clipping, or learned from left-out pairs: by them
    the attacker picks the most exposed records.

    References: Liu, Giannella, Kargupta (2006), section 4; the probability is exact for every
    dimension, unlike their eq. (2), and uses the rank of the known records, not their number.
    """

    name: ClassVar[str] = "known_pairs"
    story: ClassVar[str] = "An insider knows {k} records and which released rows are theirs."
    title: ClassVar[str] = "Knows some records and their rows"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"known"})
    must_notice: ClassVar[Mapping[str, float]] = {
        "identity": 0.85,
        "slight noise": 0.85,
        "rotation": 0.85,
    }

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.known is not None
        return estimate_from_pairs(view, view.known, rng)


def estimate_from_pairs(view: AttackerView, known: KnownRows, rng: np.random.Generator) -> Estimate:
    """Estimate all other rows from known pairs, whatever the origin of the pairs."""
    maps: dict[str, RowMap] = {}
    claims: dict[str, Floats] = {}
    low, high = view.schema.lows, view.schema.highs
    frame = find_rotation(view, known)
    if frame is not None:
        maps, claims = _estimate_by_rotation(frame, view, rng)
        for name in ("projection", "optimal"):  # "uniform" is the paper's, unchanged
            maps[name] = partial(_clip_estimates, maps[name], low, high)
    Yk = view.Y[known.rows]
    for name, learn in (("procrustes", procrustes), ("regression", ridge)):
        maps[name] = partial(_clip_estimates, partial(learn, Yk, known.X), low, high)
        X_hat = maps[name](view.Y)
        claims[name] = learn_claims(learn, Yk, known.X, view.Y, X_hat, view.epsilon)
    for claim in claims.values():
        claim[known.rows] = 1.0
    return Estimate(MappedRows(view.Y, maps, known), claims)


def _clip_estimates(estimate: RowMap, low: Floats, high: Floats, Y: Floats) -> Floats:
    """Return estimates of rows within the declared bounds."""
    return np.clip(estimate(Y), low, high)


def breach_probability(
    distance: ArrayLike, radius: ArrayLike, freedom: ArrayLike, estimator: Estimator = "uniform"
) -> Floats:
    """Return the probability that the estimate falls within ``radius`` of the record.

    ``distance`` of the record from the span of the known ones; ``freedom`` = d - rank.
    """
    from scipy.special import betainc

    distance, radius, freedom = np.broadcast_arrays(
        np.asarray(distance, dtype=np.float64),
        np.asarray(radius, dtype=np.float64),
        np.asarray(freedom, dtype=np.int64),
    )
    reach = 2.0 * distance if estimator == "uniform" else distance
    certain = (freedom == 0) | (radius >= reach)  # a distance of 0 is always within reach
    if estimator == "projection":
        return np.asarray(certain, dtype=np.float64)
    ratio = np.divide(radius, reach, out=np.zeros(reach.shape), where=~certain)
    half = (np.maximum(freedom, 2) - 1) / 2.0
    if estimator == "uniform":
        partial = betainc(half, half, ratio**2)
    else:
        partial = 0.5 * betainc(half, 0.5, ratio**2)
    partial = np.where(freedom == 1, 0.5, partial)  # only a sign is unknown
    return np.asarray(np.where(certain, 1.0, partial))


@dataclass(frozen=True, eq=False)
class PartialRotation:
    """x - x0 = (y - y0) B A^T on the span of the known records, an unknown rotation off it."""

    x0: Floats  # (d,)
    y0: Floats  # (d,)
    A: Floats  # (d, r) basis of the span of the known records
    B: Floats  # (d, r) its released image
    fixed_origin: bool  # then |x| = |y| is known

    @property
    def freedom(self) -> int:
        """Dimension of the space orthogonal to the span."""
        d, r = self.A.shape
        return int(d - r)


def find_rotation(view: AttackerView, known: KnownRows) -> PartialRotation | None:
    """Return the orthogonal map that the known pairs fit; None if they fit none."""
    d = known.X.shape[1]
    if view.Y.shape[1] > d:
        return None
    Yk = _pad_columns(view.Y[known.rows], d)
    zero = np.zeros(d)
    origins = [(zero, zero)]
    if view.public.centre is not None:
        origins.append((view.public.centre, zero))
    if len(known.rows) > 1:  # one pair minus itself would fit anything
        origins.append((known.X[0], Yk[0]))
    for x0, y0 in origins:
        bases = _match_bases(known.X - x0, Yk - y0)
        if bases is not None:
            return PartialRotation(x0, y0, *bases, fixed_origin=not x0.any() and not y0.any())
    return None


def _match_bases(Xk: Floats, Yk: Floats) -> tuple[Floats, Floats] | None:
    """Return A, B with Xk = (U S) A^T and Yk = (U S) B^T; None if no orthogonal map does that."""
    U, S, Vt = decompose_singular(Xk)
    if S.max(initial=0.0) == 0.0:
        return None
    rank = int(np.sum(S / S[0] > _RANK_TOLERANCE))
    B = polar(Yk.T @ U[:, :rank] / S[:rank])
    error = np.abs(Yk - (U[:, :rank] * S[:rank]) @ B.T).max() / np.abs(Xk).max()
    if error > _MAX_RELATIVE_ERROR:
        return None
    # Directions weaker than the disagreement say nothing about the map.
    rank = int(np.sum(S / S[0] > max(_RANK_TOLERANCE, 100.0 * error)))
    return Vt[:rank].T, polar(Yk.T @ U[:, :rank] / S[:rank])


def _estimate_by_rotation(
    frame: PartialRotation, view: AttackerView, rng: np.random.Generator
) -> tuple[dict[str, RowMap], dict[str, Floats]]:
    """Return the three estimates that an exact rotation on the span allows, and their claims."""
    A2, B2 = _complement(frame.A), _complement(frame.B)  # (d, D)
    turn, D = random_orthogonal(frame.freedom, rng), frame.freedom

    def split(Y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return rows from the origin, the estimate on the span, and the part off it."""
        V = _pad_columns(Y, len(frame.x0)) - frame.y0  # (n, d)
        return V, frame.x0 + (V @ frame.B) @ frame.A.T, V @ B2

    def radius(V: Floats, X_hat: Floats) -> Floats:
        return np.asarray(view.epsilon * np.linalg.norm(V if frame.fixed_origin else X_hat, axis=1))

    def estimate_uniform(Y: Floats) -> Floats:
        _, span, offset = split(Y)
        return np.asarray(span + offset @ turn @ A2.T)

    def estimate_optimal(Y: Floats) -> Floats:
        V, span, offset = split(Y)
        distance = np.linalg.norm(offset, axis=1)
        left = np.sqrt(np.maximum(distance**2 - radius(V, span) ** 2, 0.0))
        shrink = np.divide(left, distance, out=np.zeros_like(left), where=distance > 0)
        return np.asarray(span + shrink[:, None] * (offset @ turn @ A2.T))

    maps: dict[str, RowMap] = {
        "uniform": estimate_uniform,
        "projection": lambda Y: split(Y)[1],
        "optimal": estimate_optimal,
    }
    V, span, offset = split(view.Y)
    distance = np.linalg.norm(offset, axis=1)
    claims = {
        "uniform": breach_probability(distance, radius(V, estimate_uniform(view.Y)), D, "uniform"),
        "projection": breach_probability(distance, radius(V, span), D, "projection"),
        "optimal": breach_probability(distance, radius(V, span), D, "optimal"),
    }
    return maps, claims


def _complement(A: Floats) -> Floats:
    """Return an orthonormal basis of the space orthogonal to the columns of A."""
    return np.linalg.qr(A, mode="complete").Q[:, A.shape[1] :]


def _pad_columns(Y: Floats, d: int) -> Floats:
    """Append columns of zeros up to ``d`` columns."""
    return np.pad(Y, ((0, 0), (0, d - Y.shape[1])))

"""Match the principal axes of a sample of the population with those of the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._axis_signs import (
    MAX_AXES,
    SignEvidence,
    choose_signs_jointly,
    compute_coordinate_evidence,
    compute_moment_evidence,
    take_signs,
)
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._rigid_registration import draw_rows, find_rigid_map
from ppdm_core.attacks._secret_map import (
    check_secret_map,
    find_origin,
    has_original_units,
    read_sample,
    sort_rows,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows, RowMap
from ppdm_core.model.policy import Effort
from ppdm_core.numerics.decompositions import decompose_symmetric

CLEAR_STANDARD_ERRORS = 3.0
_RANK_TOLERANCE = 1e-10
_MAX_COMPARED_ROWS = (
    250,
    5_000,
)  # records of the sample and rows of the release that a joint choice compares
_MAX_JOINT_ROWS = 1_000
_MIN_PAIRS = 20_000  # below, trying all signs is not worth its time


@dataclass(frozen=True)
class SearchEffort:
    """Limits of the searches for one effort."""

    rigid_starts: int  # of the overlay
    joint: int  # signs that the hybrid tries jointly
    work: float  # sign choices times pairs of the exhaustive search; 0 skips it


SEARCH_EFFORTS: dict[Effort, SearchEffort] = {
    "quick": SearchEffort(rigid_starts=8, joint=6, work=0.0),
    "standard": SearchEffort(rigid_starts=24, joint=8, work=1e9),
    "thorough": SearchEffort(rigid_starts=128, joint=12, work=5e10),
}


@dataclass(frozen=True)
class KnownSamplePca(Attack):
    """An attacker with a sample of the same population turns the release until both look alike.

    The principal axes of sample and release are matched by their variances; the sign of each axis
    remains open. Candidates, one for each way to choose the signs:
    ``exhaustive`` tries all of them and takes the least energy distance (the paper, without its
    permutation test; up to 20 axes, not in a quick audit, and only where the effort pays for
    20,000 pairs of records or more);
    ``coordinate`` looks at one axis at a time;
    ``moments`` compares means, where the map fixes the origin, and odd central moments;
    ``hybrid`` takes the clear axes from ``coordinate`` and tries all signs of the others;
    ``cautious`` shortens each axis by how unsure its sign is.
    All put the mean of the release on the mean of the sample, which a wrong axis cannot move.

    ``overlay`` goes on from there to the rotation under which the sample is likeliest, the release
    taken as a density. It corrects wrong signs, swapped and inexact axes, and is exact if the
    sample's records are in the release. It is far stronger than the axes.

    Joint choices and the overlay work on random parts of both tables. Effort changes the number of
    starts and of signs tried jointly. Fewer released than original columns: the release is taken
    for the leading axes. Notes: ``sign_confidence``, the share of the variance on
    axes whose sign is clear (0 for a symmetric distribution: there is nothing to choose by);
    ``eigen_gap``, the smallest gap between neighbouring variances over the larger (0: the axes
    themselves are arbitrary); ``agreement``, the share of the variance on whose signs all agree.

    References: Liu, Giannella, Kargupta (2006), section 4, algorithm 4.2.1; Szekely and Rizzo
    (2004), energy statistic. The overlay is our own use of rigid point set registration (Myronenko
    and Song, "Point set registration: coherent point drift", 2010).
    """

    name: ClassVar[str] = "known_sample_pca"
    story: ClassVar[str] = (
        "An attacker with a sample of the same population matches its principal axes to the "
        "release's."
    )
    title: ClassVar[str] = "Has a sample, matches its axes"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"sample"})
    must_notice: ClassVar[Mapping[str, float]] = {"rotation": 0.85}
    leak_variant: ClassVar[str] = "groups and sample"

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_secret_map(self, view)
        check_needs(self, view)
        sample = read_sample(self, view)
        search = SEARCH_EFFORTS[view.effort]
        axes = match_axes(view, sample)
        evidence = compute_axis_evidence(axes)
        signs = {
            "coordinate": evidence.signs,
            "moments": take_signs(compute_moment_evidence(axes.A, axes.B, mean_variance(axes))),
            "hybrid": choose_hybrid_signs(axes, evidence, search.joint, rng),
        }
        rows = count_affordable_rows(
            min(axes.Z.shape[0], view.Y.shape[1]), *axes.sizes, search.work
        )
        if rows > 0:
            signs["exhaustive"] = choose_exhaustive_signs(axes, rows, rng)
        weights = {**signs, "cautious": evidence.signs * sign_confidence(evidence)}
        maps: dict[str, RowMap] = {
            name: partial(axes.map_back, weights=each) for name, each in weights.items()
        }
        shift = np.zeros(sample.shape[1]) if axes.origin is None else axes.origin
        overlay = find_rigid_map(
            iterate_starts(axes, signs, sample, search.rigid_starts, rng),
            sample - shift,
            axes.unit * sort_rows(view.Y),
            rng,
            has_origin=axes.origin is not None,
        )
        unit = axes.unit
        maps["overlay"] = lambda Y: shift + overlay.apply(unit * Y)
        variances = axes.variances
        notes = {
            "sign_confidence": variance_share(
                np.abs(evidence.z) > CLEAR_STANDARD_ERRORS, variances
            ),
            "eigen_gap": float(np.min(1 - variances[1:] / variances[:-1], initial=1.0)),
            "agreement": variance_share(np.ptp(list(signs.values()), axis=0) == 0, variances),
            "overlay_likelihood": overlay.likelihood,
        }
        return Estimate(MappedRows(view.Y, maps), notes=notes)

    def explain(self, view: AttackerView, X: Floats) -> dict[str, float]:
        """Return the relative error that remains with the best signs: that of the axes alone."""
        X_hat, length = estimate_with_best_signs(view, X), np.linalg.norm(X, axis=1)
        error = np.linalg.norm(X - X_hat, axis=1)[length > 0] / length[length > 0]
        return {"relative_error_with_best_signs": float(np.mean(error))} if len(error) else {}


@dataclass(frozen=True, eq=False)
class MatchedAxes:
    """The k principal axes of sample and release, matched by their variances."""

    Z: Floats  # (d, k)
    W: Floats  # (s, k)
    A: Floats  # (p, k) the sample along its axes, from the origin, or else from its mean
    B: Floats  # (n, k) the release along its own, in the sample's units
    means: tuple[Floats, Floats]  # (d,) of the sample, (s,) of the release
    unit: float  # of the release
    origin: Floats | None  # (d,) the record that becomes zero, where that is known

    @property
    def variances(self) -> Floats:
        """(k,) variances of the release along its axes, in the sample's units."""
        return np.asarray(self.B.var(axis=0))

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of records of the sample and of rows of the release."""
        return len(self.A), len(self.B)

    def map_back(self, Y: Floats, weights: Floats) -> Floats:
        """Return estimates of the records, with each axis multiplied by its weight."""
        x0, y0 = self.means
        return np.asarray(x0 + self.unit * (Y - y0) @ ((self.W * weights) @ self.Z.T))


def match_axes(view: AttackerView, sample: Floats) -> MatchedAxes:
    """Return the principal axes of sample and release, in the order of their variances."""
    Y, origin = sort_rows(view.Y), find_origin(view, sample)
    of_sample, Z = find_principal_axes(sample)
    of_release, W = find_principal_axes(Y)
    k = min(
        np.sum(of_sample > _RANK_TOLERANCE * of_sample[0]),
        np.sum(of_release > _RANK_TOLERANCE * of_release[0]),
    )
    Z, W = Z[:, :k], W[:, :k]
    unit = 1.0
    if not has_original_units(view.public):
        unit = float(np.sqrt(of_sample[:k].sum() / of_release[:k].sum()))
    means = sample.mean(axis=0), Y.mean(axis=0)
    x0, y0 = means if origin is None else (origin, np.zeros(Y.shape[1]))
    return MatchedAxes(Z, W, (sample - x0) @ Z, unit * (Y - y0) @ W, means, unit, origin)


def find_principal_axes(X: Floats) -> tuple[Floats, Floats]:
    """Return variances, largest first, and the axes as columns."""
    centred = X - X.mean(axis=0)
    values, vectors = decompose_symmetric(centred.T @ centred / (len(X) - 1))
    return values[::-1], vectors[:, ::-1]


def mean_variance(axes: MatchedAxes) -> Floats | None:
    """Return the variance of the sample's mean along its axes; None where the origin is not known.

    An axis is off by a random angle towards each other one, the larger the closer their variances
    are, and a mean far from the origin turns the angle into a distance.
    """
    if axes.origin is None:
        return None
    v, mean = axes.variances, axes.B.mean(axis=0)
    gaps = np.square(v[:, None] - v)
    angles = np.divide(np.outer(v, v), gaps, out=np.full(gaps.shape, np.inf), where=gaps > 0)
    np.fill_diagonal(angles, 0.0)
    moved = np.multiply(angles, mean**2, out=np.zeros_like(angles), where=mean != 0)
    return np.asarray((v + moved.sum(axis=1)) / len(axes.A))


def compute_axis_evidence(axes: MatchedAxes) -> SignEvidence:
    """Compare distributions about the origin or their means, whichever says more of an axis."""
    central = compute_coordinate_evidence(*central_scores(axes))
    variance = mean_variance(axes)
    if variance is None:
        return central
    plain = compute_coordinate_evidence(axes.A, axes.B)
    # A mean that is off by t moves the difference by at most 2t.
    plain = SignEvidence(plain.difference, np.sqrt(plain.error**2 + 4 * variance))
    is_plain = np.abs(plain.z) >= np.abs(central.z)
    return SignEvidence(
        np.where(is_plain, plain.difference, central.difference),
        np.where(is_plain, plain.error, central.error),
    )


def central_scores(axes: MatchedAxes) -> tuple[Floats, Floats]:
    """Return both tables along the axes, centred at their means."""
    return axes.A - axes.A.mean(axis=0), axes.B - axes.B.mean(axis=0)


def sign_confidence(evidence: SignEvidence) -> Floats:
    """Return the probability of the chosen sign minus that of the other one, (k,)."""
    from scipy.special import erf

    return np.asarray(erf(np.abs(evidence.z) / np.sqrt(2)))


def choose_hybrid_signs(
    axes: MatchedAxes, evidence: SignEvidence, joint: int, rng: np.random.Generator
) -> Floats:
    """Choose doubtful signs jointly, with all axes at one scale.

    Without the common scale, short axes would hardly move a distance.
    """
    doubt = np.argsort(np.abs(evidence.z), kind="stable")[:joint]
    free = doubt[np.abs(evidence.z[doubt]) < CLEAR_STANDARD_ERRORS]
    if len(free) == 0:
        return evidence.signs
    spread = np.sqrt(axes.variances)
    A, B = (
        draw_rows(axes.A / spread, _MAX_COMPARED_ROWS[0], rng),
        draw_rows(axes.B / spread, _MAX_JOINT_ROWS, rng),
    )
    return choose_signs_jointly(A, B, evidence.signs, free)


def choose_exhaustive_signs(axes: MatchedAxes, rows: int, rng: np.random.Generator) -> Floats:
    """Choose all signs jointly on random parts of both tables."""
    A, B = draw_rows(axes.A, _MAX_COMPARED_ROWS[0], rng), draw_rows(axes.B, rows, rng)
    k = A.shape[1]
    return choose_signs_jointly(A, B, np.ones(k), np.arange(k))


def count_affordable_rows(axes: int, p: int, n: int, work: float) -> int:
    """Return on how many released rows all signs can be tried; 0 if too few to be worth it."""
    if axes > MAX_AXES:
        return 0
    p, n = min(p, _MAX_COMPARED_ROWS[0]), min(n, _MAX_COMPARED_ROWS[1])
    rows = min(n, int(work / 2**axes / p))
    return rows if rows * p >= min(n * p, _MIN_PAIRS) else 0


def iterate_starts(
    axes: MatchedAxes,
    signs: Mapping[str, Floats],
    sample: Floats,
    count: int,
    rng: np.random.Generator,
) -> Iterator[Floats]:
    """Yield rotations to start from: the chosen signs, then those of resampled samples."""
    for chosen in {tuple(each): each for each in signs.values()}.values():
        yield (axes.W * chosen) @ axes.Z.T
    k = axes.Z.shape[1]
    B = draw_rows(axes.B, _MAX_JOINT_ROWS, rng)
    central = B - B.mean(axis=0)
    for number in range(count):
        X = sample[rng.integers(0, len(sample), len(sample))]
        Z = find_principal_axes(X)[1][:, :k]
        if axes.origin is None or number % 2 == 0:
            z = compute_coordinate_evidence((X - X.mean(axis=0)) @ Z, central).z
        else:
            z = compute_coordinate_evidence((X - axes.origin) @ Z, B).z
        yield (axes.W * take_signs(z + rng.standard_normal(k))) @ Z.T


def variance_share(chosen: NDArray[np.bool_], variances: Floats) -> float:
    """Return the share of the variance on the chosen axes."""
    return float(variances[chosen].sum() / variances.sum())


def choose_best_signs(axes: MatchedAxes, Y: Floats, X: Floats) -> Floats:
    """Return the signs of least error given the original records ``X``.

    The error that remains with them is not due to a wrong sign.
    """
    B = (Y - axes.means[1]) @ axes.W
    return take_signs(np.einsum("ik,ik->k", B, (X - axes.means[0]) @ axes.Z))


def estimate_with_best_signs(view: AttackerView, X: Floats) -> Floats:
    """Return the estimates with the best signs given the original records, for the evaluator."""
    assert view.sample is not None
    axes = match_axes(view, view.sample)
    return axes.map_back(view.Y, choose_best_signs(axes, view.Y, X))

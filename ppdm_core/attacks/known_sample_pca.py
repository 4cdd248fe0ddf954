"""A sample of the same population and the release have the same principal axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks._axis_signs import (
    MOST_AXES,
    Evidence,
    best_of_all,
    coordinate_evidence,
    moment_evidence,
    signs_of,
)
from ppdm_core.attacks._known_map import (
    check_secret_map,
    keeps_scale,
    ordered,
    origin_of,
    read_sample,
)
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._rigid_registration import best_overlay, drawn
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import Attack, AttackerView, Estimate, Goal
from ppdm_core.model.policy import Effort

CLEAR = 3.0  # standard errors
_RANK = 1e-10
_PAIRS = (250, 5_000)  # records of the sample and rows of the release that a joint choice compares
_JOINT_ROWS = 1_000
_FEWEST = 20_000  # pairs, below which trying all signs is not worth its time


@dataclass(frozen=True)
class Search:
    """What an effort is worth."""

    starts: int  # of the overlay
    joint: int  # signs that the hybrid tries jointly
    work: float  # sign choices times pairs of the exhaustive search; 0 skips it


SEARCHES: dict[Effort, Search] = {
    "quick": Search(starts=8, joint=6, work=0.0),
    "standard": Search(starts=24, joint=8, work=1e9),
    "thorough": Search(starts=128, joint=12, work=5e10),
}


@dataclass(frozen=True)
class KnownSamplePca(Attack):
    """Somebody with a sample of the same population turns the release until both look alike.

    The principal axes of sample and release are matched by their variances; what is left open is
    the sign of each axis. Candidates, one for each way to choose the signs:
    ``exhaustive`` tries all of them and takes the least energy distance (the paper, without its
    permutation test; up to 20 axes, not in a quick audit, and only where the effort pays for
    20,000 pairs of records or more);
    ``coordinate`` looks at one axis at a time;
    ``moments`` compares means, where the map fixes the origin, and odd central moments;
    ``hybrid`` takes the clear axes from ``coordinate`` and tries all signs of the others;
    ``cautious`` shortens each axis by how unsure its sign is.
    All put the mean of the release on the mean of the sample, which a wrong axis cannot move.

    ``overlay`` goes on from there to the rotation under which the sample is likeliest, the release
    taken as a density. It mends wrong signs, swapped and inexact axes, and is exact if the
    sample's records are in the release. It is far stronger than the axes.

    Joint choices and the overlay work on random parts of both tables. Effort changes the number of
    starts and of signs tried jointly. Fewer released than original columns: the release is taken
    for the leading axes. Notes: ``sign_confidence``, the share of the variance on
    axes whose sign is clear (0 for a symmetric law: there is nothing to choose by);
    ``eigen_gap``, the smallest gap between neighbouring variances over the larger (0: the axes
    themselves are arbitrary); ``agreement``, the share of the variance on whose signs all agree.

    References: Liu, Giannella, Kargupta (2006), section 4, algorithm 4.2.1; Szekely and Rizzo
    (2004), energy statistic. The overlay is our own use of rigid point set registration (Myronenko
    and Song, "Point set registration: coherent point drift", 2010).
    """

    name: ClassVar[str] = "known_sample_pca"
    story: ClassVar[str] = (
        "Somebody with a sample of the same population matches its principal axes to the release's."
    )
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"sample"})
    must_notice: ClassVar[Mapping[str, float]] = {"rotation": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_secret_map(self, view)
        check_needs(self, view)
        sample = read_sample(self, view)
        search = SEARCHES[view.effort]
        axes = matched_axes(view, sample)
        evidence = axis_evidence(axes)
        signs = {
            "coordinate": evidence.signs,
            "moments": signs_of(moment_evidence(axes.A, axes.B, mean_variance(axes))),
            "hybrid": hybrid_signs(axes, evidence, search.joint, rng),
        }
        rows = affordable_rows(min(axes.Z.shape[0], view.Y.shape[1]), *axes.sizes, search.work)
        if rows > 0:
            signs["exhaustive"] = exhaustive_signs(axes, rows, rng)
        candidates = {name: axes.answer(view.Y, chosen) for name, chosen in signs.items()}
        candidates["cautious"] = axes.answer(view.Y, evidence.signs * sureness(evidence))
        shift = np.zeros(sample.shape[1]) if axes.origin is None else axes.origin
        overlay = best_overlay(
            starts(axes, signs, sample, search.starts, rng),
            sample - shift,
            axes.unit * ordered(view.Y),
            rng,
            has_origin=axes.origin is not None,
        )
        candidates["overlay"] = shift + overlay.answer(axes.unit * view.Y)
        variances = axes.variances
        notes = {
            "sign_confidence": share(np.abs(evidence.z) > CLEAR, variances),
            "eigen_gap": float(np.min(1 - variances[1:] / variances[:-1], initial=1.0)),
            "agreement": share(np.ptp(list(signs.values()), axis=0) == 0, variances),
            "overlay_likelihood": overlay.likelihood,
        }
        return Estimate(candidates, notes=notes)

    def explain(self, view: AttackerView, X: Floats) -> dict[str, float]:
        """The error that is left with the best signs: that of the axes alone."""
        X_hat, length = with_best_signs(view, X), np.linalg.norm(X, axis=1)
        error = np.linalg.norm(X - X_hat, axis=1)[length > 0] / length[length > 0]
        return {"relative_error_with_best_signs": float(np.mean(error))} if len(error) else {}


@dataclass(frozen=True, eq=False)
class Axes:
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
        return np.asarray(self.B.var(axis=0))

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.A), len(self.B)

    def answer(self, Y: Floats, weights: Floats) -> Floats:
        x0, y0 = self.means
        return np.asarray(x0 + self.unit * (Y - y0) @ ((self.W * weights) @ self.Z.T))


def matched_axes(view: AttackerView, sample: Floats) -> Axes:
    Y, origin = ordered(view.Y), origin_of(view, sample)
    of_sample, Z = principal_axes(sample)
    of_release, W = principal_axes(Y)
    k = min(np.sum(of_sample > _RANK * of_sample[0]), np.sum(of_release > _RANK * of_release[0]))
    Z, W = Z[:, :k], W[:, :k]
    unit = 1.0
    if not keeps_scale(view.public):
        unit = float(np.sqrt(of_sample[:k].sum() / of_release[:k].sum()))
    means = sample.mean(axis=0), Y.mean(axis=0)
    x0, y0 = means if origin is None else (origin, np.zeros(Y.shape[1]))
    return Axes(Z, W, (sample - x0) @ Z, unit * (Y - y0) @ W, means, unit, origin)


def principal_axes(X: Floats) -> tuple[Floats, Floats]:
    """Variances, largest first, and the axes as columns."""
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / (len(X) - 1))
    return values[::-1], vectors[:, ::-1]


def mean_variance(axes: Axes) -> Floats | None:
    """Of the sample's mean along its axes; None where the origin is not known.

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


def axis_evidence(axes: Axes) -> Evidence:
    """By the laws about the origin or about their means, whichever tells more of an axis."""
    central = coordinate_evidence(*central_scores(axes))
    variance = mean_variance(axes)
    if variance is None:
        return central
    plain = coordinate_evidence(axes.A, axes.B)
    # A mean that is off by t moves the difference by at most 2t.
    plain = Evidence(plain.difference, np.sqrt(plain.error**2 + 4 * variance))
    is_plain = np.abs(plain.z) >= np.abs(central.z)
    return Evidence(
        np.where(is_plain, plain.difference, central.difference),
        np.where(is_plain, plain.error, central.error),
    )


def central_scores(axes: Axes) -> tuple[Floats, Floats]:
    return axes.A - axes.A.mean(axis=0), axes.B - axes.B.mean(axis=0)


def sureness(evidence: Evidence) -> Floats:
    """Probability of the sign that was taken minus that of the other one, (k,)."""
    from scipy.special import erf

    return np.asarray(erf(np.abs(evidence.z) / np.sqrt(2)))


def hybrid_signs(axes: Axes, evidence: Evidence, joint: int, rng: np.random.Generator) -> Floats:
    """All axes at one scale, because short axes hardly move a distance."""
    doubt = np.argsort(np.abs(evidence.z), kind="stable")[:joint]
    free = doubt[np.abs(evidence.z[doubt]) < CLEAR]
    if len(free) == 0:
        return evidence.signs
    spread = np.sqrt(axes.variances)
    A, B = drawn(axes.A / spread, _PAIRS[0], rng), drawn(axes.B / spread, _JOINT_ROWS, rng)
    return best_of_all(A, B, evidence.signs, free)


def exhaustive_signs(axes: Axes, rows: int, rng: np.random.Generator) -> Floats:
    A, B = drawn(axes.A, _PAIRS[0], rng), drawn(axes.B, rows, rng)
    k = A.shape[1]
    return best_of_all(A, B, np.ones(k), np.arange(k))


def affordable_rows(axes: int, p: int, n: int, work: float) -> int:
    """How many released rows all signs can be tried on; 0 if too few to be worth it."""
    if axes > MOST_AXES:
        return 0
    p, n = min(p, _PAIRS[0]), min(n, _PAIRS[1])
    rows = min(n, int(work / 2**axes / p))
    return rows if rows * p >= min(n * p, _FEWEST) else 0


def starts(
    axes: Axes, signs: Mapping[str, Floats], sample: Floats, count: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Rotations to begin from: the chosen signs, then what other samples would have chosen."""
    for chosen in {tuple(each): each for each in signs.values()}.values():
        yield (axes.W * chosen) @ axes.Z.T
    k = axes.Z.shape[1]
    B = drawn(axes.B, _JOINT_ROWS, rng)
    central = B - B.mean(axis=0)
    for number in range(count):
        X = sample[rng.integers(0, len(sample), len(sample))]
        Z = principal_axes(X)[1][:, :k]
        if axes.origin is None or number % 2 == 0:
            z = coordinate_evidence((X - X.mean(axis=0)) @ Z, central).z
        else:
            z = coordinate_evidence((X - axes.origin) @ Z, B).z
        yield (axes.W * signs_of(z + rng.standard_normal(k))) @ Z.T


def share(chosen: NDArray[np.bool_], variances: Floats) -> float:
    return float(variances[chosen].sum() / variances.sum())


def best_signs(axes: Axes, Y: Floats, X: Floats) -> Floats:
    """The signs that answer best if the truth is known: what is left then is no sign's fault."""
    B = (Y - axes.means[1]) @ axes.W
    return signs_of(np.einsum("ik,ik->k", B, (X - axes.means[0]) @ axes.Z))


def with_best_signs(view: AttackerView, X: Floats) -> Floats:
    """What the attack would answer with the best signs given the truth, for the scorer."""
    assert view.sample is not None
    axes = matched_axes(view, view.sample)
    return axes.answer(view.Y, best_signs(axes, view.Y, X))

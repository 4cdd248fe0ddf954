"""Average the noise away over several releases of the same people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._likelihood import known_noise
from ppdm_core.attacks._linking import has_law
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks.shrinkage import Shrinkage
from ppdm_core.distances import row_slices
from ppdm_core.errors import NotApplicable
from ppdm_core.laws import DrawnLaw, StudentT
from ppdm_core.public_map import components_of, has_map, invert, noise_variance, project
from ppdm_core.types import AttackerView, Estimate, Floats, Goal, Public, Version

_STEPS = 30  # of the likeliest value, each one closer


@dataclass(frozen=True)
class ReleaseAveraging:
    """A subscriber keeps the earlier releases of the same people and puts them together.

    Candidates: the ``mean``, weighted by what is known of the noise, and the ``median`` of all
    versions of a row; where the law of the noise is public, the ``likeliest`` value (normal: the
    weighted mean; Laplace: the weighted median; uniform: the middle of what is possible; Student's
    t and logistic: by repeated weighting), and where that has a variance ``shrunk``: the likeliest
    values, filtered for the noise that is left in each row, and all that ``shrinkage`` makes of
    them, taking what is left for normal noise of the same variance everywhere. A version that
    repeats another one to the last digit is the same draw of noise and counts once. Of a first
    release there is one version.

    Versions are averaged as components of the map now, else in the original columns, and mapped
    back; all are clipped to the declared bounds. An earlier release with another map is brought
    there through the original columns, and has no part in the likeliest values.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), whose noise this wears down; Huber
    (1981), likeliest values by repeated weighting.
    """

    name: ClassVar[str] = "release_averaging"
    story: ClassVar[str] = "A subscriber averages over all releases of the same people."
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"earlier"})

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        public = view.public
        if not has_map(public) and public.space != "original":
            raise NotApplicable(
                f"The attack {self.name} needs a published linear map or the original columns."
            )
        Y = components_of(view) if has_map(public) else view.Y
        versions = [Version(Y, public), *_comparable(view)]
        Z = without_repeats(versions)  # (v, m, s)
        found = {"mean": weighted_mean(Z, precisions(versions)), "median": weighted_median(Z)}
        same = [k for k, version in enumerate(versions) if is_same_noise(version.public, public)]
        if has_law(view):
            noises = [known_noise(versions[k].public) for k in same]
            law, scales = noises[0].law, np.stack([noise.scales for noise in noises])
            found["likeliest"] = T = likeliest(Z[same], law, scales)
            if noises[0].has_variance:
                left = noise_left(Z[same], law, scales)
                found["shrunk"] = shrunk(T, left)
        if has_map(public):
            found = {name: invert(public, T) for name, T in found.items()}
        if "shrunk" in found and len(versions) > 1:
            found |= filtered(view, T, left, rng)
        low, high = view.schema.lows, view.schema.highs
        return Estimate({name: np.clip(X_hat, low, high) for name, X_hat in found.items()})


def filtered(
    view: AttackerView, T: Floats, left: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    """What the attack on a single release makes of likeliest components with less noise."""
    public = replace(
        view.public, space="components", law="normal", scales=np.sqrt(left.mean(axis=0))
    )
    found = Shrinkage().attack(replace(view, Y=T, public=public), rng)
    return {f"shrinkage/{name}": X_hat for name, X_hat in found.candidates.items()}


def _comparable(view: AttackerView) -> list[Version]:
    """Earlier versions in the space of the release now; those that cannot be brought there are
    left out."""
    now, found = view.public, []
    for version in view.earlier or ():
        then = version.public
        if has_same_map(then, now):
            is_back = has_map(now) and then.space == "original"
            Z = project(now, version.Y) if is_back else version.Y
        elif has_map(then) or then.space == "original":
            X = version.Y if then.space == "original" else invert(then, version.Y)
            Z = project(now, X) if has_map(now) else X
        else:
            continue
        found.append(Version(np.array(Z), then))
    return found


def has_same_map(one: Public, other: Public) -> bool:
    if not has_map(one) or not has_map(other):
        return has_map(one) == has_map(other) and one.space == other.space
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("centre", "loadings")
    )


def is_same_noise(one: Public, other: Public) -> bool:
    """Of the same law, on the same components; the scales may differ."""
    same_law = (one.law, one.facts.get("nu")) == (other.law, other.facts.get("nu"))
    return same_law and has_same_map(one, other)


def without_repeats(versions: list[Version]) -> Floats:
    """All versions, NaN where there is nothing new."""
    found: list[Floats] = []
    for version in versions:
        Z = np.array(version.Y)
        for other in found:
            Z[np.equal(Z, other).all(axis=1)] = np.nan
        found.append(Z)
    return np.stack(found)


def precisions(versions: list[Version]) -> Floats:
    """(v, s) one over the variance of the noise in each version; all 1 if one is unknown."""
    now = versions[0].public
    s = versions[0].Y.shape[1]
    try:
        return np.stack([1 / _brought_variance(version.public, now) for version in versions])
    except NotApplicable:
        return np.ones((len(versions), s))


def _brought_variance(then: Public, now: Public) -> Floats:
    """Of the noise of one release in the components of another; never 0."""
    variance = np.maximum(noise_variance(then), 1e-18)
    if has_same_map(then, now) or then.loadings is None or now.loadings is None:
        return variance
    across = np.linalg.pinv(then.loadings) @ now.loadings  # (s then, s now)
    return np.asarray(np.maximum(variance @ across**2, 1e-18))


def weighted_mean(Z: Floats, weights: Floats) -> Floats:  # (v, m, s), (v, s)
    heard = np.isfinite(Z) * weights[:, None]
    return np.asarray((np.nan_to_num(Z) * heard).sum(axis=0) / heard.sum(axis=0))


def noise_left(Z: Floats, law: DrawnLaw, scales: Floats) -> Floats:
    """(m, s) variance that is left in the likeliest values, by the versions that are there."""
    heard = np.isfinite(Z)
    precision = (heard / (law.variance * scales**2)[:, None]).sum(axis=0)
    return np.asarray(np.where(heard.sum(axis=0) > 1, left_over(law), 1.0) / precision)


def weighted_median(Z: Floats, weights: Floats | None = None) -> Floats:
    """(m, s) over those that are there; between two values their middle."""
    heard = np.isfinite(Z) * (1.0 if weights is None else weights[:, None])
    order = np.argsort(Z, axis=0)  # NaN last
    ranked = np.take_along_axis(Z, order, axis=0)
    below = np.cumsum(np.take_along_axis(heard, order, axis=0), axis=0)
    half = below[-1] / 2
    slack = 1e-12 * half
    first = (below < half - slack).sum(axis=0)[None]  # the first to reach the half
    last = (below <= half + slack).sum(axis=0)[None]  # the first to pass it
    low, high = (np.take_along_axis(ranked, place, axis=0)[0] for place in (first, last))
    return np.asarray((low + high) / 2)


def left_over(law: DrawnLaw) -> float:
    """Variance of the likeliest value times the versions, as a share of that of the mean."""
    if isinstance(law, StudentT):
        nu = law.nu
        return (nu + 3) * (nu - 2) / ((nu + 1) * nu)
    return {"laplace": 0.5, "logistic": 9 / np.pi**2}.get(law.name, 1.0)


def likeliest(Z: Floats, law: DrawnLaw, scales: Floats) -> Floats:
    """(m, s) by the law of the noise; scales (v, s)."""
    if law.name == "normal":
        return weighted_mean(Z, scales**-2.0)
    if law.name == "uniform":
        most = np.nanmin(Z + scales[:, None], axis=0)
        least = np.nanmax(Z - scales[:, None], axis=0)
        return np.asarray((least + most) / 2)
    middle = weighted_median(Z, 1 / scales)
    if law.name == "laplace":
        return middle
    for rows in row_slices(Z.shape[1], 4 * Z.shape[0] * Z.shape[2]):
        middle[rows] = _reweighted(Z[:, rows], middle[rows], law, scales[:, None])
    return middle


def _reweighted(Z: Floats, middle: Floats, law: DrawnLaw, scales: Floats) -> Floats:
    """Means by weights that fall with the distance; each step makes the values likelier."""
    heard, Z = np.isfinite(Z), np.nan_to_num(Z)
    for _ in range(_STEPS):
        gap = np.abs(Z - middle) / scales
        if isinstance(law, StudentT):
            weight = heard / (law.nu + gap**2)
        else:
            weight = heard * np.tanh(gap / 2) / np.maximum(gap, 1e-12)
            weight[heard & (gap < 1e-6)] = 0.5
        weight = weight / scales**2
        middle = (weight * Z).sum(axis=0) / weight.sum(axis=0)
    return middle


def shrunk(T: Floats, left: Floats) -> Floats:
    """Wiener filter; the less noise is left in a row, (m, s), the less it is drawn to the mean."""
    mean = T.mean(axis=0)
    centred = T - mean
    cov = centred.T @ centred / max(len(T) - 1, 1) - np.diag(left.mean(axis=0))
    values, vectors = np.linalg.eigh(cov)
    signal = (vectors * np.maximum(values, 0.0)) @ vectors.T
    kinds, kind = np.unique(left, axis=0, return_inverse=True)
    found = np.empty_like(T)
    for number, noise in enumerate(kinds):
        rows = np.flatnonzero(kind.ravel() == number)
        seen = signal + np.diag(noise)
        found[rows] = mean + centred[rows] @ np.linalg.pinv(seen, hermitian=True) @ signal
    return found
